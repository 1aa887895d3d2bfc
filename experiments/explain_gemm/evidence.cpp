#include "experiments/explain_gemm/evidence.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <tuple>

namespace experiments::explain_gemm {
namespace {

Verdict verdict_of(const Explanation& explanation, double chance_survivors) {
  const std::size_t candidates = explanation.candidates();
  if (candidates == 0 && explanation.not_refuted == 0) return Verdict::unexplained;
  if (chance_survivors >= most_chance_survivors) return Verdict::undetermined;
  if (candidates > 1) return Verdict::ambiguous;
  return candidates == 1 && explanation.not_refuted == 0 ? Verdict::explained : Verdict::undetermined;
}

/// How many chance survivors `times` as many outputs leave on average: where a hypothesis then misses x of them with
/// Poisson's probabilities, (2/3)^(x + 1) is 2/3 e^(-mean / 3) on average. One that has missed nothing is taken to miss
/// one in twice as many.
double expected_survivors(const Explanation& explanation, double times) {
  const auto outputs = static_cast<double>(explanation.best().outputs);
  const auto left = [&](double misses, std::size_t seen) {
    return 2 * std::exp(-misses * outputs / static_cast<double>(seen) * times / 3) / 3;
  };
  double sum = 0;
  for (const Tried& tried : explanation.tried) {
    if (tried.unexplained() > 0) sum += left(std::max(static_cast<double>(tried.misses), 0.5), tried.outputs);
  }
  const auto others = static_cast<double>(explanation.candidates() - 1);
  return sum + others * left(0.5, explanation.best().outputs);
}

/// To a quarter.
double outputs_needed(const Explanation& explanation) {
  double times = 1;
  while (expected_survivors(explanation, times) >= most_chance_survivors) times *= 1.25;
  return times;
}

}  // namespace

std::string_view name_of(Verdict verdict) {
  constexpr std::array<std::string_view, 4> names{"explained", "ambiguous", "undetermined", "unexplained"};
  return names[static_cast<std::size_t>(verdict)];
}

Evidence evidence_of(const Explanation& explanation) {
  const std::size_t outputs = explanation.best().outputs;
  Evidence evidence{.verdict = {}, .chance_survivors = 0, .rival = {}, .more_outputs = {}};
  // Samples drop what is farther off.
  const auto distance = [](const Tried& tried) {
    return std::tuple(-static_cast<double>(tried.outputs), tried.unexplained(),
                      !tried.hypothesis.accumulator->is_chain());
  };
  for (std::size_t i = 0; i < explanation.tried.size(); ++i) {
    const Tried& tried = explanation.tried[i];
    if (tried.unexplained() == 0) continue;
    evidence.chance_survivors += chance_of_no_miss(tried, outputs);
    if (!evidence.rival || distance(tried) < distance(explanation.tried[*evidence.rival])) evidence.rival = i;
  }
  evidence.verdict = verdict_of(explanation, evidence.chance_survivors);
  if (evidence.verdict == Verdict::undetermined && explanation.not_refuted == 0)
    evidence.more_outputs = outputs_needed(explanation);
  return evidence;
}

}  // namespace experiments::explain_gemm
