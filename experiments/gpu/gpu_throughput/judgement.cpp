#include "experiments/gpu/gpu_throughput/judgement.h"

#include <algorithm>

namespace experiments::gpu_throughput {
namespace {

const Row* find_peer(const std::vector<Row>& rows, const Row& row, const std::string& name) {
  const auto found = std::ranges::find_if(
      rows, [&](const Row& other) { return other.group == row.group && other.name == name; });
  return found == rows.end() ? nullptr : &*found;
}

Outcome outcome_of(const Judgement& judgement) {
  if (judgement.ratio == 0) return Outcome::not_judged;
  if (!judgement.target) return Outcome::no_target;
  if (std::min(judgement.row->times->median_s, judgement.peer->times->median_s) < least_judged_s)
    return Outcome::too_short;
  return judgement.ratio >= *judgement.target ? Outcome::reached : Outcome::missed;
}

Judgement judgement_of(const std::vector<Row>& rows, const Row& row, const Comparison& comparison) {
  Judgement judgement{.row = &row,
                      .peer = find_peer(rows, row, comparison.peer),
                      .peer_name = comparison.peer,
                      .target = comparison.target,
                      .ratio = 0,
                      .outcome = Outcome::not_judged,
                      .key = row.key()};
  if (&comparison != &row.comparisons.front()) judgement.key += ".over_" + comparison.peer;
  if (row.times && judgement.peer != nullptr && judgement.peer->times)
    judgement.ratio = row.rate() / judgement.peer->rate();
  judgement.outcome = outcome_of(judgement);
  return judgement;
}

}  // namespace

std::string_view name_of(Outcome outcome) {
  switch (outcome) {
    case Outcome::reached:
      return "reached";
    case Outcome::missed:
      return "NOT REACHED";
    case Outcome::no_target:
      return "";
    case Outcome::too_short:
      return "too short to judge";
    case Outcome::not_judged:
      return "not judged";
  }
  return "";
}

std::vector<Judgement> judge(const std::vector<Row>& rows) {
  std::vector<Judgement> judgements;
  for (const Row& row : rows) {
    for (const Comparison& comparison : row.comparisons)
      judgements.push_back(judgement_of(rows, row, comparison));
  }
  return judgements;
}

}  // namespace experiments::gpu_throughput
