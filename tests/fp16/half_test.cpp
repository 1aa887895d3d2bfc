#include "fp16/half.h"

#include <doctest/doctest.h>

#include <array>
#include <bit>
#include <cmath>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <set>
#include <span>
#include <type_traits>
#include <unordered_map>
#include <vector>

#include "fp16/half_text.h"  // how the checks print halves
#include "tests/oracle/exact_half.h"

namespace fp16 {
namespace {

using Limits = std::numeric_limits<half>;

static_assert(sizeof(half) == 2 && alignof(half) == 2);
static_assert(std::is_trivially_copyable_v<half>);
static_assert(std::is_convertible_v<half, float> && std::is_convertible_v<half, double>);
static_assert(!std::is_convertible_v<float, half> && !std::is_convertible_v<int, half>);
static_assert(std::is_constructible_v<half, double> && std::is_constructible_v<half, long double>);
static_assert(std::is_same_v<decltype(half() + half()), half>);
static_assert(std::is_same_v<decltype(half() * 2.0f), float> &&
              std::is_same_v<decltype(2.0 * half()), double>);
static_assert(std::is_same_v<decltype(2 * half()), half> && std::is_same_v<decltype(half() - 'a'), half>);
static_assert(std::is_same_v<decltype(std::size_t{2} / half()), half>);
static_assert(std::is_same_v<decltype(half() + 1.0L), long double>);
static_assert(!std::is_assignable_v<half&, float> && std::is_assignable_v<half&, int>);
template <typename Value>
concept can_be_added_to_a_half = requires(half h, Value value) {
  h += value;
};
static_assert(can_be_added_to_a_half<half> && can_be_added_to_a_half<unsigned long>);
static_assert(!can_be_added_to_a_half<float> && !can_be_added_to_a_half<long double>);

template <typename Value>
concept can_be_chosen_beside_a_half = requires(half h, Value value) {
  h > value ? h : value;
};
static_assert(can_be_chosen_beside_a_half<half> && can_be_chosen_beside_a_half<float>);
#ifndef __clang__
static_assert(!can_be_chosen_beside_a_half<int> && !can_be_chosen_beside_a_half<unsigned long>);
#endif
static_assert(std::is_same_v<std::common_type_t<half, int>, half> &&
              std::is_same_v<std::common_type_t<unsigned long, half>, half> &&
              std::is_same_v<std::common_type_t<half, double>, double>);

static_assert(half().bits() == 0);
static_assert(half(1.5f) + half(0.25f) == half(1.75));
static_assert(half(1) / half(3) == half::from_bits(0x3555));
static_assert(fma(half::from_bits(0x6a40), half::from_bits(0xad70), half::from_bits(0x00b3)).bits() ==
              0xdc3f);
static_assert(sqrt(half(2)) == half::from_bits(0x3da8));
static_assert(half(0.5) < 1.0f && half(2) == 2 && 3 > half(2) && 2049 != half(2048));

TEST_CASE("numeric_limits: values against exact rationals") {
  const auto exact = [](half a) { return oracle::exact_value(a.bits()); };
  const oracle::Rational one = 1;
  CHECK(exact(Limits::min()) == one / (1 << 14));
  CHECK(exact(Limits::denorm_min()) == one / (1 << 24));
  CHECK(exact(Limits::max()) == (2 - one / 1024) * (1 << 15));
  CHECK(exact(Limits::lowest()) == -exact(Limits::max()));
  CHECK(exact(Limits::epsilon()) == one / 1024);
  CHECK(exact(Limits::round_error()) == one / 2);
  CHECK(Limits::infinity().bits() == 0x7c00);
  CHECK(Limits::quiet_NaN().bits() == 0x7e00);
  CHECK(isnan(Limits::signaling_NaN()));
  CHECK((Limits::signaling_NaN().bits() & 0x0200) == 0);
}

TEST_CASE("numeric_limits: defining properties") {
  const half one(1);
  CHECK(one + Limits::epsilon() == half::from_bits(one.bits() + 1));
  CHECK(isinf(Limits::max() + Limits::max()));
  CHECK(is_subnormal(half::from_bits(Limits::min().bits() - 1)));
  CHECK_FALSE(is_subnormal(Limits::min()));
  CHECK(Limits::denorm_min() / half(2) == half(0));
  CHECK(std::exp2(static_cast<double>(Limits::min_exponent - 1)) == Limits::min());
  CHECK(std::isinf(static_cast<float>(half(std::exp2(static_cast<double>(Limits::max_exponent))))));
  CHECK(isfinite(half(std::exp2(static_cast<double>(Limits::max_exponent - 1)))));
  CHECK(std::pow(10.0, Limits::max_exponent10) <= Limits::max());
  CHECK(std::pow(10.0, Limits::max_exponent10 + 1) > Limits::max());
  CHECK(std::pow(10.0, Limits::min_exponent10) >= Limits::min());
  CHECK(std::pow(10.0, Limits::min_exponent10 - 1) < Limits::min());
}

TEST_CASE("numeric_limits: constants") {
  CHECK(Limits::is_specialized);
  CHECK(Limits::is_signed);
  CHECK_FALSE(Limits::is_integer);
  CHECK_FALSE(Limits::is_exact);
  CHECK(Limits::is_iec559);
  CHECK(Limits::is_bounded);
  CHECK_FALSE(Limits::is_modulo);
  CHECK(Limits::has_infinity);
  CHECK(Limits::has_quiet_NaN);
  CHECK(Limits::has_signaling_NaN);
  CHECK(Limits::has_denorm == std::denorm_present);
  CHECK_FALSE(Limits::has_denorm_loss);
  CHECK_FALSE(Limits::traps);
  CHECK_FALSE(Limits::tinyness_before);
  CHECK(Limits::round_style == std::round_to_nearest);
  CHECK(Limits::radix == 2);
  CHECK(Limits::digits == 11);
  CHECK(Limits::digits10 == 3);
  CHECK(Limits::max_digits10 == 5);
  CHECK(Limits::min_exponent == -13);
  CHECK(Limits::max_exponent == 16);
}

TEST_CASE("construction rounds once from the type given") {
  CHECK(half(1 + 0x1p-11 + 0x1p-40).bits() == 0x3c01);
  CHECK(half(2049).bits() == half(2048).bits());
  CHECK(half(2051).bits() == half(2052).bits());
  CHECK(half((std::int64_t{1} << 35) + 1).bits() == 0x7c00);
  CHECK(half(65519).bits() == 0x7bff);
  CHECK(half(65520u).bits() == 0x7c00);
  CHECK(half(std::numeric_limits<std::int64_t>::min()).bits() == 0xfc00);
  CHECK(half(std::numeric_limits<std::uint64_t>::max()).bits() == 0x7c00);
  CHECK(half(std::int8_t{-128}).bits() == 0xd800);
  CHECK(half(true).bits() == 0x3c00);
  for (int i = -70'000; i <= 70'000; ++i) {
    if (half(i).bits() != double_to_half_bits(i)) FAIL_CHECK("half(" << i << ")");
  }
}

TEST_CASE("a long double is rounded once, from all its digits") {
  const long double tie = 1 + 0x1p-11L, tiny = std::numeric_limits<long double>::epsilon();
  CHECK(half(tie).bits() == 0x3c00);
  CHECK(half(tie + tiny).bits() == (tie + tiny > tie ? 0x3c01 : 0x3c00));
  CHECK(half(-tie - tiny).bits() == (tie + tiny > tie ? 0xbc01 : 0xbc00));
  CHECK(encode<binary16>(1 + tiny, {Rounding::toward_positive}).bits == 0x3c01);
  CHECK(encode<binary16>(1 - tiny, {Rounding::toward_negative}).bits == 0x3bff);
  const long double beyond_double = std::numeric_limits<long double>::max();
  CHECK(half(beyond_double).bits() == 0x7c00);
  CHECK(encode<binary16>(-beyond_double, {Rounding::toward_zero}).bits == 0xfbff);
  CHECK(half(std::numeric_limits<long double>::infinity()).bits() == 0x7c00);
  CHECK(isnan(half(std::numeric_limits<long double>::quiet_NaN())));
  const Attributes flushing{.rounding = Rounding::toward_positive, .denormals_are_zero = true};
  CHECK(encode<binary16>(1e-320L, flushing).bits == 1);
  const long double below_double = std::numeric_limits<long double>::denorm_min();
  CHECK(encode<binary16>(below_double, flushing) == Result<binary16>{});
  CHECK(encode<binary16>(-below_double, {Rounding::toward_negative}).bits == 0x8001);
  CHECK(half(-below_double).bits() == 0x8000);
  for (int code = 0; code < 0x7c00; ++code) {
    const auto lower = static_cast<std::uint16_t>(code);
    const long double middle =
        (decode<binary16>(lower) + (lower == 0x7bff ? 65536.0 : decode<binary16>(lower + 1))) / 2;
    const int even = code + (code & 1);
    if (half(middle).bits() != even || half(std::nextafter(middle, 1e9L)).bits() != code + 1 ||
        half(-std::nextafter(middle, 0.0L)).bits() != (0x8000 | code))
      FAIL_CHECK("around the tie above code " << code);
  }
}

#ifdef FP16_HAS_NATIVE_HALF
TEST_CASE("the compiler's own binary16 is the same number") {
  int wrong = 0;
  for (int code = 0; code < 0x10000; ++code) {
    const auto bits = static_cast<std::uint16_t>(code);
    wrong += half(std::bit_cast<_Float16>(bits)).bits() != bits;
    wrong += std::bit_cast<std::uint16_t>(static_cast<_Float16>(half::from_bits(bits))) != bits;
  }
  CHECK(wrong == 0);
  // The way to other types stays that by float.
  CHECK(static_cast<int>(half(1.5)) == 1);
  CHECK(static_cast<long double>(half(1.5)) == 1.5L);
}
#endif

TEST_CASE("an integer beside a half is a half, and so is the result") {
  half h = half(0.5);
  CHECK((2 * h).bits() == 0x3c00);
  CHECK((h + 2049) == half(2048));  // 2048.5 from 2048, 2050 from 2049
  CHECK((1 - h) == half(0.5));
  CHECK((h / 3u) == h / half(3));
  CHECK((h += 1) == half(1.5));
  CHECK((h -= std::int64_t{1}) == half(0.5));
  CHECK((h *= 4) == half(2));
  CHECK((h /= 8) == half(0.25));
  CHECK((h = 3) == half(3));
  CHECK(h == 3);
  CHECK(h < 3.5f);
  CHECK(3.5 > h);
  CHECK(half(2048) != 2049);
}

TEST_CASE("increment and decrement add and subtract one") {
  half h = half(0.5);
  CHECK(++h == half(1.5));
  CHECK(h++ == half(1.5));
  CHECK(h == half(2.5));
  CHECK(--h == half(1.5));
  CHECK(h-- == half(1.5));
  CHECK(h == half(0.5));
  half large = half(2048);
  CHECK(++large == half(2048));
}

TEST_CASE("a half converts to every integer type as a float does") {
  const half h(200.75);
  CHECK(static_cast<std::uint8_t>(h) == 200);
  CHECK(static_cast<std::uint16_t>(h) == 200);
  CHECK(static_cast<short>(h) == 200);
  CHECK(static_cast<long long>(h) == 200);
}

TEST_CASE("operators are the operations of arithmetic.h, and compound ones the plain ones") {
  const half a(5.5), b(-0.3);
  CHECK((a + b).bits() == add<binary16>(a.bits(), b.bits()).bits);
  CHECK((a - b).bits() == subtract<binary16>(a.bits(), b.bits()).bits);
  CHECK((a * b).bits() == multiply<binary16>(a.bits(), b.bits()).bits);
  CHECK((a / b).bits() == divide<binary16>(a.bits(), b.bits()).bits);
  half c = a;
  c += b;
  CHECK(c == a + b);
  c = a;
  c -= b;
  CHECK(c == a - b);
  c = a;
  c *= b;
  CHECK(c == a * b);
  c = a;
  c /= b;
  CHECK(c == a / b);
  CHECK((-a).bits() == 0xc580);
  CHECK((+a).bits() == 0x4580);
  CHECK((-Limits::quiet_NaN()).bits() == 0xfe00);
}

TEST_CASE("comparisons are those of IEEE 754") {
  const half nan = Limits::quiet_NaN(), zero(0), negative_zero(-0.0f), one(1);
  CHECK(zero == negative_zero);
  CHECK(zero.bits() != negative_zero.bits());
  CHECK(zero < one);
  CHECK(-one < negative_zero);
  CHECK(-Limits::infinity() < Limits::lowest());
  CHECK(one >= one);
  CHECK(nan != nan);
  CHECK_FALSE(nan == nan);
  CHECK_FALSE(nan < one);
  CHECK_FALSE(nan >= one);
  CHECK((nan <=> one) == std::partial_ordering::unordered);
}

TEST_CASE("classification and sign of all 65,536 halves equal those of their floats") {
  int wrong = 0;
  for (int code = 0; code < 0x10000; ++code) {
    const half a = half::from_bits(static_cast<std::uint16_t>(code));
    const auto value = static_cast<float>(a);
    const bool subnormal = value != 0 && std::abs(value) < 0x1p-14f;
    wrong += isnan(a) != std::isnan(value) || isinf(a) != std::isinf(value) ||
             isfinite(a) != std::isfinite(value) || is_subnormal(a) != subnormal ||
             signbit(a) != std::signbit(value) || signbit(abs(a)) ||
             (!isnan(a) && static_cast<float>(abs(a)) != std::abs(value));
  }
  CHECK(wrong == 0);
}

TEST_CASE("bits_of shares the memory of whatever holds halves in a row, constant where that is") {
  using Codes = std::span<std::uint16_t>;
  using ConstantCodes = std::span<const std::uint16_t>;
  std::vector<half> vector(3, half(1));
  const Codes codes = bits_of(vector);
  codes[1] = 0x4000;
  CHECK(vector[1] == half(2));
  CHECK(codes.size() == 3);

  const std::vector<half> constant(2, half(3));
  std::array<half, 2> array{half(1), half(2)};
  half row[2] = {half(4), half(5)};
  const std::span<const half> view(row);
  static_assert(std::is_same_v<decltype(bits_of(array)), Codes> &&
                std::is_same_v<decltype(bits_of(row)), Codes>);
  static_assert(std::is_same_v<decltype(bits_of(constant)), ConstantCodes>);
  static_assert(std::is_same_v<decltype(bits_of(view)), ConstantCodes>);
  CHECK(bits_of(constant)[1] == 0x4200);
  CHECK(bits_of(array)[1] == 0x4000);
  CHECK(bits_of(view.subspan(1))[0] == 0x4500);
}

TEST_CASE("halves are equal iff their hashes are, but for NaNs") {
  const std::hash<half> hash;
  std::set<std::size_t> hashes;
  for (int code = 0; code < 0x10000; ++code) {
    const half a = half::from_bits(static_cast<std::uint16_t>(code));
    if (!isnan(a)) hashes.insert(hash(a));
  }
  CHECK(hash(half(0)) == hash(half(-0.0f)));
  CHECK(hashes.size() == 2 * 0x7c00 + 1);
  std::unordered_map<half, int> counts;
  ++counts[half(0.5)];
  ++counts[half(0.5)];
  CHECK(counts.at(half(0.5)) == 2);
}

}  // namespace
}  // namespace fp16
