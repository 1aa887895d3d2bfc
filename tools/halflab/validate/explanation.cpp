#include "tools/halflab/validate/explanation.h"

#include <algorithm>
#include <cstdint>
#include <set>
#include <utility>

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

AllContradictions& AllContradictions::operator+=(const AllContradictions& other) {
  for (std::size_t i = 0; i < of.size(); ++i) of[i] += other.of[i];
  return *this;
}

std::vector<DeviationSet> explanations(const Counts& counts, const std::vector<Deviation>& deviations) {
  constexpr int most_together = 3;
  if (counts.differing == 0 || counts.by_deviations.contains(0)) return {};
  std::vector<DeviationSet> best;
  const auto look = [&](auto&& self, DeviationSet& chosen, std::size_t from, int left) -> void {
    if (explains_all(counts, chosen)) {
      const auto contradictions = [&](const DeviationSet& set) {
        std::uint64_t results = 0;
        for (const std::size_t i : set) results += counts.contradictions[i];
        return results;
      };
      const auto place = [&](const DeviationSet& set) { return std::pair(set.size(), contradictions(set)); };
      if (sampling * contradictions(chosen) > counts.differing) return;
      if (!best.empty() && place(chosen) > place(best.front())) return;
      if (!best.empty() && place(chosen) < place(best.front())) best.clear();
      best.push_back(chosen);
      return;
    }
    const bool has_rounding =
        std::ranges::any_of(chosen, [&](std::size_t i) { return deviations[i].is_rounding; });
    for (std::size_t i = from; left > 0 && i < deviations.size(); ++i) {
      if (has_rounding && deviations[i].is_rounding) continue;
      chosen.push_back(i);
      self(self, chosen, i + 1, left - 1);
      chosen.pop_back();
    }
  };
  DeviationSet chosen;
  look(look, chosen, 0, most_together);
  return best;
}

std::vector<std::size_t> members_of(const std::vector<DeviationSet>& sets) {
  std::set<std::size_t> members;
  for (const DeviationSet& each : sets) members.insert(each.begin(), each.end());
  return {members.begin(), members.end()};
}

const DeviationSet& best_of(const std::vector<DeviationSet>& sets, const AllContradictions& contradictions) {
  return *std::ranges::min_element(sets, {}, [&](const DeviationSet& each) {
    std::uint64_t results = 0;
    for (const std::size_t i : each) results += contradictions.of[i].results;
    return results;
  });
}

}  // namespace halflab::validate
