#include "experiments/training/all_reduce_cost.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <vector>

#include "experiments/training/judgements.h"

namespace experiments {
namespace {

constexpr std::string_view accuracy = "final_accuracy";

/// "dynamic +0.1 [-0.3, 0.5]".
std::string clause(const AllReduceCost& cost, std::string_view quality) {
  const int decimals = quality == accuracy ? 2 : 1;
  return fmt::format("{} {}", cost.name, signed_with_interval(cost.of(quality), 100, decimals));
}

/// Whether the runs end elsewhere, by more than chance.
std::string judgement(std::span<const AllReduceCost> costs, std::string_view quality) {
  if (costs.front().runs.results.size() < Estimate::enough_values)
    return fmt::format("whether anything is judged from {} seeds on", Estimate::enough_values);
  Judgements judgements;
  for (const AllReduceCost& cost : costs) {
    if (cost.runs.diverged_runs() > 0)
      judgements.diverged.push_back(cost.name);
    else
      judgements.add(cost.name, cost.of(quality), quality != accuracy);
  }
  return judgements.text("the same all-reduced in FP32");
}

}  // namespace

bool rounds_in_all_reduce(const sim::DataParallel& parallel) {
  return parallel.ranks > 1 && parallel.all_reduce.precision != sim::AllReducePrecision::fp32;
}

sim::DataParallel all_reduced_in_fp32(sim::DataParallel parallel) {
  parallel.all_reduce.precision = sim::AllReducePrecision::fp32;
  return parallel;
}

Estimate AllReduceCost::of(std::string_view quality) const {
  const std::vector<double> wide = in_fp32.values(quality), rounded = runs.values(quality);
  return quality == accuracy ? estimate_difference(wide, rounded)
                             : estimate_relative_difference(wide, rounded);
}

std::string all_reduce_cost_sentence(const sim::DataParallel& parallel, std::span<const AllReduceCost> costs,
                                     std::string_view quality) {
  std::vector<std::string> clauses;
  for (const AllReduceCost& cost : costs) clauses.push_back(clause(cost, quality));
  const bool is_accuracy = quality == accuracy;
  return fmt::format(
      "What an all-reduce in {} over {} ranks costs: {}. {} against an all-reduce in FP32, in {}, in pairs "
      "of the same seed: {}.",
      sim::name_of(parallel.all_reduce.precision), parallel.ranks, judgement(costs, quality),
      is_accuracy ? "Test accuracy" : "Final test loss", is_accuracy ? "points" : "%",
      fmt::join(clauses, ", "));
}

}  // namespace experiments
