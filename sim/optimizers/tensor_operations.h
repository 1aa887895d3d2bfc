#pragma once
/// How the result of a tensor operation of an update is rounded, as a function that loops can be vectorised
/// with.

#include <bit>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "fp16/config.h"
#include "fp16/formats.h"

namespace sim {

namespace detail {

/// A choice by masks: a branch would keep the compiler from using vectors.
constexpr std::uint32_t select(bool condition, std::uint32_t yes, std::uint32_t no) {
  const std::uint32_t mask = 0u - condition;
  return (yes & mask) | (no & ~mask);
}

}  // namespace detail

/// Results stay as the type's own operations leave them.
struct UnroundedResult {
  template <class Real>
  constexpr Real operator()(Real value) const {
    return value;
  }
};

/// The number of F nearest to a float, ties to even, as a float: the twin of fp16::encode<F> and back,
/// without branches, for F binary16 or bfloat16. NaNs stay the NaNs they are. Equal for all 2^32 floats
/// (exhaustive test).
template <const fp16::Format& F>
struct RoundedResult {
  constexpr float operator()(float value) const {
    constexpr int dropped = fp16::binary32.trailing_bits() - F.trailing_bits();
    constexpr auto min_normal = std::bit_cast<std::uint32_t>(static_cast<float>(F.min_normal()));
    constexpr auto max = std::bit_cast<std::uint32_t>(static_cast<float>(F.max()));
    constexpr std::uint32_t infinity = 0x7f800000;
    // Its unit in the last place is F's smallest subnormal number, so adding it rounds as F does below
    // min_normal.
    constexpr float magic = std::bit_cast<float>(min_normal + (static_cast<std::uint32_t>(dropped) << 23));

    const auto bits = std::bit_cast<std::uint32_t>(value);
    const std::uint32_t magnitude = bits & 0x7fffffff;
    const std::uint32_t half_unit = (1u << (dropped - 1)) - 1 + (magnitude >> dropped & 1);
    const std::uint32_t normal = (magnitude + half_unit) & ~((1u << dropped) - 1);
    const auto subnormal = std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude) + magic - magic);
    std::uint32_t rounded = detail::select(magnitude < min_normal, subnormal, normal);
    rounded = detail::select(rounded > max, infinity, rounded);
    rounded = detail::select(magnitude > infinity, magnitude, rounded);
    return std::bit_cast<float>(rounded | (bits & 0x80000000));
  }
};

/// Calls body with the function object for results of `operations`.
template <class Real, class Body>
void with_rounding(fp16::Format operations, Body body) {
  if constexpr (std::is_same_v<Real, float>) {
    if (operations == fp16::binary16) return body(RoundedResult<fp16::binary16>{});
    if (operations == fp16::bfloat16) return body(RoundedResult<fp16::bfloat16>{});
  }
  body(UnroundedResult{});
}

/// out = [in + (factor * values)]
template <class Real, class Round>
FP16_VECTOR_CLONES void add_product(std::size_t count, const Real* __restrict__ in, Real factor,
                                    const Real* __restrict__ values, Real* __restrict__ out, Round round) {
  for (std::size_t i = 0; i < count; ++i) out[i] = round(in[i] + factor * values[i]);
}

}  // namespace sim
