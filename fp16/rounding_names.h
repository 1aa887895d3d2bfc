#pragma once
/// The roundings by the names that options and files give them.

#include <array>
#include <string_view>

#include "rounding.h"

namespace fp16 {

struct NamedRounding {
  std::string_view name;
  Rounding rounding;
};

/// Every rounding, in the order of the enumeration.
inline constexpr std::array named_roundings{NamedRounding{"nearest_even", Rounding::nearest_even},
                                            NamedRounding{"nearest_away", Rounding::nearest_away},
                                            NamedRounding{"toward_zero", Rounding::toward_zero},
                                            NamedRounding{"toward_positive", Rounding::toward_positive},
                                            NamedRounding{"toward_negative", Rounding::toward_negative},
                                            NamedRounding{"to_odd", Rounding::to_odd},
                                            NamedRounding{"stochastic", Rounding::stochastic}};

}  // namespace fp16
