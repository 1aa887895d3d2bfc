#include "fp16/neighbours.h"

#include <doctest/doctest.h>
#include <math.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "tests/oracle/format_agreement.h"

namespace fp16 {
namespace {

static_assert(next_up<binary16>(0x7bff) == Result<binary16>{0x7c00, {}});
static_assert(next_up<binary16>(0x8001).bits == 0x8000);
static_assert(next_down<binary16>(0x0000).bits == 0x8001);
static_assert(next_up<e4m3>(0x7e) == Result<e4m3>{0x7f, {.inexact = true, .overflow = true}});
static_assert(next_down<e4m3_fnuz>(0x01).bits == 0x00);
static_assert(next_up<e4m3_fnuz>(0x81).bits == 0x00);
static_assert(next_up<e2m1>(0x7) == Result<e2m1>{0x7, {.inexact = true, .overflow = true}});
static_assert(next_up<binary16>(0x7bff, {.saturate = true}).bits == 0x7bff);
static_assert(next_after<binary16>(0x8000, 0x0000).bits == 0x0000);
static_assert(ulp_distance<binary16>(0x8001, 0x0001) == 2);
static_assert(ulp_distance<binary16>(0x7e00, 0x0001) == std::numeric_limits<std::uint64_t>::max());
static_assert(ulp_distance<binary64>(0xfff0000000000000, 0x7ff0000000000000) == 0xffe0000000000000);
static_assert(ulp_distance<e8m0>(0x7f, 0x82) == 3);

/// The codes of all numbers but -0, by value.
template <const Format& F>
std::vector<Bits<F>> sorted_numbers() {
  const oracle::ExactFormat& format = oracle::exact<F>();
  std::vector<Bits<F>> numbers;
  for (std::uint64_t code = 0; code < format.codes(); ++code) {
    const bool negative_zero = format.is_zero(code) && code != 0;
    if (!format.is_nan(code) && !negative_zero) numbers.push_back(static_cast<Bits<F>>(code));
  }
  std::ranges::sort(numbers, {}, [&](Bits<F> code) { return format.value(code); });
  return numbers;
}

TEST_CASE("the neighbours of all numbers of the formats of at most 16 bits") {
  for_each_format([]<const Format & F>() {
    if constexpr (F.width() <= 16 && F.has_arithmetic()) {
      CAPTURE(name_of(F));
      const std::vector<Bits<F>> numbers = sorted_numbers<F>();
      int wrong = 0;
      const auto same = [](Bits<F> a, Bits<F> b) { return a == b || (is_zero<F>(a) && is_zero<F>(b)); };
      for (std::size_t i = 0; i + 1 < numbers.size(); ++i) {
        const Bits<F> a = numbers[i], b = numbers[i + 1];
        wrong += !same(next_up<F>(a).bits, b) || next_up<F>(a).flags != Flags{};
        wrong += !same(next_down<F>(b).bits, a) || next_down<F>(b).flags != Flags{};
        wrong += next_after<F>(a, b) != next_up<F>(a);
        wrong += next_after<F>(b, numbers.front()) != next_down<F>(b);
        wrong += ulp_distance<F>(a, b) != 1;
        wrong += ulp_distance<F>(b, numbers.front()) != i + 1;
      }
      CHECK(wrong == 0);
    }
  });
}

TEST_CASE("the distances of all pairs of the formats of at most 8 bits") {
  for_each_format([]<const Format & F>() {
    if constexpr (F.width() <= 8) {
      CAPTURE(name_of(F));
      const std::vector<Bits<F>> numbers = sorted_numbers<F>();
      int wrong = 0;
      for (std::size_t i = 0; i < numbers.size(); ++i) {
        for (std::size_t j = 0; j < numbers.size(); ++j)
          wrong += ulp_distance<F>(numbers[i], numbers[j]) != (i < j ? j - i : i - j);
      }
      CHECK(wrong == 0);
    }
  });
}

TEST_CASE("the neighbours of boundary-weighted floats and doubles against the C library") {
  oracle::HardFloats floats(71);
  oracle::HardDoubles doubles(72);
  constexpr int numbers = 100'000;
  oracle::Comparison comparison("neighbours");
  const auto compare = [&](auto a, auto b, auto got_up, auto got_down, auto got_after, auto value) {
    using Float = decltype(value);
    using UInt = decltype(a);
    const auto x = std::bit_cast<Float>(a), y = std::bit_cast<Float>(b);
    const auto check = [&](UInt got, Float expected) {
      const bool nan = std::isnan(expected) && std::isnan(std::bit_cast<Float>(got));
      comparison.equal<std::uint64_t>(got, nan ? got : std::bit_cast<UInt>(expected), "", {a, b});
    };
    if constexpr (sizeof(UInt) == 4) {
      check(got_up, ::nextupf(x));
      check(got_down, ::nextdownf(x));
    } else {
      check(got_up, ::nextup(x));
      check(got_down, ::nextdown(x));
    }
    check(got_after, std::nextafter(x, y));
  };
  for (int i = 0; i < numbers; ++i) {
    const std::uint32_t a = floats.next(), b = i % 2 == 0 ? floats.next() : floats.beside(a);
    compare(a, b, next_up<binary32>(a).bits, next_down<binary32>(a).bits, next_after<binary32>(a, b).bits,
            float{});
    const std::uint64_t c = doubles.next(), d = i % 2 == 0 ? doubles.next() : doubles.beside(c);
    compare(c, d, next_up<binary64>(c).bits, next_down<binary64>(c).bits, next_after<binary64>(c, d).bits,
            double{});
  }
  comparison.finish(numbers * 6);
}

TEST_CASE("neighbours beyond the numbers, and NaNs") {
  CHECK(next_up<binary16>(0x7c00) == Result<binary16>{0x7c00, {}});
  CHECK(next_down<binary16>(0x7c00).bits == 0x7bff);
  CHECK(next_up<binary16>(0xfc00).bits == 0xfbff);
  CHECK(next_down<e4m3>(0xfe).bits == 0xff);
  CHECK(next_down<e5m2_fnuz>(0xff) == Result<e5m2_fnuz>{0x80, {.inexact = true, .overflow = true}});
  CHECK(next_down<e4m3>(0xfe, {.saturate = true}).bits == 0xfe);
  CHECK(next_up<binary16>(0x7d01) == Result<binary16>{0x7f01, {.invalid = true}});
  CHECK(next_after<binary16>(0x3c00, 0xfd01) == Result<binary16>{0xff01, {.invalid = true}});
  CHECK(next_up<binary16>(0xfe01, {.nan_policy = NanPolicy::canonical_nvidia}).bits == 0x7fff);
}

}  // namespace
}  // namespace fp16
