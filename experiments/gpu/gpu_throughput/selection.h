#pragma once
/// Which rows and sizes a user wants.

#include <string>
#include <string_view>
#include <vector>

namespace experiments::gpu_throughput {

struct Selection {
  std::vector<std::string> rows;  ///< with those that they are compared with

  bool wants(std::string_view row) const;
  bool wants_any(const std::vector<std::string>& names) const;
};

/// Names separated by commas, or "all". Throws std::invalid_argument, one line, for a name that no row has.
Selection selection_of(const std::string& names);

/// The edges of matrices that are multiplied: `edge`, and for a look at other sizes a quarter of it and its double.
std::vector<int> edges_of(int edge);

/// The rows' names, for --help.
std::string row_help();

}  // namespace experiments::gpu_throughput
