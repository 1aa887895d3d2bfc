/// All pairs of halves: the remainder against integers in units of the smallest half.

#include <doctest/doctest.h>

#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "fp16/remainder.h"
#include "tests/oracle/agreement.h"
#include "tests/oracle/exact_format.h"
#include "tests/oracle/sweep.h"

namespace fp16 {
namespace {

const std::vector<std::int64_t>& units_of_all_halves() {
  static const std::vector<std::int64_t> units = [] {
    const oracle::ExactFormat& half = oracle::exact_format("binary16");
    std::vector<std::int64_t> values;
    for (std::uint64_t code = 0; code < 0x10000; ++code) {
      const bool finite = !half.is_nan(code) && !half.is_infinity(code);
      values.push_back(finite ? static_cast<std::int64_t>(half.value(code) * 0x1p24) : 0);
    }
    return values;
  }();
  return units;
}

/// x - y * n for the integer n nearest to x / y, the even one of two.
std::int64_t remainder_of_integers(std::int64_t x, std::int64_t y) {
  const std::int64_t quotient = x / y, rest = x % y;
  const std::int64_t twice = 2 * std::abs(rest), size = std::abs(y);
  const bool moves = twice > size || (twice == size && quotient % 2 != 0);
  return !moves ? rest : rest > 0 ? rest - size : rest + size;
}

/// Whether `got` has the value of `expected` units and no flags; a zero has the sign of `x`.
bool is_exactly(const Result<binary16>& got, std::int64_t expected, std::uint16_t x) {
  const bool same_sign = expected != 0 || (got.bits ^ x) >> 15 == 0;
  return units_of_all_halves()[got.bits] == expected && same_sign && got.flags == Flags{};
}

std::string difference(const char* name, std::uint16_t x, std::uint16_t y, const Result<binary16>& got,
                       std::int64_t expected) {
  return name + (' ' + oracle::text(x)) + ' ' + oracle::text(y) + ": got " +
         oracle::text(oracle::as_outcome(got)) + ", expected " + std::to_string(expected) + " * 2^-24";
}

/// Zeros and everything that is not finite are left to other tests.
oracle::Checked check_remainders_by(std::uint16_t y) {
  const std::vector<std::int64_t>& units = units_of_all_halves();
  oracle::Checked checked;
  if (units[y] == 0) return checked;
  for (std::uint32_t code = 0; code < 0x10000 && checked.difference.empty(); ++code) {
    if (units[code] == 0) continue;
    const auto x = static_cast<std::uint16_t>(code);
    const Result<binary16> nearest = remainder<binary16>(x, y), truncated = fmod<binary16>(x, y);
    const std::int64_t expected = remainder_of_integers(units[x], units[y]);
    const std::int64_t expected_truncated = units[x] % units[y];
    ++checked.inputs;
    if (!is_exactly(nearest, expected, x))
      checked.difference = difference("remainder", x, y, nearest, expected);
    if (!is_exactly(truncated, expected_truncated, x))
      checked.difference = difference("fmod", x, y, truncated, expected_truncated);
  }
  return checked;
}

TEST_CASE("remainder and fmod of all pairs of non-zero finite halves") {
  constexpr std::uint64_t shards = 1024, codes = 0x10000, numbers = 2 * 0x7bff;
  const auto run = [](std::uint64_t shard) {
    oracle::Checked checked;
    for (std::uint64_t y = shard; y < codes; y += shards)
      checked += check_remainders_by(static_cast<std::uint16_t>(y));
    return checked;
  };
  oracle::check_sweep({.name = "remainder", .shards = shards, .inputs = numbers * numbers, .run = run});
}

}  // namespace
}  // namespace fp16
