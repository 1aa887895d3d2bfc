/// All pairs of halves: the remainder against integers in units of the smallest half.

#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstdlib>
#include <thread>
#include <vector>

#include "fp16/remainder.h"
#include "tests/oracle/exact_format.h"

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

/// How many remainders by `b` are wrong. Zeros and everything that is not finite are left to other tests.
std::uint64_t wrong_remainders(std::uint32_t b) {
  const std::vector<std::int64_t>& units = units_of_all_halves();
  if (units[b] == 0) return 0;
  std::uint64_t wrong = 0;
  for (std::uint32_t a = 0; a < 0x10000; ++a) {
    if (units[a] == 0) continue;
    const auto x = static_cast<std::uint16_t>(a), y = static_cast<std::uint16_t>(b);
    const Result<binary16> nearest = remainder<binary16>(x, y), truncated = fmod<binary16>(x, y);
    const std::int64_t expected = remainder_of_integers(units[a], units[b]);
    const bool same_sign = expected != 0 || (nearest.bits ^ x) >> 15 == 0;
    wrong += units[nearest.bits] != expected || !same_sign || nearest.flags != Flags{};
    wrong += units[truncated.bits] != units[a] % units[b] || (truncated.bits ^ x) >> 15 != 0 ||
             truncated.flags != Flags{};
  }
  return wrong;
}

TEST_CASE("remainder and fmod of all pairs of non-zero finite halves") {
  units_of_all_halves();
  const unsigned thread_count = std::max(1u, std::thread::hardware_concurrency());
  std::vector<std::uint64_t> wrong(thread_count);
  {
    std::vector<std::jthread> threads;
    for (unsigned shard = 0; shard < thread_count; ++shard) {
      threads.emplace_back([&, shard] {
        for (std::uint32_t b = shard; b < 0x10000; b += thread_count) wrong[shard] += wrong_remainders(b);
      });
    }
  }
  for (const std::uint64_t count : wrong) CHECK(count == 0);
}

}  // namespace
}  // namespace fp16
