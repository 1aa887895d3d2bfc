#pragma once
/// Random bits as a pure function of a key, a stream and an index: the same on every machine, in any order and
/// on any thread, with no state to advance or to save.
///
/// Philox4x32-10 (J. Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011, section 3.3).
///
/// How it is known: the authors' known answers, and their library Random123 over counters and keys drawn at random.

#include <array>
#include <cstdint>
#include <span>

#include "vector_path.h"

namespace fp16 {

/// One endless sequence of 32-bit words. Streams of the same key share no block.
struct Philox {
  std::uint64_t key = 0;     ///< such as a seed
  std::uint64_t stream = 0;  ///< the upper half of the 128-bit counter

  using Block = std::array<std::uint32_t, 4>;

  /// Four words from the block number, the lower half of the counter.
  constexpr Block block(std::uint64_t number) const;
  /// 32 uniform bits: word index % 4 of block index / 4.
  constexpr std::uint32_t bits(std::uint64_t index) const { return block(index / 4)[index % 4]; }

  friend bool operator==(const Philox&, const Philox&) = default;
};

/// The words of a generator from an index on.
struct PhiloxSequence {
  Philox generator;
  std::uint64_t first = 0;

  constexpr std::uint32_t operator[](std::uint64_t i) const { return generator.bits(first + i); }
};

/// out[i] = philox.bits(first + i), at the speed of `path`. Needs halflab::fp16_bulk.
/// Throws std::invalid_argument for a path that this processor lacks.
void fill_bits(const Philox& philox, std::uint64_t first, std::span<std::uint32_t> out,
               VectorPath path = active_vector_path());

namespace detail {

inline constexpr int philox_rounds = 10;
inline constexpr std::array<std::uint32_t, 2> philox_multipliers{0xD2511F53, 0xCD9E8D57};
/// What each round adds to the halves of the key.
inline constexpr std::array<std::uint32_t, 2> philox_increments{0x9E3779B9, 0xBB67AE85};

}  // namespace detail

constexpr Philox::Block Philox::block(std::uint64_t number) const {
  const auto low = [](std::uint64_t word) { return static_cast<std::uint32_t>(word); };
  const auto high = [](std::uint64_t word) { return static_cast<std::uint32_t>(word >> 32); };
  Block words{low(number), high(number), low(stream), high(stream)};
  std::array round_key{low(key), high(key)};
  for (int round = 0; round < detail::philox_rounds; ++round) {
    const std::uint64_t even = std::uint64_t{detail::philox_multipliers[0]} * words[0];
    const std::uint64_t odd = std::uint64_t{detail::philox_multipliers[1]} * words[2];
    words = {high(odd) ^ words[1] ^ round_key[0], low(odd), high(even) ^ words[3] ^ round_key[1], low(even)};
    for (std::size_t half = 0; half < 2; ++half) round_key[half] += detail::philox_increments[half];
  }
  return words;
}

}  // namespace fp16
