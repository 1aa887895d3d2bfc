#pragma once
/// What heads of columns mean that do not say it themselves.

#include <string_view>

namespace experiments {

/// The meaning of a column of a verdict's table, in one line; empty where the head says all.
std::string_view meaning_of(std::string_view column);

}  // namespace experiments
