#pragma once
/// The table of named formats. A new format is one row.

#include <array>
#include <cstddef>
#include <string_view>
#include <utility>

#include "format.h"

namespace fp16 {

// IEEE 754-2019 table 3.5, and two formats of machine learning with IEEE's special values.
inline constexpr Format binary64{.exponent_bits = 11, .precision = 53};
inline constexpr Format binary32{.exponent_bits = 8, .precision = 24};
/// NVIDIA's TF32, as the 19 bits that its tensor cores read: a binary32 number without its last 13 bits.
inline constexpr Format tf32{.exponent_bits = 8, .precision = 11};
inline constexpr Format bfloat16{.exponent_bits = 8, .precision = 8};
inline constexpr Format binary16{.exponent_bits = 5, .precision = 11};

// OCP 8-bit Floating Point Specification (OFP8) revision 1.0, and the variants of Graphcore and AMD.
inline constexpr Format e5m2{.exponent_bits = 5, .precision = 3};
inline constexpr Format e4m3{.exponent_bits = 4, .precision = 4, .encoding = Encoding::finite_nan};
inline constexpr Format e5m2_fnuz{.exponent_bits = 5, .precision = 3, .encoding = Encoding::fnuz};
inline constexpr Format e4m3_fnuz{.exponent_bits = 4, .precision = 4, .encoding = Encoding::fnuz};

// OCP Microscaling Formats (MX) Specification version 1.0: elements, and the scale of a block of them.
inline constexpr Format e3m2{.exponent_bits = 3, .precision = 3, .encoding = Encoding::finite};
inline constexpr Format e2m3{.exponent_bits = 2, .precision = 4, .encoding = Encoding::finite};
inline constexpr Format e2m1{.exponent_bits = 2, .precision = 2, .encoding = Encoding::finite};
inline constexpr Format e8m0{.exponent_bits = 8, .precision = 1, .encoding = Encoding::power_of_two};

struct NamedFormat {
  std::string_view name;
  const Format& format;
};

inline constexpr std::array formats{
    NamedFormat{"binary64", binary64},   NamedFormat{"binary32", binary32},
    NamedFormat{"tf32", tf32},           NamedFormat{"bfloat16", bfloat16},
    NamedFormat{"binary16", binary16},   NamedFormat{"e5m2", e5m2},
    NamedFormat{"e4m3", e4m3},           NamedFormat{"e5m2_fnuz", e5m2_fnuz},
    NamedFormat{"e4m3_fnuz", e4m3_fnuz}, NamedFormat{"e3m2", e3m2},
    NamedFormat{"e2m3", e2m3},           NamedFormat{"e2m1", e2m1},
    NamedFormat{"e8m0", e8m0},
};

static_assert([] {
  for (const NamedFormat& row : formats) {
    if (!row.format.is_valid()) return false;
  }
  return true;
}());

/// The row's name; "unnamed" for a format that is not in the table.
constexpr std::string_view name_of(Format format) {
  for (const NamedFormat& row : formats) {
    if (row.format == format) return row.name;
  }
  return "unnamed";
}

/// Calls visit.template operator()<F>() for every row F of the table, in its order.
template <typename Visit>
constexpr void for_each_format(Visit&& visit) {
  [&]<std::size_t... row>(std::index_sequence<row...>) {
    (visit.template operator()<formats[row].format>(), ...);
  }
  (std::make_index_sequence<formats.size()>());
}

}  // namespace fp16
