#pragma once
/// Which operations a run is about.

#include <string>
#include <string_view>
#include <vector>

namespace experiments::validate_gpu {

/// The name of what no row stands for: recorded tensor-core steps.
inline constexpr std::string_view recorded_steps = "recorded_steps";

/// Every operation, a line for each family.
std::string families_text();

/// From a list, separated by commas, of operations, families as the verdict has them, or "all". Throws
/// std::invalid_argument, naming the nearest one, for a name that is none.
std::vector<std::string> chosen_names(std::string_view list);

}  // namespace experiments::validate_gpu
