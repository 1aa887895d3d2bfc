#include "fp16/rounding.h"

#include <doctest/doctest.h>

#include <array>
#include <cstdint>

#include "fp16/unpacked.h"

namespace fp16 {
namespace {

/// The expected integers for 0/4, 1/4, ... 8/4, one row for each direction and sign.
struct Row {
  Rounding mode;
  bool negative;
  std::array<unsigned, 9> expected;
};

constexpr std::array quarters{
    Row{Rounding::nearest_even, false, {0, 0, 0, 1, 1, 1, 2, 2, 2}},
    Row{Rounding::nearest_even, true, {0, 0, 0, 1, 1, 1, 2, 2, 2}},
    Row{Rounding::nearest_away, false, {0, 0, 1, 1, 1, 1, 2, 2, 2}},
    Row{Rounding::nearest_away, true, {0, 0, 1, 1, 1, 1, 2, 2, 2}},
    Row{Rounding::toward_zero, false, {0, 0, 0, 0, 1, 1, 1, 1, 2}},
    Row{Rounding::toward_zero, true, {0, 0, 0, 0, 1, 1, 1, 1, 2}},
    Row{Rounding::toward_positive, false, {0, 1, 1, 1, 1, 2, 2, 2, 2}},
    Row{Rounding::toward_positive, true, {0, 0, 0, 0, 1, 1, 1, 1, 2}},
    Row{Rounding::toward_negative, false, {0, 0, 0, 0, 1, 1, 1, 1, 2}},
    Row{Rounding::toward_negative, true, {0, 1, 1, 1, 1, 2, 2, 2, 2}},
    Row{Rounding::to_odd, false, {0, 1, 1, 1, 1, 1, 1, 1, 2}},
    Row{Rounding::to_odd, true, {0, 1, 1, 1, 1, 1, 1, 1, 2}},
};

template <typename UInt>
constexpr bool rounds_all_quarters() {
  for (const Row& row : quarters) {
    for (unsigned i = 0; i < row.expected.size(); ++i) {
      const RoundedSignificand<UInt> rounded = round_significand<UInt>(i, 2, row.negative, {row.mode});
      if (rounded.value != row.expected[i] || rounded.inexact != (i % 4 != 0)) return false;
    }
  }
  return true;
}

TEST_CASE("quarters round as the directions are defined") {
  static_assert(rounds_all_quarters<std::uint64_t>());
  static_assert(rounds_all_quarters<uint128>());
}

constexpr Attributes stochastic(std::uint64_t random_bits) {
  return {.rounding = Rounding::stochastic, .random_bits = random_bits};
}

TEST_CASE("stochastic rounding moves away from zero iff floor(fraction * 2^64) exceeds the random bits") {
  constexpr std::uint64_t quarter = std::uint64_t{1} << 62;
  for (const bool negative : {false, true}) {
    CHECK(round_significand(std::uint64_t{5}, 2, negative, stochastic(quarter - 1)).value == 2);
    CHECK(round_significand(std::uint64_t{5}, 2, negative, stochastic(quarter)).value == 1);
    CHECK(round_significand(std::uint64_t{4}, 2, negative, stochastic(0)).value == 1);
  }
  const std::uint64_t one = 1;
  CHECK(round_significand(one, 64, false, stochastic(0)).value == 1);
  CHECK(round_significand(one, 64, false, stochastic(1)).value == 0);
  CHECK(round_significand(one, 65, false, stochastic(0)).value == 0);
  CHECK(round_significand(uint128{3} << 64, 66, false, stochastic(3 * quarter - 1)).value == 1);
  CHECK(round_significand(uint128{3} << 64 | 1, 66, false, stochastic(3 * quarter)).value == 0);
}

TEST_CASE("a significand that lies wholly below the last place counts as less than one half") {
  for (const int discarded_bits : {64, 65, 200, 5000}) {
    CAPTURE(discarded_bits);
    const std::uint64_t largest = ~std::uint64_t{0} >> (discarded_bits == 64);
    CHECK(round_significand(largest, discarded_bits, false, {Rounding::nearest_even}).value == 0);
    CHECK(round_significand(largest, discarded_bits, false, {Rounding::nearest_away}).value == 0);
    CHECK(round_significand(std::uint64_t{1}, discarded_bits, false, {Rounding::toward_positive}).value == 1);
    CHECK(round_significand(std::uint64_t{1}, discarded_bits, true, {Rounding::to_odd}).value == 1);
    CHECK(round_significand(std::uint64_t{1}, discarded_bits, true, {Rounding::to_odd}).inexact);
    CHECK_FALSE(
        round_significand(std::uint64_t{0}, discarded_bits, false, {Rounding::toward_positive}).inexact);
  }
}

TEST_CASE("overflow goes to infinity or to the largest finite number by direction and sign") {
  for (const bool negative : {false, true}) {
    CHECK(overflows_to_infinity(negative, Rounding::nearest_even));
    CHECK(overflows_to_infinity(negative, Rounding::nearest_away));
    CHECK_FALSE(overflows_to_infinity(negative, Rounding::toward_zero));
    CHECK(overflows_to_infinity(negative, Rounding::toward_positive) != negative);
    CHECK(overflows_to_infinity(negative, Rounding::toward_negative) == negative);
    CHECK_FALSE(overflows_to_infinity(negative, Rounding::to_odd));
  }
}

TEST_CASE("flags combine by union") {
  constexpr Flags inexact{.inexact = true};
  constexpr Flags others{.underflow = true, .overflow = true, .divide_by_zero = true, .invalid = true};
  static_assert((inexact | others) == Flags{true, true, true, true, true});
  static_assert((inexact | Flags{}) == inexact);
  static_assert((Flags{} | others) == others);
}

}  // namespace
}  // namespace fp16
