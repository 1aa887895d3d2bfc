#pragma once
/// The table of named formats. A new format is one row.

#include <array>
#include <string_view>

#include "fp16/format.h"

namespace fp16 {

inline constexpr Format binary16{.exponent_bits = 5, .precision = 11};
inline constexpr Format binary32{.exponent_bits = 8, .precision = 24};
inline constexpr Format binary64{.exponent_bits = 11, .precision = 53};

struct NamedFormat {
  std::string_view name;
  Format format;
};

inline constexpr std::array formats{
    NamedFormat{"binary64", binary64},
    NamedFormat{"binary32", binary32},
    NamedFormat{"binary16", binary16},
};

/// The row's name; "unnamed" for a format that is not in the table.
constexpr std::string_view name_of(Format format) {
  for (const NamedFormat& row : formats) {
    if (row.format == format) return row.name;
  }
  return "unnamed";
}

}  // namespace fp16
