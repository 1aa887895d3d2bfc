#pragma once
/// Addresses of states of the teaching page (tools/page).

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

#include "tools/halflab/show/findings.h"

namespace halflab::show {

/// "#operation&format=binary16&value=2048%2B1": a chapter, and parameters whose values are encoded for an address.
std::string page_fragment(std::string_view chapter,
                          std::initializer_list<std::pair<std::string_view, std::string_view>> parameters);

/// The state that shows the same: in the chapter of numbers or, where something was computed, in that of operations.
std::string page_fragment(const Findings& found);

}  // namespace halflab::show
