#include "tools/halflab/allreduce/options.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <ranges>
#include <stdexcept>
#include <string_view>

#include "fp16/names.h"

namespace halflab::allreduce {
namespace {

template <class Variants>
std::vector<std::string> names_of(const Variants& variants) {
  std::vector<std::string> names;
  for (const auto variant : variants) names.emplace_back(sim::name_of(variant));
  return names;
}

/// Those that an option's text names, with commas between them, or all.
template <class Variants>
auto chosen(std::string_view option, std::string_view family, const std::string& text,
            const Variants& variants) {
  std::vector<typename Variants::value_type> found;
  if (text == "all") return std::vector<typename Variants::value_type>(variants.begin(), variants.end());
  for (const auto part : std::views::split(text, ',')) {
    const std::string_view name(part.begin(), part.end());
    const auto variant =
        std::ranges::find(variants, name, [](auto candidate) { return sim::name_of(candidate); });
    if (variant == variants.end())
      experiments::from_option(option, [&] { names::throw_unknown_name(family, name, names_of(variants)); });
    if (std::ranges::find(found, *variant) == found.end()) found.push_back(*variant);
  }
  return found;
}

}  // namespace

void bind(experiments::CommandLine& command_line, Options& options) {
  halflab::bind(command_line, options.inputs, 2);
  const auto listed = [](const auto& variants) {
    return fmt::format("{}", fmt::join(names_of(variants), ", "));
  };
  command_line.add("--orders", options.orders,
                   fmt::format("of the additions, with commas between them, or all: {}",
                               listed(sim::all_reduce_algorithms)),
                   "ORDERS");
  command_line.add("--precisions", options.precisions,
                   fmt::format("likewise: {}", listed(sim::all_reduce_precisions)), "PRECISIONS");
  command_line.add("--division", options.division,
                   fmt::format("by the number of ranks, of the values or of the sum: {}",
                               listed(sim::all_reduce_divisions)),
                   "WHERE");
}

std::vector<sim::AllReduce> kinds_of(const Options& options) {
  const auto orders = chosen("--orders", "order", options.orders, sim::all_reduce_algorithms);
  const auto precisions = chosen("--precisions", "precision", options.precisions, sim::all_reduce_precisions);
  const auto divisions = chosen("--division", "division", options.division, sim::all_reduce_divisions);
  if (divisions.size() != 1)
    throw std::invalid_argument(fmt::format("--division: '{}' is not one; allowed: {}", options.division,
                                            fmt::join(names_of(sim::all_reduce_divisions), ", ")));
  std::vector<sim::AllReduce> kinds;
  for (const sim::AllReduceAlgorithm order : orders) {
    for (const sim::AllReducePrecision precision : precisions)
      kinds.push_back({.algorithm = order, .precision = precision, .division = divisions.front()});
  }
  return kinds;
}

}  // namespace halflab::allreduce
