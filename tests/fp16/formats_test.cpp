#include "fp16/formats.h"

#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <set>
#include <string>

#include "fp16/codec.h"
#include "fp16/format_names.h"

namespace fp16 {
namespace {

/// From IEEE 754-2019 table 3.5, the OFP8 specification 1.0 table 1, the MX specification 1.0 tables 1 to 7,
/// and, for the fnuz formats, Noune et al., "8-bit numerical formats for deep neural networks", 2022.
struct Limits {
  Format format;
  int width;
  int bias;
  double max;
  double min_normal;
  double min_subnormal;
  double epsilon;
  std::uint64_t finite_values;
};

constexpr std::array published{
    Limits{binary64, 64, 1023, 0x1.fffffffffffffp1023, 0x1p-1022, 0x1p-1074, 0x1p-52, 0xffdfffffffffffff},
    Limits{binary32, 32, 127, 0x1.fffffep127, 0x1p-126, 0x1p-149, 0x1p-23, 0xfeffffff},
    Limits{tf32, 19, 127, 0x1.ffcp127, 0x1p-126, 0x1p-136, 0x1p-10, 2 * 255 * 1024 - 1},
    Limits{bfloat16, 16, 127, 0x1.fep127, 0x1p-126, 0x1p-133, 0x1p-7, 2 * 255 * 128 - 1},
    Limits{binary16, 16, 15, 65504, 0x1p-14, 0x1p-24, 0x1p-10, 63487},
    Limits{e5m2, 8, 15, 57344, 0x1p-14, 0x1p-16, 0.25, 247},
    Limits{e4m3, 8, 7, 448, 0x1p-6, 0x1p-9, 0.125, 253},
    Limits{e5m2_fnuz, 8, 16, 57344, 0x1p-15, 0x1p-17, 0.25, 255},
    Limits{e4m3_fnuz, 8, 8, 240, 0x1p-7, 0x1p-10, 0.125, 255},
    Limits{e3m2, 6, 3, 28, 0.25, 0.0625, 0.25, 63},
    Limits{e2m3, 6, 1, 7.5, 1, 0.125, 0.125, 63},
    Limits{e2m1, 4, 1, 6, 1, 0.5, 0.5, 15},
    Limits{e8m0, 8, 127, 0x1p127, 0x1p-127, 0x1p-127, 1, 255},
};
static_assert(published.size() == formats.size());

TEST_CASE("the limits computed from the rows are the published ones") {
  for (const Limits& expected : published) {
    const Format& format = expected.format;
    CAPTURE(name_of(format));
    CHECK(format.width() == expected.width);
    CHECK(format.bias() == expected.bias);
    CHECK(format.max() == expected.max);
    CHECK(format.min_normal() == expected.min_normal);
    CHECK(format.min_subnormal() == expected.min_subnormal);
    CHECK(format.epsilon() == expected.epsilon);
    CHECK(format.unit_roundoff() == expected.epsilon / 2);
    CHECK(format.finite_values() == expected.finite_values);
    CHECK(format.emax() == std::ilogb(expected.max));
    CHECK(format.emin() == std::ilogb(expected.min_normal));
  }
}

TEST_CASE("decimal digits are those of the standard library's formats") {
  CHECK(binary64.digits10() == std::numeric_limits<double>::digits10);
  CHECK(binary64.max_digits10() == std::numeric_limits<double>::max_digits10);
  CHECK(binary32.digits10() == std::numeric_limits<float>::digits10);
  CHECK(binary32.max_digits10() == std::numeric_limits<float>::max_digits10);
  CHECK(binary16.digits10() == 3);
  CHECK(binary16.max_digits10() == 5);
  CHECK(e4m3.digits10() == 0);
  CHECK(e4m3.max_digits10() == 3);
}

TEST_CASE("counting decoded codes gives the number of finite values, the extremes and no value twice") {
  for_each_format([]<const Format & F>() {
    if constexpr (F.width() <= 19) {
      CAPTURE(name_of(F));
      std::set<double> values;
      std::uint64_t zeros = 0, finite = 0;
      for (std::uint32_t code = 0; code < 1u << F.width(); ++code) {
        const auto bits = static_cast<Bits<F>>(code);
        if (!is_finite<F>(bits)) continue;
        ++finite;
        zeros += is_zero<F>(bits);
        values.insert(decode<F>(bits));
      }
      CHECK(values.size() == F.finite_values());
      CHECK(finite == values.size() + (zeros == 2));
      CHECK(zeros == std::uint64_t{F.has_zero()} + F.has_negative_zero());
      CHECK(*values.rbegin() == F.max());
      CHECK(*values.upper_bound(0.0) == F.min_subnormal());
    }
  });
}

TEST_CASE("names are unique and lead back from the format") {
  std::set<std::string> names;
  for (const NamedFormat& row : formats) {
    names.insert(std::string(row.name));
    CHECK(name_of(row.format) == row.name);
  }
  CHECK(names.size() == formats.size());
  CHECK(name_of(Format{.exponent_bits = 6, .precision = 10}) == "unnamed");
}

TEST_CASE("aliases mean a row, once each, and no alias hides a row") {
  std::set<std::string_view> names;
  for (const NamedFormat& row : formats) {
    names.insert(row.name);
    CHECK(name_in_table(row.name) == row.name);
  }
  for (const NamedFormat& alias : format_aliases) {
    CHECK(names.insert(alias.name).second);
    CHECK(name_in_table(alias.name) == name_of(alias.format));
  }
  CHECK(name_in_table("float16") == "binary16");
  CHECK(name_in_table("FP16") == "binary16");
  CHECK(name_in_table("E4M3") == "e4m3");
  CHECK(name_in_table("Float17") == "Float17");
}

TEST_CASE("rows that cannot exist are told from those that can") {
  static_assert(Format{.exponent_bits = 2, .precision = 3}.is_valid());
  static_assert(!Format{.exponent_bits = 1, .precision = 3}.is_valid());
  static_assert(!Format{.exponent_bits = 5, .precision = 2}.is_valid());
  static_assert(!Format{.exponent_bits = 12, .precision = 53}.is_valid());
  static_assert(!Format{.exponent_bits = 11, .precision = 54}.is_valid());
  static_assert(!Format{.exponent_bits = 0, .precision = 8}.is_valid());
  static_assert(!Format{.exponent_bits = 11, .precision = 53, .encoding = Encoding::finite}.is_valid());
  static_assert(!Format{.exponent_bits = 11, .precision = 53, .encoding = Encoding::fnuz}.is_valid());
  static_assert(!Format{.exponent_bits = 4, .precision = 1, .encoding = Encoding::finite_nan}.is_valid());
  static_assert(!Format{.exponent_bits = 8, .precision = 2, .encoding = Encoding::power_of_two}.is_valid());
}

}  // namespace
}  // namespace fp16
