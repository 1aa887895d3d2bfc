#pragma once
/// Philox over lanes, written once for all instruction sets: a block in each lane, its four words in four vectors. In lanes
/// of 64 bits they are the lower halves; the upper ones hold what is left of the products, which nothing reads.

#include <type_traits>

#include "fp16/vector/philox_kernels.h"

namespace fp16::detail {
namespace {

/// The keys that each round XORs in.
template <class Longs>
struct PhiloxRoundKeys {
  struct Pair {
    typename Longs::Vector first, second;
  };
  Pair of[philox_rounds];

  explicit PhiloxRoundKeys(std::uint64_t key) {
    auto first = static_cast<std::uint32_t>(key);
    auto second = static_cast<std::uint32_t>(key >> 32);
    for (Pair& pair : of) {
      pair = {Longs::set(first), Longs::set(second)};
      first += philox_increments[0];
      second += philox_increments[1];
    }
  }
};

template <class Longs>
struct PhiloxLanes {
  typename Longs::Vector words[4];

  void round(const typename PhiloxRoundKeys<Longs>::Pair& key) {
    const auto even = Longs::multiply(words[0], Longs::set(philox_multipliers[0]));
    const auto odd = Longs::multiply(words[2], Longs::set(philox_multipliers[1]));
    words[0] = Longs::exclusive_or(odd.high, words[1], key.first);
    words[1] = odd.low;
    words[2] = Longs::exclusive_or(even.high, words[3], key.second);
    words[3] = even.low;
  }
};

/// The blocks from `number` on, in `chains` vectors of them: a round waits for the one before, but not for another chain's.
template <class Longs, std::size_t chains>
void philox_chains(const PhiloxRoundKeys<Longs>& keys, std::uint64_t stream, std::uint64_t number,
                   std::uint32_t* out) {
  PhiloxLanes<Longs> lanes[chains];
  for (std::size_t i = 0; i < chains; ++i) {
    const auto numbers = Longs::numbers_from(number + i * Longs::width);
    lanes[i] = {{numbers.low, numbers.high, Longs::set(stream), Longs::set(stream >> 32)}};
  }
#pragma GCC unroll 10
  for (const auto& key : keys.of) {
    for (PhiloxLanes<Longs>& each : lanes) each.round(key);
  }
  for (std::size_t i = 0; i < chains; ++i) Longs::store_words(out + i * 4 * Longs::width, lanes[i].words);
}

template <class Longs>
void philox_groups(const Philox& philox, std::uint64_t number, std::uint32_t* out, std::size_t groups) {
  constexpr std::size_t blocks = philox_group / 4, chains_of_group = blocks / Longs::width;
  constexpr std::size_t at_a_time = 4 / chains_of_group;  // four chains keep the multipliers busy
  static_assert(blocks % Longs::width == 0 && 4 % chains_of_group == 0);
  const PhiloxRoundKeys<Longs> keys(philox.key);
  const auto make = [&]<std::size_t count>(std::integral_constant<std::size_t, count>) {
    philox_chains<Longs, count * chains_of_group>(keys, philox.stream, number, out);
    number += count * blocks;
    out += count * philox_group;
    groups -= count;
  };
  while (groups >= at_a_time) make(std::integral_constant<std::size_t, at_a_time>{});
  if constexpr (at_a_time > 1) {
    while (groups > 0) make(std::integral_constant<std::size_t, 1>{});
  }
}

}  // namespace
}  // namespace fp16::detail
