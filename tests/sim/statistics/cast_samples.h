#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

#include "sim/statistics/cast_counts.h"

/// Values and an oracle for what a cast to binary16 does, shared by the tests of both counters.
namespace cast_samples {

/// Counts by rounding each scaled value to binary16's grid in long double, where scaling and nearbyint (ties
/// to even) are exact.
template <class Real>
sim::CastCounts slow_count(const std::vector<Real>& values, int log2_scale) {
  sim::CastCounts counts{.total = values.size()};
  for (const Real value : values) {
    if (!std::isfinite(value)) {
      counts.nonfinite_before += 1;
    } else if (value == 0) {
      counts.zero_before += 1;
    } else {
      const long double scaled = std::ldexp(std::fabs(static_cast<long double>(value)), log2_scale);
      const int unit =
          std::max(std::ilogb(scaled) - 10, -24);  // log2 of the spacing of binary16 around the value
      const long double rounded = std::ldexp(std::nearbyint(std::ldexp(scaled, -unit)), unit);
      counts.flushed += rounded == 0;
      counts.subnormal += rounded > 0 && rounded < 0x1p-14;
      counts.overflowed += rounded >= 65536;
    }
  }
  return counts;
}

/// In every octave of binary32 the power of two, both edges near the octave's end, and their neighbours;
/// specials; and random bit patterns. Both signs.
inline std::vector<float> values() {
  std::vector<float> samples{0.0f, -0.0f, INFINITY, -INFINITY, NAN, -NAN, std::bit_cast<float>(0x7F800001U)};
  for (int exponent = -149; exponent <= 127; ++exponent) {
    for (const double edge : {1.0, 2 - 0x1p-10, 2 - 0x1p-11, 1.5}) {
      const auto value = static_cast<float>(std::ldexp(edge, exponent));
      const auto bits = std::bit_cast<std::uint32_t>(value);
      samples.push_back(std::bit_cast<float>(bits - 1));
      samples.push_back(value);
      samples.push_back(-std::bit_cast<float>(bits + 1));
    }
  }
  std::mt19937 random(1);
  for (int i = 0; i < 5000; ++i)
    samples.push_back(std::bit_cast<float>(static_cast<std::uint32_t>(random())));
  return samples;
}

}  // namespace cast_samples
