#include "experiments/gpu/gpu_throughput/selection.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <ranges>
#include <stdexcept>

#include "experiments/gpu/gpu_throughput/products.h"
#include "experiments/gpu/gpu_throughput/streaming.h"
#include "fp16/names.h"

namespace experiments::gpu_throughput {
namespace {

std::vector<std::string> all_names() {
  std::vector<std::string> names = streaming_row_names();
  std::ranges::copy(product_row_names(), std::back_inserter(names));
  return names;
}

/// At any size.
std::vector<Comparison> comparisons_of(const std::string& name) {
  std::vector<Comparison> comparisons = streaming_comparisons(name);
  std::ranges::move(product_comparisons(name, judged_edge), std::back_inserter(comparisons));
  return comparisons;
}

}  // namespace

bool Selection::wants(std::string_view row) const {
  return std::ranges::find(rows, row) != rows.end();
}

bool Selection::wants_any(const std::vector<std::string>& names) const {
  return std::ranges::any_of(names, [&](const std::string& name) { return wants(name); });
}

Selection selection_of(const std::string& names) {
  const std::vector<std::string> all = all_names();
  if (names == "all") return {.rows = all};
  Selection selection{.rows = {}};
  for (const auto& part : std::views::split(names, ',')) {
    const std::string name(part.begin(), part.end());
    if (std::ranges::find(all, name) == all.end())
      throw std::invalid_argument(names::unknown_name_message("row", name, all));
    selection.rows.push_back(name);
    for (const Comparison& comparison : comparisons_of(name)) selection.rows.push_back(comparison.peer);
  }
  return selection;
}

std::vector<int> edges_of(int edge) {
  std::vector<int> edges;
  if (edge >= 4) edges.push_back(edge / 4);
  edges.insert(edges.end(), {edge, 2 * edge});
  return edges;
}

std::string row_help() {
  return fmt::format("Rows: {}", fmt::join(all_names(), ", "));
}

}  // namespace experiments::gpu_throughput
