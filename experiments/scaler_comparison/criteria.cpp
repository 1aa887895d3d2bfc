#include "experiments/scaler_comparison/criteria.h"

#include <cmath>
#include <limits>

namespace experiments::scaler_comparison {
namespace {

/// True when one scale is an octave below another; neither of two infinities is below the other.
bool is_octave_below(double scale_log2, double other_log2) {
  return scale_log2 != other_log2 && scale_log2 <= other_log2 - 1;
}

double mean_of_numbers(const CriterionValues& values) {
  double sum = 0, count = 0;
  for (const double value : values) {
    if (std::isnan(value)) continue;
    sum += value;
    ++count;
  }
  return sum / count;
}

}  // namespace

std::vector<Recovery> recoveries(std::span<const ScaleStep> steps, double final_scale_log2) {
  const auto scale_before = [&](std::size_t step) {
    return step < steps.size() ? steps[step].scale_log2 : final_scale_log2;
  };
  std::vector<Recovery> result;
  for (std::size_t step = 0; step < steps.size(); ++step) {
    if (!steps[step].disturbed && !steps[step].skipped) continue;
    const std::size_t cause = step;
    while (step < steps.size() && is_octave_below(scale_before(step + 1), steps[cause].scale_log2)) ++step;
    const bool complete = step < steps.size();
    result.push_back(
        {.step = cause, .steps = (complete ? step : steps.size() - 1) - cause, .complete = complete});
  }
  return result;
}

double mean_recovery_steps(std::span<const Recovery> recoveries) {
  double sum = 0;
  for (const Recovery& recovery : recoveries) sum += static_cast<double>(recovery.steps);
  return recoveries.empty() ? 0 : sum / static_cast<double>(recoveries.size());
}

std::vector<double> shared_ranks(std::span<const double> values) {
  std::vector<double> ranks;
  for (const double value : values) {
    double less = 0, equal = 0;
    for (const double other : values) {
      less += other < value;
      equal += other == value;
    }
    ranks.push_back(std::isnan(value) ? value : less + (equal + 1) / 2);
  }
  return ranks;
}

std::vector<Standing> standings(std::span<const CriterionValues> strategies) {
  std::vector<Standing> result(strategies.size());
  for (std::size_t place = 0; place < criteria.size(); ++place) {
    std::vector<double> values;
    for (const CriterionValues& strategy : strategies) values.push_back(strategy[place]);
    const std::vector<double> ranks = shared_ranks(values);
    for (std::size_t i = 0; i < result.size(); ++i) result[i].ranks[place] = ranks[i];
  }
  std::vector<double> means;
  for (Standing& standing : result) means.push_back(standing.mean_of_ranks = mean_of_numbers(standing.ranks));
  const std::vector<double> ranks = shared_ranks(means);
  for (std::size_t i = 0; i < result.size(); ++i) result[i].rank = ranks[i];
  return result;
}

}  // namespace experiments::scaler_comparison
