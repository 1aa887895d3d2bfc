#include <array>

#include "tests/bench/peers.h"

namespace bench {

float multiply_adds(std::size_t count) {
  constexpr std::size_t lanes = 16,
                        chains = 12;  // more of them than a multiply-add takes cycles, all in registers
  using Lanes [[gnu::vector_size(lanes * sizeof(float))]] = float;
  std::array<Lanes, chains> sums{};
  const Lanes factor = Lanes{} + 0.999f, addend = Lanes{} + 0.001f;
  for (std::size_t done = 0; done < count; done += chains * lanes) {
#pragma GCC unroll 12
    for (Lanes& sum : sums) sum = sum * factor + addend;
  }
  Lanes all{};
  for (const Lanes& sum : sums) all += sum;
  return all[0];
}

}  // namespace bench
