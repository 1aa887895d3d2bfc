#pragma once
/// Keyed, counter-based random numbers: (seed, purpose, index) gives the bits, in any order, on any thread
/// and on every machine. There is no state to advance or to save.

#include <cassert>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "fp16/elementary.h"
#include "fp16/philox.h"

namespace sim {

/// 64-bit FNV-1a hash of the bytes of `text`.
constexpr std::uint64_t fnv1a(std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325u;
  for (char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return hash;
}

/// One endless sequence of random numbers, a pure function of the index.
///
/// fp16::Philox, keyed by the seed; its stream is the hash of the purpose, so streams of the same seed and
/// different purposes share no block unless the hashes collide. `bits`, `uniform` and `normal` are three
/// views of the same 32 bits: give quantities that must be independent different indices or purposes. `below`
/// draws on blocks of its own.
class RandomStream {
 public:
  RandomStream(std::uint64_t seed, std::string_view purpose)
      : philox_{.key = seed, .stream = fnv1a(purpose)} {}

  /// This sequence without its first `count` numbers; the sequence of `below` stays as it is.
  RandomStream after(std::uint64_t count) const {
    RandomStream rest = *this;
    rest.first_ += count;
    return rest;
  }

  /// 32 uniform bits.
  std::uint32_t bits(std::uint64_t index) const { return philox_.bits(first_ + index); }

  /// out[i] = bits(first + i).
  void fill_bits(std::uint64_t first, std::span<std::uint32_t> out) const {
    fp16::fill_bits(philox_, first_ + first, out);
  }
  /// bits(first + i), for the stochastic rounding of element i.
  fp16::PhiloxSequence from(std::uint64_t first) const { return {philox_, first_ + first}; }

  /// A multiple of 2^-24, uniform in [0, 1).
  float uniform(std::uint64_t index) const { return static_cast<float>(bits(index) >> 8) * 0x1p-24f; }

  /// Standard normal: the inverse distribution function at (bits + 1/2) / 2^32, so |normal| <= 6.338.
  /// Relative error below 5e-7, found over all 2^32 values of the bits.
  float normal(std::uint64_t index) const { return normal_from_bits(bits(index)); }

  /// An integer in [0, n), 1 <= n <= 2^32, from 64 bits: no value is more likely than another by more than a
  /// factor of 1 + 2^-32. `index` must be below 2^63.
  std::uint64_t below(std::uint64_t index, std::uint64_t n) const {
    assert(1 <= n && n <= 0x100000000u);
    const fp16::Philox::Block words = philox_.block(index | integer_blocks);
    return (words[1] * n + (words[0] * n >> 32)) >> 32;
  }

  /// The map behind `normal`: M. J. Wichura's PPND7 ("Algorithm AS 241", Applied
  /// Statistics 37, 1988). Its branch for tail probabilities below exp(-25) is out of reach of 32 bits.
  static float normal_from_bits(std::uint32_t bits);

 private:
  /// `bits` reads blocks below 2^62, `below` those from here on.
  static constexpr std::uint64_t integer_blocks = std::uint64_t{1} << 63;

  fp16::Philox philox_;
  std::uint64_t first_ = 0;
};

inline float RandomStream::normal_from_bits(std::uint32_t bits) {
  using fp16::polynomial;
  // Twice the distance from the centre and from the nearer end, in units of 2^-32: odd integers, rounded
  // once.
  const bool lower_half = bits < 0x80000000u;
  const std::int64_t twice_from_centre = 2 * static_cast<std::int64_t>(bits) + 1 - 0x100000000;
  const std::int64_t twice_from_end = 2 * static_cast<std::int64_t>(lower_half ? bits : ~bits) + 1;

  const float q = static_cast<float>(twice_from_centre) * 0x1p-33f;
  if (std::fabs(q) <= 0.425f) {
    const float r = 0.180625f - q * q;
    return q * polynomial(r, 3.3871327179e+00f, 5.0434271938e+01f, 1.5929113202e+02f, 5.9109374720e+01f) /
           polynomial(r, 1.0f, 1.7895169469e+01f, 7.8757757664e+01f, 6.7187563600e+01f);
  }
  const float r = std::sqrt(-fp16::log(static_cast<float>(twice_from_end) * 0x1p-33f)) - 1.6f;
  const float magnitude =
      polynomial(r, 1.4234372777e+00f, 2.7568153900e+00f, 1.3067284816e+00f, 1.7023821103e-01f) /
      polynomial(r, 1.0f, 7.3700164250e-01f, 1.2021132975e-01f);
  return lower_half ? -magnitude : magnitude;
}

/// A uniformly distributed order of 0 .. n-1 (Fisher and Yates), drawn from `stream` at indices 0 .. n-1.
inline std::vector<std::uint32_t> permutation(const RandomStream& stream, std::uint32_t n) {
  std::vector<std::uint32_t> order(n);
  std::iota(order.begin(), order.end(), 0u);
  for (std::uint32_t remaining = n; remaining > 1; --remaining) {
    std::swap(order[remaining - 1], order[stream.below(remaining - 1, remaining)]);
  }
  return order;
}

}  // namespace sim
