#include "tests/fp16/mma_oracle.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

namespace oracle::mma {
namespace {

constexpr int unit_exponent = -200;

double value_of_half(std::uint16_t bits) {
  const std::uint16_t magnitude = bits & 0x7fff;
  const double sign = bits & 0x8000 ? -1 : 1;
  if (magnitude > 0x7c00) return std::numeric_limits<double>::quiet_NaN();
  if (magnitude == 0x7c00) return sign * std::numeric_limits<double>::infinity();
  return sign * static_cast<double>(exact_value(magnitude));
}

std::vector<double> list_values_of_halves() {
  std::vector<double> values;
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    values.push_back(value_of_half(static_cast<std::uint16_t>(bits)));
  }
  return values;
}

double value_of_half_listed(std::uint16_t bits) {
  static const std::vector<double> values = list_values_of_halves();
  return values[bits];
}

int min_exponent(Output format) {
  return format == Output::binary32 ? -126 : -14;
}

int exponent_of_operand(Output format, double value) {
  return value == 0 ? min_exponent(format) : std::max(std::ilogb(value), min_exponent(format));
}

/// `value` has at most 50 significant bits.
double as_double(const Fixed& value) {
  if (value == 0) return 0;
  const int shift = std::max(0, exponent_of(value) - unit_exponent - 50);
  const auto leading = static_cast<std::int64_t>(value / (Fixed(1) << shift));
  return std::ldexp(static_cast<double>(leading), shift + unit_exponent);
}

}  // namespace

double value_of(Output format, std::uint32_t bits) {
  return format == Output::binary32 ? std::bit_cast<float>(bits)
                                    : value_of_half_listed(static_cast<std::uint16_t>(bits));
}

Fixed fixed(double value) {
  int exponent = 0;
  const auto scaled = static_cast<std::int64_t>(std::ldexp(std::frexp(value, &exponent), 25));
  return Fixed(scaled) << (exponent - 25 - unit_exponent);
}

Fixed fixed_power(int exponent) {
  return Fixed(1) << (exponent - unit_exponent);
}

int exponent_of(const Fixed& value) {
  return static_cast<int>(msb(Fixed(abs(value)))) + unit_exponent;
}

Term operand(Output format, std::uint32_t bits) {
  const double value = value_of(format, bits);
  return {fixed(value), exponent_of_operand(format, value)};
}

Term product(std::uint16_t a, std::uint16_t b) {
  const double x = value_of_half_listed(a);
  const double y = value_of_half_listed(b);
  return {fixed(x * y), exponent_of_operand(Output::binary16, x) + exponent_of_operand(Output::binary16, y)};
}

Fixed round_to_multiple(const Fixed& value, int quantum_exponent, Direction direction) {
  const Fixed quantum = fixed_power(quantum_exponent);
  const Fixed magnitude = abs(value);
  const Fixed remainder = magnitude % quantum;
  if (remainder == 0) return value;
  const Fixed lower = magnitude - remainder;
  const bool odd = (lower & quantum) != 0;
  const Fixed twice = remainder << 1;
  bool up = false;
  switch (direction) {
    case Direction::nearest_even:
      up = twice > quantum || (twice == quantum && odd);
      break;
    case Direction::nearest_away:
      up = twice >= quantum;
      break;
    case Direction::toward_zero:
      break;
    case Direction::toward_positive:
      up = value > 0;
      break;
    case Direction::toward_negative:
      up = value < 0;
      break;
    case Direction::to_odd:
      up = !odd;
      break;
  }
  const Fixed rounded = up ? Fixed(lower + quantum) : lower;
  return value < 0 ? Fixed(-rounded) : rounded;
}

std::uint32_t round_to_format(const Fixed& value, Output format, Direction direction) {
  if (value == 0) return 0;
  const bool single = format == Output::binary32;
  const int ulp_exponent = std::max(exponent_of(value) - (single ? 23 : 10), single ? -149 : -24);
  const double rounded =
      std::copysign(as_double(round_to_multiple(value, ulp_exponent, direction)), value < 0 ? -1 : 1);
  if (!single) return from_binary64(std::bit_cast<std::uint64_t>(rounded))[0].bits;
  return std::bit_cast<std::uint32_t>(static_cast<float>(rounded));
}

std::optional<std::uint32_t> special_result(Output output, std::span<const std::uint16_t> a,
                                            std::span<const std::uint16_t> b, std::uint32_t c) {
  // Sums of infinities and NaNs in double follow the same rules; finite terms cannot overflow it.
  double sum = value_of(output, c);
  for (std::size_t k = 0; k < a.size(); ++k) sum += value_of_half_listed(a[k]) * value_of_half_listed(b[k]);
  if (std::isnan(sum)) return output == Output::binary32 ? 0x7fffffff : 0x7fff;
  if (std::isfinite(sum)) return std::nullopt;
  return (output == Output::binary32 ? 0x7f800000u : 0x7c00u) |
         (sum < 0 ? (output == Output::binary32 ? 0x80000000u : 0x8000u) : 0u);
}

std::uint32_t step(const Parameters& parameters, Output output, std::span<const std::uint16_t> a,
                   std::span<const std::uint16_t> b, std::uint32_t c) {
  if (const auto special = special_result(output, a, b, c)) return *special;
  std::vector<Term> terms{operand(output, c)};
  for (std::size_t k = 0; k < a.size(); ++k) terms.push_back(product(a[k], b[k]));
  std::erase_if(terms, [](const Term& term) { return term.value == 0; });

  int top = parameters.alignment_floor;
  for (const Term& term : terms) top = std::max(top, term.exponent);
  Fixed sum = 0;
  for (const Term& term : terms)
    sum += round_to_multiple(term.value, top - parameters.fraction_bits, Direction::toward_zero);
  const std::uint32_t rounded = round_to_format(
      sum, output, output == Output::binary32 ? Direction::toward_zero : Direction::nearest_even);
  return value_of(output, rounded) == 0 ? 0 : rounded;
}

}  // namespace oracle::mma
