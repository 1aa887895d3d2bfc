#include "fp16/bulk.h"

#include <algorithm>
#include <array>
#include <bit>
#include <stdexcept>
#include <string>

#include "fp16/bulk_kernels.h"
#include "fp16/codec.h"

namespace fp16 {
namespace {

using detail::ConversionKernels;

constexpr int dropped_bits = binary32.trailing_bits() - binary16.trailing_bits();

// As bits of a float.
constexpr std::uint32_t float_infinity = infinity_bits<binary32>;
constexpr std::uint32_t half_min_normal = convert<binary32, binary16>(min_normal_bits<binary16>).bits;
constexpr std::uint32_t exponent_rebias = static_cast<std::uint32_t>(binary32.bias() - binary16.bias())
                                          << binary32.trailing_bits();

/// A choice by masks: a branch, or a conditional float operation, would keep the compiler from using vectors.
constexpr std::uint32_t select(bool condition, std::uint32_t yes, std::uint32_t no) {
  const std::uint32_t mask = 0u - condition;
  return (yes & mask) | (no & ~mask);
}

/// Twin of float_to_half_bits without branches or variable shifts, which the compiler turns into vector code.
/// Where the result is subnormal, adding 0.5 puts its unit, 2^-24, in the last place of a float, so that the
/// float addition rounds as the half needs it. Inputs that a flush-to-zero mode would lose become zero
/// anyway.
std::uint16_t round_to_half(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t magnitude = fp16::magnitude<binary32>(bits);

  const std::uint32_t ties_to_even = ((1u << (dropped_bits - 1)) - 1) + ((magnitude >> dropped_bits) & 1);
  const std::uint32_t normal = (magnitude - exponent_rebias + ties_to_even) >> dropped_bits;
  const std::uint32_t subnormal = std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude) + 0.5f) -
                                  std::bit_cast<std::uint32_t>(0.5f);
  const std::uint32_t nan =
      infinity_bits<binary16> | quiet_bit<binary16> | ((magnitude >> dropped_bits) & trailing_mask<binary16>);

  // Signed comparisons: baseline x86 vectors have no unsigned ones.
  const auto order = static_cast<std::int32_t>(magnitude);
  std::uint32_t half = select(order < static_cast<std::int32_t>(half_min_normal), subnormal, normal);
  half = select(static_cast<std::int32_t>(half) > infinity_bits<binary16>, infinity_bits<binary16>, half);
  half = select(order > static_cast<std::int32_t>(float_infinity), nan, half);
  return static_cast<std::uint16_t>(half | (bits >> 16 & sign_mask<binary16>));
}

/// Twin of half_bits_to_float, of the same kind. All its steps are exact.
float widen_to_float(std::uint16_t bits) {
  const std::int32_t magnitude = fp16::magnitude<binary16>(bits);
  const std::uint32_t sign = static_cast<std::uint32_t>(bits & sign_mask<binary16>) << 16;

  const std::uint32_t widened = static_cast<std::uint32_t>(magnitude) << dropped_bits;
  const std::uint32_t normal = widened + exponent_rebias;
  const auto subnormal = std::bit_cast<std::uint32_t>(static_cast<float>(magnitude) * 0x1p-24f);
  const std::uint32_t special = widened | float_infinity;
  const std::uint32_t quiet = select(magnitude > infinity_bits<binary16>, quiet_bit<binary32>, 0);

  std::uint32_t result = select(magnitude < min_normal_bits<binary16>, subnormal, normal);
  result = select(magnitude >= infinity_bits<binary16>, special | quiet, result);
  return std::bit_cast<float>(result | sign);
}

constexpr ConversionKernels portable_conversion_kernels{
    .float_to_half =
        [](const float* in, std::uint16_t* out, std::size_t count) {
          for (std::size_t i = 0; i < count; ++i) out[i] = round_to_half(in[i]);
        },
    .half_to_float =
        [](const std::uint16_t* in, float* out, std::size_t count) {
          for (std::size_t i = 0; i < count; ++i) out[i] = widen_to_float(in[i]);
        },
};

const ConversionKernels& kernels_of(VectorPath path) {
  require_available(path);
#ifdef __x86_64__
  if (path != VectorPath::portable) return detail::avx2_f16c_conversion_kernels;
#endif
  return portable_conversion_kernels;
}

void check_lengths(std::size_t in, std::size_t out) {
  if (in == out) return;
  throw std::invalid_argument("out: has " + std::to_string(out) + " elements; must have as many as in, " +
                              std::to_string(in));
}

/// `widened` holds the rounded values; `count` must be below 2^32, which keeps the sums in vector lanes.
RoundingCounts count_roundings(const float* in, const float* widened, std::size_t count) {
  std::uint32_t changed = 0, subnormal = 0, flushed = 0, overflowed = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const auto before = std::bit_cast<std::uint32_t>(in[i]);
    const auto after = std::bit_cast<std::uint32_t>(widened[i]);
    const auto magnitude_before = static_cast<std::int32_t>(magnitude<binary32>(before));
    const auto magnitude_after = static_cast<std::int32_t>(magnitude<binary32>(after));
    const std::int32_t finite = magnitude_before < static_cast<std::int32_t>(float_infinity);
    const std::int32_t differs = finite & (before != after);
    changed += differs;
    subnormal += (magnitude_after != 0) & (magnitude_after < static_cast<std::int32_t>(half_min_normal));
    flushed += differs & (magnitude_after == 0);
    overflowed += differs & (magnitude_after == static_cast<std::int32_t>(float_infinity));
  }
  return {.exact = count - changed,
          .inexact = changed - overflowed,
          .subnormal = subnormal,
          .flushed = flushed,
          .overflowed = overflowed};
}

}  // namespace

void float_to_half(std::span<const float> in, std::span<std::uint16_t> out, VectorPath path) {
  check_lengths(in.size(), out.size());
  kernels_of(path).float_to_half(in.data(), out.data(), in.size());
}

void float_to_half(std::span<const float> in, std::span<std::uint16_t> out) {
  float_to_half(in, out, active_vector_path());
}

void float_to_half(std::span<const float> in, std::span<std::uint16_t> out, RoundingCounts& counts,
                   VectorPath path) {
  check_lengths(in.size(), out.size());
  const ConversionKernels& kernels = kernels_of(path);
  std::array<float, 1024> widened;
  for (std::size_t begin = 0; begin < in.size(); begin += widened.size()) {
    const std::size_t count = std::min(widened.size(), in.size() - begin);
    kernels.float_to_half(in.data() + begin, out.data() + begin, count);
    kernels.half_to_float(out.data() + begin, widened.data(), count);
    counts += count_roundings(in.data() + begin, widened.data(), count);
  }
}

void float_to_half(std::span<const float> in, std::span<std::uint16_t> out, RoundingCounts& counts) {
  float_to_half(in, out, counts, active_vector_path());
}

void half_to_float(std::span<const std::uint16_t> in, std::span<float> out, VectorPath path) {
  check_lengths(in.size(), out.size());
  kernels_of(path).half_to_float(in.data(), out.data(), in.size());
}

void half_to_float(std::span<const std::uint16_t> in, std::span<float> out) {
  half_to_float(in, out, active_vector_path());
}

}  // namespace fp16
