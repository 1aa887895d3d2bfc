#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>

#include "fp16/math.h"
#include "fp16/vector/math_kernels.h"
#include "tests/oracle/agreement.h"
#include "tests/oracle/compilers_half.h"
#include "tests/oracle/mpfr_half.h"
#include "tests/oracle/sweep.h"

namespace fp16 {
namespace {

constexpr std::uint32_t code_count = 0x10000;
constexpr std::uint64_t number_count = code_count - 2 * 0x3ff;

double value_of(std::uint16_t code) {
  return static_cast<double>(std::bit_cast<oracle::CompilersHalf>(code));
}

/// A function of two halves in the library, and in the host's arithmetic with a bound on the relative error.
struct PairFunction {
  std::string name;
  math::PairFunction function;
  std::uint32_t (*to_odd)(double a, double b);  ///< for a > 0 and b != 0
  long double (*host)(double a, double b);
  long double host_error;
  std::uint32_t (*mpfr_to_odd)(std::uint16_t a, std::uint16_t b);
};

/// The exact value rounded to odd in binary32, if the host's value is far enough from all of its numbers.
/// What the host has as NaN, zero or infinity stays that.
std::optional<std::uint32_t> to_odd_if_certain(long double value, long double error) {
  const auto nearest = static_cast<float>(value);
  const auto code = std::bit_cast<std::uint32_t>(nearest);
  if (std::isnan(value) || std::isinf(value) || value == 0) return code;
  if (std::abs(value - nearest) <= error * std::abs(value)) return std::nullopt;
  if (code % 2 == 1) return code;
  return std::abs(value) > std::abs(nearest) ? code + 1 : code - 1;
}

/// Codes of results that are neither zero nor infinite but beyond the range of the host.
std::uint32_t within_range(std::uint32_t binary32_code) {
  return binary32_code == 0 ? 1 : binary32_code == 0x7f800000 ? 0x7f7fffff : binary32_code;
}

/// By the host's conversion to nearest-even; NaNs are all alike here.
std::uint16_t half_of(std::uint32_t binary32_code) {
  const auto value = std::bit_cast<float>(binary32_code);
  return std::isnan(value) ? 0xfe00 : std::bit_cast<std::uint16_t>(static_cast<oracle::CompilersHalf>(value));
}

/// All pairs without NaNs that have `a` first. To odd, where there is something to round, proves every
/// direction and flag.
oracle::Checked check_row(const PairFunction& pair, std::uint16_t a) {
  oracle::Checked checked;
  if (is_nan<binary16>(a)) return checked;
  for (std::uint32_t second = 0; second < code_count; ++second) {
    const auto b = static_cast<std::uint16_t>(second);
    if (is_nan<binary16>(b)) continue;
    const double x = value_of(a);
    const double y = value_of(b);
    const std::optional<std::uint32_t> certain = to_odd_if_certain(pair.host(x, y), pair.host_error);
    const std::uint32_t expected = certain ? *certain : pair.mpfr_to_odd(a, b);
    const std::uint16_t got = pair.function(a, b, {}).bits;
    bool equal = got == half_of(expected);
    if (x > 0 && std::isfinite(x) && y != 0 && std::isfinite(y))
      equal = equal && pair.to_odd(x, y) == within_range(expected);
    ++checked.inputs;
    if (equal) continue;
    checked.difference = pair.name + ' ' + oracle::text(a) + ' ' + oracle::text(b) + ": got " +
                         oracle::text(got) + ", expected " + oracle::text(half_of(expected)) +
                         ", to odd in binary32 " + oracle::text(expected);
    break;
  }
  return checked;
}

void check_all_pairs(const PairFunction& pair) {
  constexpr std::uint64_t shards = 1024;
  const auto run = [&](std::uint64_t shard) {
    oracle::Checked checked;
    for (std::uint64_t row = shard; row < code_count; row += shards)
      checked += check_row(pair, static_cast<std::uint16_t>(row));
    return checked;
  };
  oracle::check_sweep(
      {.name = "half_" + pair.name, .shards = shards, .inputs = number_count * number_count, .run = run});
}

// The host's errors are below 1 ulp of double by its library's documentation, and three roundings here.

TEST_CASE("pow of all pairs: nearest-even, and to odd in binary32") {
  check_all_pairs({.name = "pow",
                   .function = math::pow,
                   .to_odd = detail::pow_to_odd,
                   .host = [](double x, double y) -> long double { return std::pow(x, y); },
                   .host_error = 0x1p-50L,
                   .mpfr_to_odd = oracle::pow_to_odd});
}

TEST_CASE("hypot of all pairs: nearest-even, and to odd in binary32") {
  check_all_pairs({.name = "hypot",
                   .function = math::hypot,
                   .to_odd = [](double x, double y) { return detail::hypot_to_odd(x, std::abs(y)); },
                   .host =
                       [](double x, double y) {
                         return std::sqrt(static_cast<long double>(x) * x + static_cast<long double>(y) * y);
                       },
                   .host_error = 0x1p-61L,
                   .mpfr_to_odd = oracle::hypot_to_odd});
}

TEST_CASE("atan2 of all pairs: nearest-even, and to odd in binary32") {
  check_all_pairs({.name = "atan2",
                   .function = math::atan2,
                   .to_odd = [](double y, double x) { return detail::atan2_to_odd(y, std::abs(x), x < 0); },
                   .host = [](double y, double x) -> long double { return std::atan2(y, x); },
                   .host_error = 0x1p-50L,
                   .mpfr_to_odd = oracle::atan2_to_odd});
}

}  // namespace
}  // namespace fp16
