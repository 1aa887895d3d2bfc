#include "experiments/gpu/validate_gpu/selection.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <stdexcept>

#include "experiments/gpu/validate_gpu/operations.h"
#include "fp16/names.h"

namespace experiments::validate_gpu {
namespace {

/// As the verdict has it.
struct Family {
  std::string name;
  std::vector<std::string> operations;
};

const std::vector<Family>& families() {
  static const std::vector<Family> all = [] {
    std::vector<Family> found;
    const auto put = [&](std::string_view family, std::string_view operation) {
      auto place = std::ranges::find(found, family, &Family::name);
      if (place == found.end()) place = found.insert(place, {.name = std::string(family), .operations = {}});
      place->operations.emplace_back(operation);
    };
    for (const Operation& operation : operations()) put(operation.family, operation.name);
    put("tensor core", recorded_steps);
    return found;
  }();
  return all;
}

/// The operations that an operation's name, a family's or "all" stands for; none for another name.
std::vector<std::string> operations_called(std::string_view name) {
  std::vector<std::string> names;
  for (const Family& family : families()) {
    for (const std::string& operation : family.operations) {
      if (name == "all" || name == family.name || name == operation) names.push_back(operation);
    }
  }
  return names;
}

/// What stands before the comma; a family's name may hold one itself.
std::string first_name(std::string_view list) {
  for (const Family& family : families()) {
    if (list == family.name || list.starts_with(family.name + ',')) return family.name;
  }
  return std::string(list.substr(0, list.find(',')));
}

[[noreturn]] void refuse_name(const std::string& name) {
  std::vector<std::string> known = operations_called("all");
  for (const Family& family : families()) known.push_back(family.name);
  const auto nearest = names::nearest_name(name, known);
  throw std::invalid_argument(
      fmt::format("unknown operation '{}'; {}allowed: all, families, or names that --help lists", name,
                  nearest ? "did you mean '" + *nearest + "'? " : ""));
}

}  // namespace

std::string families_text() {
  std::string text;
  for (const Family& family : families())
    text += fmt::format("\n{}: {}", family.name, fmt::join(family.operations, ", "));
  return text;
}

std::vector<std::string> chosen_names(std::string_view list) {
  std::vector<std::string> chosen;
  while (true) {
    const std::string name = first_name(list);
    const std::vector<std::string> named = operations_called(name);
    if (named.empty()) refuse_name(name);
    chosen.insert(chosen.end(), named.begin(), named.end());
    if (name.size() == list.size()) return chosen;
    list.remove_prefix(name.size() + 1);
  }
}

}  // namespace experiments::validate_gpu
