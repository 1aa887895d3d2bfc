#include <immintrin.h>

#include "tests/bench/peers.h"

namespace bench {

#ifdef __AVX512F__
namespace {

__m512 load(const Half* p) {
  return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
}
void store(Half* p, __m512 x) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), _mm512_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT));
}

void float_to_half(const float* in, Half* out, std::size_t count) {
  for (std::size_t i = 0; i < count; i += 16) store(out + i, _mm512_loadu_ps(in + i));
}
void half_to_float(const Half* in, float* out, std::size_t count) {
  for (std::size_t i = 0; i < count; i += 16) _mm512_storeu_ps(out + i, load(in + i));
}

template <typename Operation>
void map(const Half* a, const Half* b, Half* out, std::size_t count, Operation operation) {
  for (std::size_t i = 0; i < count; i += 16) store(out + i, operation(load(a + i), load(b + i)));
}
void add(const Half* a, const Half* b, const Half*, Half* out, std::size_t count) {
  map(a, b, out, count, [](__m512 x, __m512 y) { return x + y; });
}
void multiply(const Half* a, const Half* b, const Half*, Half* out, std::size_t count) {
  map(a, b, out, count, [](__m512 x, __m512 y) { return x * y; });
}
void divide(const Half* a, const Half* b, const Half*, Half* out, std::size_t count) {
  map(a, b, out, count, [](__m512 x, __m512 y) { return x / y; });
}
void sqrt(const Half* a, const Half*, const Half*, Half* out, std::size_t count) {
  for (std::size_t i = 0; i < count; i += 16) store(out + i, _mm512_sqrt_ps(load(a + i)));
}

/// The odd one of the two float results that bracket the exact one; the upper one where they are equal.
void fma(const Half* a, const Half* b, const Half* c, Half* out, std::size_t count) {
  for (std::size_t i = 0; i < count; i += 16) {
    const __m512 x = load(a + i), y = load(b + i), z = load(c + i);
    const __m512 down = _mm512_fmadd_round_ps(x, y, z, _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC);
    const __m512 up = _mm512_fmadd_round_ps(x, y, z, _MM_FROUND_TO_POS_INF | _MM_FROUND_NO_EXC);
    const __mmask16 odd = _mm512_test_epi32_mask(_mm512_castps_si512(down), _mm512_set1_epi32(1));
    store(out + i, _mm512_mask_blend_ps(odd, up, down));
  }
}

}  // namespace

const HalfLoops avx512_limit{"avx512", float_to_half, half_to_float, {add, multiply, divide, sqrt, fma}};
#else
const HalfLoops avx512_limit{"avx512", nullptr, nullptr, {}};
#endif

}  // namespace bench
