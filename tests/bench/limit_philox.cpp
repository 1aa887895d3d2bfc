#ifdef __AVX2__
#include <immintrin.h>
#endif

#include "tests/bench/peers.h"

namespace bench {
namespace {

#ifdef __AVX512F__
using Lanes = __m512i;
Lanes product_of(Lanes a, Lanes b) {
  return _mm512_mul_epu32(a, b);
}
#elif defined __AVX2__
using Lanes = __m256i;
Lanes product_of(Lanes a, Lanes b) {
  return _mm256_mul_epu32(a, b);
}
#else
using Lanes [[gnu::vector_size(16)]] = long long;
Lanes product_of(Lanes a, Lanes b) {
  return (a & 0xffffffff) * (b & 0xffffffff);
}
#endif

}  // namespace

std::uint64_t widening_products(std::size_t count) {
  constexpr std::size_t lanes = sizeof(Lanes) / sizeof(std::uint64_t),
                        chains = 12;  // more of them than a product takes cycles, all in registers
  Lanes products[chains]{};
  for (std::size_t chain = 0; chain < chains; ++chain) products[chain] += static_cast<long long>(chain + 1);
  const Lanes factor = Lanes{} + 0xD2511F53;
  for (std::size_t done = 0; done < count; done += chains * lanes) {
#pragma GCC unroll 12
    for (Lanes& product : products) product = product_of(product, factor);
  }
  Lanes all{};
  for (const Lanes& product : products) all ^= product;
  return static_cast<std::uint64_t>(all[0]);
}

}  // namespace bench
