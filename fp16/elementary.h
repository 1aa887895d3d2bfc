#pragma once
/// Elementary functions of binary32: one source for scalar, auto-vectorised and device code.
///
/// Every function is a fixed sequence of IEEE 754 binary32 + - * / and integer operations, free of branches,
/// tables, fused multiply-adds and libm, so its bits are the same on every machine and at every optimisation
/// level. That holds under round-to-nearest, with subnormals kept and without contraction (-ffp-contract=off,
/// nvcc -fmad=false). A NaN result is always default_nan_bits<binary32>.
///
/// Errors are in ulp of the exact result (of 2^-149 where that is subnormal); each stated maximum was found
/// by comparing all 2^32 inputs with binary64 arithmetic.

#include <bit>
#include <cstdint>

#include "fp16/bits.h"
#include "fp16/config.h"
#include "fp16/formats.h"

namespace fp16 {

namespace detail {

inline constexpr float float_nan = std::bit_cast<float>(default_nan_bits<binary32>);
inline constexpr float minus_infinity =
    std::bit_cast<float>(with_sign<binary32>(infinity_bits<binary32>, true));
inline constexpr std::uint32_t sqrt_half_bits = 0x3f3504f3u;

/// ln 2 in two parts (Cody and Waite): the upper has 15 significant bits, so n * ln2_upper is exact for
/// |n| < 2^9.
inline constexpr float ln2_upper = 0x1.62e4p-1f;
inline constexpr float ln2_lower = 0x1.7f7d1cp-20f;
inline constexpr float log2_e = 0x1.715476p0f;

/// `then` where `condition`, else `otherwise`. A mask instead of ?: because compilers turn the latter into a
/// jump around the work behind the value not taken, and then cannot vectorise the caller's loop.
FP16_HD constexpr float select(bool condition, float then, float otherwise) {
  const std::uint32_t mask = 0u - static_cast<std::uint32_t>(condition);
  return std::bit_cast<float>((std::bit_cast<std::uint32_t>(then) & mask) |
                              (std::bit_cast<std::uint32_t>(otherwise) & ~mask));
}

/// 2^exponent for exponent in [-126, 127].
FP16_HD constexpr float float_power_of_two(std::int32_t exponent) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(exponent + 127) << 23);
}

}  // namespace detail

/// constant + x (c1 + x (c2 + ...)), by Horner's rule: rounded at every step, from the last coefficient
/// inwards.
template <class... Coefficients>
FP16_HD constexpr float polynomial(float x, float constant, Coefficients... higher) {
  if constexpr (sizeof...(higher) == 0) {
    return constant;
  } else {
    return polynomial(x, higher...) * x + constant;
  }
}

/// e^x. Maximum error 0.90 ulp. exp(-inf) = 0, exp(+inf) = inf; inf above 88.72283, subnormal below
/// -87.33654, 0 below -103.97207. A constant expression unless the result overflows.
///
/// x = n ln 2 + r with |r| <= ln(2)/2, and e^r = 1 + r + r^2 q(r) with the minimax polynomial q.
FP16_HD constexpr float exp(float x) {
  const float raised = detail::select(x < -104.0f, -104.0f, x);
  const float clamped = detail::select(raised > 89.0f, 89.0f, raised);

  // Adding 1.5 * 2^23 rounds to an integer, which then stands in the low bits of the sum.
  constexpr float integer_shift = 0x1.8p23f;
  const float shifted = clamped * detail::log2_e + integer_shift;
  const float n = shifted - integer_shift;
  const auto exponent = static_cast<std::int32_t>(std::bit_cast<std::uint32_t>(shifted) -
                                                  std::bit_cast<std::uint32_t>(integer_shift));

  // r_upper is exact; keeping it apart from r_lower saves a rounding in the sum.
  const float r_upper = clamped - n * detail::ln2_upper;
  const float r_lower = n * detail::ln2_lower;
  const float r = r_upper - r_lower;
  const float q =
      polynomial(r, 0x1.fffffcp-2f, 0x1.55549p-3f, 0x1.5558fap-5f, 0x1.123b68p-7f, 0x1.6a21d2p-10f);
  const float e_to_r = 1.0f + (r_upper + (r * r * q - r_lower));

  // Two factors: the first product is exact, the second rounds once into the subnormals or overflows.
  const std::int32_t first = exponent >> 1;
  const float result =
      e_to_r * detail::float_power_of_two(first) * detail::float_power_of_two(exponent - first);
  return detail::select(is_nan<binary32>(std::bit_cast<std::uint32_t>(x)), detail::float_nan, result);
}

/// Natural logarithm. Maximum error 0.87 ulp. log(+-0) = -inf, log(+inf) = inf; NaN for x < 0.
///
/// x = 2^k (1 + f) with 1 + f in [sqrt(1/2), sqrt(2)), and log(1 + f) = f - f^2/2 + f^3 q(f) with the minimax
/// polynomial q.
FP16_HD constexpr float log(float x) {
  const auto x_bits = std::bit_cast<std::uint32_t>(x);
  const bool subnormal = x_bits < min_normal_bits<binary32>;
  const auto bits = std::bit_cast<std::uint32_t>(x * detail::select(subnormal, 0x1p23f, 1.0f));
  const std::int32_t k = static_cast<std::int32_t>(bits - detail::sqrt_half_bits) >> 23;
  const float n = static_cast<float>(k) - detail::select(subnormal, 23.0f, 0.0f);

  const float f = std::bit_cast<float>(bits - (static_cast<std::uint32_t>(k) << 23)) - 1.0f;
  const float f2 = f * f;
  const float q = polynomial(f, 0x1.555554p-2f, -0x1.000226p-2f, 0x1.99a00ap-3f, -0x1.54724cp-3f,
                             0x1.22da06p-3f, -0x1.0d84f4p-3f, 0x1.055be2p-3f, -0x1.38b808p-4f);
  const float log_positive = n * detail::ln2_upper + (f + ((f * f2 * q + n * detail::ln2_lower) - 0.5f * f2));

  // Read as integers, NaNs and everything negative lie above +inf.
  const bool infinite = x_bits == infinity_bits<binary32>;
  const bool invalid = x_bits > infinity_bits<binary32>;
  const float result = detail::select(infinite, x, detail::select(invalid, detail::float_nan, log_positive));
  return detail::select(is_zero<binary32>(x_bits), detail::minus_infinity, result);
}

/// 1 / (1 + e^-x). Maximum error 2.41 ulp. sigmoid(-inf) = 0, sigmoid(+inf) = 1; to the left it fades out
/// as e^x does: subnormal below -87.33654, 0 below -103.97207.
FP16_HD constexpr float sigmoid(float x) {
  const auto bits = std::bit_cast<std::uint32_t>(x);
  const float decay = exp(std::bit_cast<float>(with_sign<binary32>(bits, true)));
  const float numerator = detail::select(is_negative<binary32>(bits), decay, 1.0f);
  return detail::select(is_nan<binary32>(bits), detail::float_nan, numerator / (1.0f + decay));
}

}  // namespace fp16
