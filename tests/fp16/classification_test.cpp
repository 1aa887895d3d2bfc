#include "fp16/classification.h"

#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <cstdint>

#include "tests/oracle/format_agreement.h"

namespace fp16 {
namespace {

static_assert(classify<binary16>(0x7c01) == NumberClass::signalling_nan);
static_assert(classify<binary16>(0xfe00) == NumberClass::quiet_nan);
static_assert(classify<binary16>(0xfc00) == NumberClass::negative_infinity);
static_assert(classify<binary16>(0x8400) == NumberClass::negative_normal);
static_assert(classify<binary16>(0x83ff) == NumberClass::negative_subnormal);
static_assert(classify<binary16>(0x8000) == NumberClass::negative_zero);
static_assert(classify<binary16>(0x0000) == NumberClass::positive_zero);
static_assert(classify<binary16>(0x0001) == NumberClass::positive_subnormal);
static_assert(classify<binary16>(0x7bff) == NumberClass::positive_normal);
static_assert(classify<binary16>(0x7c00) == NumberClass::positive_infinity);
static_assert(classify<e4m3_fnuz>(0x80) == NumberClass::quiet_nan);
static_assert(classify<e8m0>(0x00) == NumberClass::positive_normal);
static_assert(classify<e2m1>(0x09) == NumberClass::negative_subnormal);

NumberClass expected_class(const oracle::ExactFormat& format, std::uint64_t code) {
  using enum NumberClass;
  const double value = format.value(code);
  const bool negative = std::signbit(value);
  if (std::isnan(value)) return format.is_signalling(code) ? signalling_nan : quiet_nan;
  if (std::isinf(value)) return negative ? negative_infinity : positive_infinity;
  if (value == 0) return negative ? negative_zero : positive_zero;
  if (std::fabs(value) < format.facts().smallest_normal)
    return negative ? negative_subnormal : positive_subnormal;
  return negative ? negative_normal : positive_normal;
}

TEST_CASE("classes of all codes of the formats of at most 16 bits") {
  for_each_format([]<const Format & F>() {
    if constexpr (F.width() <= 16) {
      CAPTURE(name_of(F));
      const oracle::ExactFormat& format = oracle::exact<F>();
      std::uint64_t wrong = 0;
      for (std::uint64_t code = 0; code < format.codes(); ++code) {
        const auto a = static_cast<Bits<F>>(code);
        const NumberClass expected = expected_class(format, code);
        const bool normal =
            expected == NumberClass::negative_normal || expected == NumberClass::positive_normal;
        wrong += classify<F>(a) != expected || is_normal<F>(a) != normal;
      }
      CHECK(wrong == 0);
    }
  });
}

TEST_CASE("how many binary16 codes each class has") {
  std::array<int, 10> counts{};
  for (std::uint32_t code = 0; code < 0x10000; ++code)
    ++counts[static_cast<std::size_t>(classify<binary16>(static_cast<std::uint16_t>(code)))];
  CHECK(counts == std::array<int, 10>{1022, 1024, 1, 30720, 1023, 1, 1, 1023, 30720, 1});
}

}  // namespace
}  // namespace fp16
