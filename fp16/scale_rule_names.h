#pragma once
/// The rules of scales by the names that options give them.

#include <array>
#include <cstddef>
#include <string_view>

#include "block.h"

namespace fp16 {

struct NamedScaleRule {
  std::string_view name;
  ScaleRule rule;
};

/// Every rule, in the order of the enumeration.
inline constexpr std::array named_scale_rules = [] {
  std::array<NamedScaleRule, scale_rules.size()> named{};
  for (std::size_t i = 0; i < named.size(); ++i) named[i] = {name_of(scale_rules[i]), scale_rules[i]};
  return named;
}();

}  // namespace fp16
