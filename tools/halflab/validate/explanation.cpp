#include "tools/halflab/validate/explanation.h"

#include <algorithm>
#include <array>
#include <cstdint>

namespace halflab::validate {
namespace {

/// Whether each set of deviations that has differing results is explained by one of the chosen.
bool explains_all(const Counts& counts, const DeviationSet& chosen) {
  std::uint32_t set = 0;
  for (const std::size_t i : chosen) set |= 1u << i;
  return std::ranges::all_of(counts.by_deviations, [set](const auto& row) { return (row.first & set) != 0; });
}

}  // namespace

void Contradictions::add(std::uint64_t index) {
  if (results++ == 0 || index < first) first = index;
}

Contradictions& Contradictions::operator+=(const Contradictions& other) {
  if (other.results == 0) return *this;
  first = results == 0 ? other.first : std::min(first, other.first);
  results += other.results;
  return *this;
}

std::vector<DeviationSet> explanations(const Counts& counts, const std::vector<Deviation>& deviations) {
  constexpr std::size_t most_together = 3;
  if (counts.differing == 0 || counts.by_deviations.contains(0)) return {};
  std::array<std::vector<DeviationSet>, 2> best;  // without a range, with one
  std::size_t smallest = most_together;
  const auto contradictions = [&](const DeviationSet& set) {
    std::uint64_t results = 0;
    for (const std::size_t i : set) results += counts.contradictions[i];
    return results;
  };
  const auto keep = [&](const DeviationSet& set) {
    if (sampling * contradictions(set) > counts.differing) return;
    if (set.size() < smallest) best = {};
    smallest = set.size();
    std::vector<DeviationSet>& alike = best[has_range(deviations, set)];
    if (!alike.empty() && contradictions(set) > contradictions(alike.front())) return;
    if (!alike.empty() && contradictions(set) < contradictions(alike.front())) alike.clear();
    alike.push_back(set);
  };
  const auto look = [&](auto&& self, DeviationSet& chosen, std::size_t from) -> void {
    if (explains_all(counts, chosen)) return keep(chosen);
    const bool has_rounding =
        std::ranges::any_of(chosen, [&](std::size_t i) { return deviations[i].is_rounding; });
    for (std::size_t i = from; chosen.size() < smallest && i < deviations.size(); ++i) {
      if (has_rounding && deviations[i].is_rounding) continue;
      chosen.push_back(i);
      self(self, chosen, i + 1);
      chosen.pop_back();
    }
  };
  DeviationSet chosen;
  look(look, chosen, 0);
  best[0].insert(best[0].end(), best[1].begin(), best[1].end());
  return best[0];
}

}  // namespace halflab::validate
