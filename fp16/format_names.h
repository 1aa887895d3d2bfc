#pragma once
/// Names that mean a format: those of the table, and what C, numpy, ml_dtypes and PyTorch call them.

#include <algorithm>
#include <array>
#include <string_view>

#include "formats.h"

namespace fp16 {

/// Other names of formats of the table; results always carry the table's.
inline constexpr std::array format_aliases{
    NamedFormat{"float64", binary64},
    NamedFormat{"double", binary64},
    NamedFormat{"fp64", binary64},
    NamedFormat{"float32", binary32},
    NamedFormat{"single", binary32},
    NamedFormat{"fp32", binary32},
    NamedFormat{"float16", binary16},
    NamedFormat{"half", binary16},
    NamedFormat{"fp16", binary16},
    NamedFormat{"bf16", bfloat16},
    NamedFormat{"float8_e5m2", e5m2},
    NamedFormat{"float8_e4m3fn", e4m3},
    NamedFormat{"float8_e5m2fnuz", e5m2_fnuz},
    NamedFormat{"float8_e4m3fnuz", e4m3_fnuz},
    NamedFormat{"float6_e3m2fn", e3m2},
    NamedFormat{"float6_e2m3fn", e2m3},
    NamedFormat{"fp4", e2m1},
    NamedFormat{"float4_e2m1fn", e2m1},
    NamedFormat{"float8_e8m0fnu", e8m0},
};

/// The table's name where `name` is one of its rows or an alias, in capitals or not, else `name`.
constexpr std::string_view name_in_table(std::string_view name) {
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; };
  const auto is_meant = [&](const NamedFormat& row) {
    return std::ranges::equal(row.name, name, {}, {}, lower);
  };
  const auto alias = std::ranges::find_if(format_aliases, is_meant);
  if (alias != format_aliases.end()) return name_of(alias->format);
  const auto row = std::ranges::find_if(formats, is_meant);
  return row == formats.end() ? name : row->name;
}

}  // namespace fp16
