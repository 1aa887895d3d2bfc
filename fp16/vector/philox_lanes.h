#pragma once
/// Philox over lanes, written once for all instruction sets: a block in each lane, its four words in four vectors. In lanes
/// of 64 bits they are the lower halves; the upper ones hold what is left of the products, which nothing reads.

#include "fp16/vector/philox_kernels.h"

namespace fp16::detail {
namespace {

template <class Longs>
struct PhiloxLanes {
  typename Longs::Vector words[4];

  void round(std::uint32_t key_0, std::uint32_t key_1) {
    const auto even = Longs::multiply(words[0], Longs::set(philox_multipliers[0]));
    const auto odd = Longs::multiply(words[2], Longs::set(philox_multipliers[1]));
    words[0] = Longs::exclusive_or(odd.high, words[1], Longs::set(key_0));
    words[1] = odd.low;
    words[2] = Longs::exclusive_or(even.high, words[3], Longs::set(key_1));
    words[3] = even.low;
  }
};

template <class Longs>
void philox_groups(const Philox& philox, std::uint64_t number, std::uint32_t* out, std::size_t groups) {
  constexpr std::size_t at_a_time = 2;  // independent of each other: a round waits for the one before
  constexpr std::size_t blocks = at_a_time * Longs::width;
  static_assert(philox_group % (4 * blocks) == 0);
  const std::uint32_t* const end = out + groups * philox_group;
  for (; out != end; out += 4 * blocks, number += blocks) {
    PhiloxLanes<Longs> lanes[at_a_time];
    for (std::size_t i = 0; i < at_a_time; ++i) {
      const auto numbers = Longs::numbers_from(number + i * Longs::width);
      lanes[i] = {{numbers.low, numbers.high, Longs::set(philox.stream), Longs::set(philox.stream >> 32)}};
    }
    auto key_0 = static_cast<std::uint32_t>(philox.key);
    auto key_1 = static_cast<std::uint32_t>(philox.key >> 32);
#pragma GCC unroll 10
    for (int round = 0; round < philox_rounds; ++round) {
      for (PhiloxLanes<Longs>& each : lanes) each.round(key_0, key_1);
      key_0 += philox_increments[0];
      key_1 += philox_increments[1];
    }
    for (std::size_t i = 0; i < at_a_time; ++i)
      Longs::store_words(out + i * 4 * Longs::width, lanes[i].words);
  }
}

}  // namespace
}  // namespace fp16::detail
