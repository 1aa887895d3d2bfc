#include "tests/oracle/exact_format.h"

#include <bit>
#include <limits>
#include <stdexcept>
#include <string>

namespace oracle {
namespace {

// Biases and field widths are absent on purpose: values are listed from the smallest upward.
constexpr std::array facts_table{
    FormatFacts{.name = "binary64",
                .width = 64,
                .sign = 0x8000000000000000,
                .codes_per_binade = std::uint64_t{1} << 52,
                .smallest = 0x1p-1074,
                .smallest_normal = 0x1p-1022,
                .largest = 0x1.fffffffffffffp1023,
                .largest_code = 0x7fefffffffffffff,
                .infinity = 0x7ff0000000000000,
                .nan = 0x7ff8000000000000,
                .quiet_bit = 0x0008000000000000,
                .default_nans = {0xfff8000000000000, 0x7fffffffffffffff, 0x7ff8000000000000}},
    FormatFacts{.name = "binary32",
                .width = 32,
                .sign = 0x80000000,
                .codes_per_binade = 1 << 23,
                .smallest = 0x1p-149,
                .smallest_normal = 0x1p-126,
                .largest = 0x1.fffffep127,
                .largest_code = 0x7f7fffff,
                .infinity = 0x7f800000,
                .nan = 0x7fc00000,
                .quiet_bit = 0x00400000,
                .default_nans = {0xffc00000, 0x7fffffff, 0x7fc00000}},
    FormatFacts{.name = "tf32",
                .width = 19,
                .sign = 0x40000,
                .codes_per_binade = 1024,
                .smallest = 0x1p-136,
                .smallest_normal = 0x1p-126,
                .largest = 0x1.ffcp127,
                .largest_code = 0x3fbff,
                .infinity = 0x3fc00,
                .nan = 0x3fe00,
                .quiet_bit = 0x200,
                .default_nans = {0x7fe00, 0x3ffff, 0x3fe00}},
    FormatFacts{.name = "bfloat16",
                .width = 16,
                .sign = 0x8000,
                .codes_per_binade = 128,
                .smallest = 0x1p-133,
                .smallest_normal = 0x1p-126,
                .largest = 0x1.fep127,
                .largest_code = 0x7f7f,
                .infinity = 0x7f80,
                .nan = 0x7fc0,
                .quiet_bit = 0x40,
                .default_nans = {0xffc0, 0x7fff, 0x7fc0}},
    FormatFacts{.name = "binary16",
                .width = 16,
                .sign = 0x8000,
                .codes_per_binade = 1024,
                .smallest = 0x1p-24,
                .smallest_normal = 0x1p-14,
                .largest = 65504,
                .largest_code = 0x7bff,
                .infinity = 0x7c00,
                .nan = 0x7e00,
                .quiet_bit = 0x200,
                .default_nans = {0xfe00, 0x7fff, 0x7e00}},
    FormatFacts{.name = "e5m2",
                .width = 8,
                .sign = 0x80,
                .codes_per_binade = 4,
                .smallest = 0x1p-16,
                .smallest_normal = 0x1p-14,
                .largest = 57344,
                .largest_code = 0x7b,
                .infinity = 0x7c,
                .nan = 0x7e,
                .quiet_bit = 0x02,
                .default_nans = {0xfe, 0x7f, 0x7e}},
    FormatFacts{.name = "e4m3",
                .width = 8,
                .sign = 0x80,
                .codes_per_binade = 8,
                .smallest = 0x1p-9,
                .smallest_normal = 0x1p-6,
                .largest = 448,
                .largest_code = 0x7e,
                .nan = 0x7f,
                .default_nans = {0xff, 0x7f, 0x7f}},
    FormatFacts{.name = "e5m2_fnuz",
                .width = 8,
                .sign = 0x80,
                .signed_zero = false,
                .codes_per_binade = 4,
                .smallest = 0x1p-17,
                .smallest_normal = 0x1p-15,
                .largest = 57344,
                .largest_code = 0x7f,
                .nan = 0x80,
                .signed_nan = false,
                .default_nans = {0x80, 0x80, 0x80}},
    FormatFacts{.name = "e4m3_fnuz",
                .width = 8,
                .sign = 0x80,
                .signed_zero = false,
                .codes_per_binade = 8,
                .smallest = 0x1p-10,
                .smallest_normal = 0x1p-7,
                .largest = 240,
                .largest_code = 0x7f,
                .nan = 0x80,
                .signed_nan = false,
                .default_nans = {0x80, 0x80, 0x80}},
    FormatFacts{.name = "e3m2",
                .width = 6,
                .sign = 0x20,
                .codes_per_binade = 4,
                .smallest = 0.0625,
                .smallest_normal = 0.25,
                .largest = 28,
                .largest_code = 0x1f},
    FormatFacts{.name = "e2m3",
                .width = 6,
                .sign = 0x20,
                .codes_per_binade = 8,
                .smallest = 0.125,
                .smallest_normal = 1,
                .largest = 7.5,
                .largest_code = 0x1f},
    FormatFacts{.name = "e2m1",
                .width = 4,
                .sign = 0x8,
                .codes_per_binade = 2,
                .smallest = 0.5,
                .smallest_normal = 1,
                .largest = 6,
                .largest_code = 0x7},
    FormatFacts{.name = "e8m0",
                .width = 8,
                .sign = 0,
                .signed_zero = false,
                .has_zero = false,
                .codes_per_binade = 1,
                .smallest = 0x1p-127,
                .smallest_normal = 0x1p-127,
                .largest = 0x1p127,
                .largest_code = 0xfe,
                .nan = 0xff,
                .signed_nan = false,
                .default_nans = {0xff, 0xff, 0xff}},
};

}  // namespace

ExactFormat::ExactFormat(const FormatFacts& facts) : facts_(facts) {
  if (facts.width > 16) return;
  double spacing =
      facts.has_zero ? facts.smallest : facts.smallest / static_cast<double>(facts.codes_per_binade);
  double value = facts.has_zero ? 0 : facts.smallest;
  double binade = facts.smallest_normal;
  while (values_.size() <= facts.largest_code + 1) {
    values_.push_back(dyadic_of(value));
    if (value == 2 * binade) {
      binade *= 2;
      spacing *= 2;
    }
    value += spacing;
  }
}

bool ExactFormat::is_nan(std::uint64_t code) const {
  if (facts_.nan == 0) return false;
  if (facts_.infinity != 0) return magnitude(code) > facts_.infinity;
  return (facts_.signed_nan ? magnitude(code) : code) == facts_.nan;
}
bool ExactFormat::is_signalling(std::uint64_t code) const {
  return facts_.quiet_bit != 0 && is_nan(code) && (code & facts_.quiet_bit) == 0;
}
bool ExactFormat::is_infinity(std::uint64_t code) const {
  return facts_.infinity != 0 && magnitude(code) == facts_.infinity;
}
bool ExactFormat::is_zero(std::uint64_t code) const {
  return facts_.has_zero && magnitude(code) == 0 && !is_nan(code);
}
bool ExactFormat::is_subnormal(std::uint64_t code) const {
  return facts_.has_zero && magnitude(code) > 0 && magnitude(code) < facts_.codes_per_binade;
}

double ExactFormat::value(std::uint64_t code) const {
  if (is_nan(code)) return std::numeric_limits<double>::quiet_NaN();
  const Dyadic exact = is_infinity(code) ? Dyadic{} : dyadic(magnitude(code));
  const double size =
      is_infinity(code)
          ? std::numeric_limits<double>::infinity()
          : std::ldexp(static_cast<double>(static_cast<std::uint64_t>(exact.significand)), exact.exponent);
  return is_negative(code) ? -size : size;
}

Dyadic ExactFormat::hardware_value(std::uint64_t magnitude) const {
  if (facts_.width == 64) return dyadic_of(std::bit_cast<double>(magnitude));
  const auto bits = static_cast<std::uint32_t>(magnitude << (32 - facts_.width));
  return dyadic_of(static_cast<double>(std::bit_cast<float>(bits)));
}

Dyadic ExactFormat::dyadic(std::uint64_t magnitude) const {
  if (!values_.empty()) return values_[magnitude];
  if (magnitude <= facts_.largest_code) return hardware_value(magnitude);
  const Dyadic largest = hardware_value(facts_.largest_code);
  return combined(largest, combined(largest, hardware_value(facts_.largest_code - 1), true), false);
}

std::uint64_t ExactFormat::without_subnormals(std::uint64_t code) const {
  return is_subnormal(code) ? with_sign(0, is_negative(code)) : code;
}
std::uint64_t ExactFormat::with_sign(std::uint64_t magnitude, bool negative) const {
  return negative && (magnitude != 0 || facts_.signed_zero) ? magnitude | facts_.sign : magnitude;
}
std::uint64_t ExactFormat::negated(std::uint64_t code) const {
  return with_sign(magnitude(code), !is_negative(code));
}

const std::vector<ExactFormat>& exact_formats() {
  static const std::vector<ExactFormat> formats(facts_table.begin(), facts_table.end());
  return formats;
}

const ExactFormat& exact_format(std::string_view name) {
  for (const ExactFormat& format : exact_formats()) {
    if (format.facts().name == name) return format;
  }
  throw std::invalid_argument("the oracle knows no format named " + std::string(name) +
                              "; its facts are a row of tests/oracle/exact_format.cpp");
}

}  // namespace oracle
