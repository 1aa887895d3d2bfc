#include "sim/statistics/cast_counts.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <cmath>
#include <limits>

#include "fp16/bits.h"
#include "fp16/codec.h"

namespace sim {
namespace {

// Non-negative binary32 values are ordered as their bits are, and comparing integers leaves NaN above
// infinity.
using MagnitudeBits = std::int32_t;
constexpr MagnitudeBits infinity_bits = fp16::infinity_bits<fp16::binary32>;

// Every comparison below has the form bits > edge.
struct Edges {
  MagnitudeBits kept;        // rounds to non-zero
  MagnitudeBits normal;      // rounds to at least 2^-14
  MagnitudeBits overflowed;  // rounds to infinity
};

// Bits of the largest finite binary32 value that is <= edge (or < edge if strict), for edge > 0.
MagnitudeBits last_below(double edge, bool strict) {
  constexpr float largest = std::numeric_limits<float>::max();
  float value = edge < largest ? static_cast<float>(edge) : largest;
  if (value > edge || (strict && value == edge)) value = std::nextafter(value, 0.0f);
  return std::bit_cast<MagnitudeBits>(value);
}

Edges edges_at(int log2_scale) {
  // Beyond this range no binary32 value changes its outcome, and within it the edges are exact in double.
  const int shift = -std::clamp(log2_scale, -400, 400);
  return {.kept = last_below(std::ldexp(1.0, shift - 25), false),
          .normal = last_below(std::ldexp(1023.5, shift - 24), true),
          .overflowed = last_below(std::ldexp(65520.0, shift), true)};
}

FP16_VECTOR_CLONES CastCounts count_chunk(std::span<const float> values, const Edges& edges) {
  std::uint32_t nonzero = 0, kept = 0, normal = 0, overflowed = 0, nonfinite = 0;
  for (const float value : values) {
    const auto magnitude =
        static_cast<MagnitudeBits>(fp16::magnitude<fp16::binary32>(std::bit_cast<std::uint32_t>(value)));
    nonzero += magnitude > 0;
    kept += magnitude > edges.kept;
    normal += magnitude > edges.normal;
    overflowed += magnitude > edges.overflowed;
    nonfinite += magnitude > infinity_bits - 1;
  }
  return {.total = values.size(),
          .zero_before = values.size() - nonzero,
          .flushed = nonzero - kept,
          .subnormal = kept - normal,
          .overflowed = overflowed - nonfinite,
          .nonfinite_before = nonfinite};
}

}  // namespace

CastCounts& CastCounts::operator+=(const CastCounts& other) {
  total += other.total;
  zero_before += other.zero_before;
  flushed += other.flushed;
  subnormal += other.subnormal;
  overflowed += other.overflowed;
  nonfinite_before += other.nonfinite_before;
  return *this;
}

CastCounts count_casts(std::span<const float> values, int log2_scale) {
  constexpr std::size_t chunk_size = std::size_t{1} << 30;  // in which a 32-bit counter cannot wrap
  const auto edges = edges_at(log2_scale);
  CastCounts counts{};
  while (!values.empty()) {
    const std::span<const float> chunk = values.first(std::min(values.size(), chunk_size));
    counts += count_chunk(chunk, edges);
    values = values.subspan(chunk.size());
  }
  return counts;
}

}  // namespace sim
