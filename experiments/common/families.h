#pragma once
/// The families of named variants that options choose from and `--list` prints.

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace experiments {

struct Family {
  std::string_view name;                ///< as in `--list formats`
  std::vector<std::string> (*names)();  ///< the variants' names in the order of their registry
};

std::span<const Family> families();

/// The names of a family's variants. Throws std::invalid_argument, naming the families, for an unknown one.
std::vector<std::string> names_in(std::string_view family);

}  // namespace experiments
