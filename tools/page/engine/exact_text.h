#pragma once
/// Exact numbers in the words of no language.

#include <fmt/format.h>

#include <string>
#include <string_view>

#include "tools/halflab/show/findings.h"

namespace halflab::page {

/// What is rounded, in decimal: "2049", and "≈ 0.333" for what the library writes as "about 0.333".
inline std::string exact_text(const show::Findings& found) {
  constexpr std::string_view about = "about ";
  return found.exact_text.starts_with(about) ? fmt::format("≈ {}", found.exact_text.substr(about.size()))
                                             : found.exact_text;
}

}  // namespace halflab::page
