/// The functions of two halves. Each is computed twice if need be (Ziv, "Fast evaluation of elementary
/// mathematical functions with correctly rounded last bit", 1991): first in double with a bound on the error,
/// which leaves about one result in a million undecided, and these as double-doubles.

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <optional>

#include "fp16/math.h"
#include "fp16/vector/environment.h"
#include "fp16/vector/math_kernels.h"

namespace fp16 {

namespace detail {
namespace {

/// The code of the positive number nearby that is rounded to odd in binary32, unless an error of `error_ulp`
/// units in the last place of the double could change it. 2^-126 <= value < 2^128.
std::optional<std::uint32_t> round_to_odd_if_certain(double value, std::uint64_t error_ulp) {
  constexpr int dropped_bits = binary64.trailing_bits() - binary32.trailing_bits();
  constexpr std::uint64_t dropped_mask = (std::uint64_t{1} << dropped_bits) - 1;
  constexpr std::uint64_t rebias = static_cast<std::uint64_t>(binary64.bias() - binary32.bias())
                                   << binary32.trailing_bits();
  const auto bits = std::bit_cast<std::uint64_t>(value);
  const std::uint64_t dropped = bits & dropped_mask;
  if (dropped <= error_ulp || dropped >= dropped_mask - error_ulp) return std::nullopt;
  return static_cast<std::uint32_t>((bits >> dropped_bits) - rebias) | 1;
}

constexpr int log2_entries = 1024;

/// log2(m) for the significands m = 1 + i/1024 of halves, taken from [1, 2) to [0.7, 1.4) as `exponent` says,
/// so that the sum with an exponent never cancels.
struct Log2Entry {
  DoubleDouble log2;
  int exponent;
};

std::array<Log2Entry, log2_entries> make_log2_table() {
  std::array<Log2Entry, log2_entries> table;
  for (int i = 0; i < log2_entries; ++i) {
    const double significand = 1 + i / 1024.0;
    const int exponent = significand > 1.4 ? 1 : 0;
    table[i] = {kernel::log2(exponent == 1 ? significand / 2 : significand), exponent};
  }
  return table;
}

/// log2(x) for the exact value of a positive half.
DoubleDouble log2_of_half(double x) {
  static const auto table = make_log2_table();
  const auto bits = std::bit_cast<std::uint64_t>(x);
  const Log2Entry& entry = table[(bits >> 42) % log2_entries];
  const double exponent = static_cast<int>(bits >> 52) - 1023 + entry.exponent;
  DoubleDouble sum = exact_sum_of_ordered(exponent, entry.log2.high);
  sum.low += entry.log2.low;
  return sum;
}

constexpr int exp2_entries = 32;

/// 2^(i/32)
std::array<double, exp2_entries> make_exp2_table() {
  std::array<double, exp2_entries> table;
  for (int i = 0; i < exp2_entries; ++i) table[i] = kernel::exp2(i / 32.0).high;
  return table;
}

/// 2^p for |p| <= 1000; the relative error is below 4 * 2^-53.
double fast_exp2(double p) {
  static const auto table = make_exp2_table();
  const double nearest = nearest_integer(p * exp2_entries);
  const int index = static_cast<int>(nearest);
  const double r = (p - nearest / exp2_entries) * ln2.high;
  // e^r - 1 for |r| <= 0.011; the first term left out is below 2^-58.
  const double growth =
      r + r * r * (0.5 + r * (1.0 / 6 + r * (1.0 / 24 + r * (1.0 / 120 + r * (1.0 / 720)))));
  const double power = table[index & (exp2_entries - 1)];
  return (power + power * growth) * power_of_two(index >> 5);
}

constexpr int atan_entries = 65;

/// atan(i/64)
std::array<double, atan_entries> make_atan_table() {
  std::array<double, atan_entries> table;
  for (int i = 0; i < atan_entries; ++i) table[i] = arc_tangent(i / 64.0).high;
  return table;
}

/// The angle of (x, y) for 0 < y <= x; the error is below 2 ulp.
double fast_angle(double y, double x) {
  static const auto table = make_atan_table();
  const double index = nearest_integer(y / x * 64);
  const double slope = index / 64;
  // The tangent of the difference of two angles, at most 1/128: its numerator and denominator are exact.
  const double t = (y - slope * x) / (x + slope * y);
  const double square = t * t;
  const double rest = t * square * (-1.0 / 3 + square * (1.0 / 5 - square * (1.0 / 7)));
  return table[static_cast<std::size_t>(index)] + (t + rest);
}

}  // namespace

std::uint32_t pow_to_odd(double x, double y) {
  const DoubleDouble log2_x = log2_of_half(x);
  const double fast_exponent = y * log2_x.high + y * log2_x.low;
  if (fast_exponent > 129) return max_finite_bits<binary32>;
  if (fast_exponent < -151) return min_subnormal_bits<binary32>;
  if (fast_exponent > -125.5 && fast_exponent < 127.5) {
    // Two roundings of an exponent below 2^7 make 2^-46, which is less than 2^7 ulp of the power.
    const auto code = round_to_odd_if_certain(fast_exp2(fast_exponent), 256);
    if (code) return *code;
  }
  // No power comes near the threshold without being exact: the sweep over all pairs shows it.
  const DoubleDouble exponent = log2_x * y;
  const double n = nearest_integer(exponent.high);
  const DoubleDouble power = scale(exponential((exponent - n) * ln2), static_cast<int>(n));
  return round_to_odd(power, exactness_threshold);
}

std::uint32_t hypot_to_odd(double x, double y) {
  // The squares are exact. One rounding of the sum and one of the root make less than 1 ulp.
  const double x_square = x * x;
  const double y_square = y * y;
  const auto code = round_to_odd_if_certain(std::sqrt(x_square + y_square), 1);
  if (code) return *code;
  // An inexact root is 2^-82 or more away from every binary32 number: the difference of the squares is a
  // multiple of 2^-48 and the larger below 2^33.
  return round_to_odd(sqrt(exact_sum(x_square, y_square)), 0);
}

std::uint32_t atan2_to_odd(double y, double x, bool second_quadrant) {
  const bool steep = y > x;
  double fast = steep ? half_pi.high - (fast_angle(x, y) - half_pi.low) : fast_angle(y, x);
  if (second_quadrant) fast = pi.high - (fast - pi.low);
  const auto code = round_to_odd_if_certain(fast, 6);
  if (code) return *code;
  // The angle of a rational slope q is no binary32 number; where q is one, it is q^2/3 > 2^-82 away.
  const DoubleDouble angle = arc_tangent(DoubleDouble(y) / x);
  return round_to_odd(second_quadrant ? pi - angle : angle, 0);
}

}  // namespace detail

namespace math {
namespace {

constexpr std::uint16_t one = 0x3c00;

/// The exact value of a finite code.
double exact_value(std::uint16_t code) {
  const Unpacked<std::uint64_t> number = unpack<binary16, std::uint64_t>(code);
  const double magnitude = static_cast<double>(number.significand) * detail::power_of_two(number.exponent);
  return number.negative ? -magnitude : magnitude;
}

double absolute_value(std::uint16_t code) {
  return exact_value(magnitude<binary16>(code));
}

Result<binary16> with_sign(bool negative, std::uint32_t odd, const Attributes& attributes) {
  return detail::round_from_odd(fp16::with_sign<binary32>(odd, negative), true, attributes);
}

Result<binary16> zero(bool negative) {
  return {.bits = fp16::with_sign<binary16>(0, negative), .flags = {}};
}

Result<binary16> power(Code<binary16> x, Code<binary16> y, const Attributes& attributes) {
  x = read_operand<binary16>(x, attributes);
  y = read_operand<binary16>(y, attributes);
  const bool signalling = is_signalling_nan<binary16>(x) || is_signalling_nan<binary16>(y);
  if ((is_zero<binary16>(y) || x == one) && !signalling) return {.bits = one, .flags = {}};
  if (is_nan<binary16>(x) || is_nan<binary16>(y)) return propagate_nan<binary16>(attributes, x, y);

  bool negative = false;
  if (is_negative<binary16>(x) && is_finite<binary16>(y)) {
    const double exponent = exact_value(y);
    const bool integer = detail::nearest_integer(exponent) == exponent;
    if (!integer && is_finite<binary16>(x) && !is_zero<binary16>(x))
      return invalid_operation<binary16>(attributes);
    negative = integer && detail::nearest_integer(exponent / 2) != exponent / 2;
  }
  const std::uint16_t base = magnitude<binary16>(x);
  if (base == one) return {.bits = fp16::with_sign<binary16>(one, negative), .flags = {}};
  if (base == 0 || is_infinite<binary16>(base) || is_infinite<binary16>(y)) {
    const bool grows = (base > one) != is_negative<binary16>(y);
    if (!grows) return zero(negative);
    const bool pole = base == 0 && is_finite<binary16>(y);
    return infinite_result<binary16>(negative, attributes, {.divide_by_zero = pole});
  }
  return with_sign(negative, detail::pow_to_odd(exact_value(base), exact_value(y)), attributes);
}

Result<binary16> hypotenuse(Code<binary16> x, Code<binary16> y, const Attributes& attributes) {
  x = read_operand<binary16>(x, attributes);
  y = read_operand<binary16>(y, attributes);
  const bool signalling = is_signalling_nan<binary16>(x) || is_signalling_nan<binary16>(y);
  if ((is_infinite<binary16>(x) || is_infinite<binary16>(y)) && !signalling)
    return infinite_result<binary16>(false, attributes);
  if (is_nan<binary16>(x) || is_nan<binary16>(y)) return propagate_nan<binary16>(attributes, x, y);
  if (is_zero<binary16>(x) && is_zero<binary16>(y)) return zero(false);
  return with_sign(false, detail::hypot_to_odd(absolute_value(x), absolute_value(y)), attributes);
}

Result<binary16> angle(Code<binary16> y, Code<binary16> x, const Attributes& attributes) {
  y = read_operand<binary16>(y, attributes);
  x = read_operand<binary16>(x, attributes);
  if (is_nan<binary16>(y) || is_nan<binary16>(x)) return propagate_nan<binary16>(attributes, y, x);
  const bool negative = is_negative<binary16>(y);
  const bool second_quadrant = is_negative<binary16>(x);
  const std::uint16_t height = magnitude<binary16>(y);
  const std::uint16_t width = magnitude<binary16>(x);
  const bool both_infinite = is_infinite<binary16>(height) && is_infinite<binary16>(width);
  if (height == 0 || (is_infinite<binary16>(width) && !both_infinite)) {
    if (!second_quadrant) return zero(negative);
    return with_sign(negative, detail::round_to_odd(detail::pi, 0), attributes);
  }
  if (width == 0 || (is_infinite<binary16>(height) && !both_infinite))
    return with_sign(negative, detail::round_to_odd(detail::half_pi, 0), attributes);
  const double rise = both_infinite ? 1 : exact_value(height);
  const double run = both_infinite ? 1 : exact_value(width);
  return with_sign(negative, detail::atan2_to_odd(rise, run, second_quadrant), attributes);
}

}  // namespace

Result<binary16> pow(Code<binary16> x, Code<binary16> y, const Attributes& attributes) {
  return detail::in_default_environment([&] { return power(x, y, attributes); });
}

Result<binary16> hypot(Code<binary16> x, Code<binary16> y, const Attributes& attributes) {
  return detail::in_default_environment([&] { return hypotenuse(x, y, attributes); });
}

Result<binary16> atan2(Code<binary16> y, Code<binary16> x, const Attributes& attributes) {
  return detail::in_default_environment([&] { return angle(y, x, attributes); });
}

}  // namespace math
}  // namespace fp16
