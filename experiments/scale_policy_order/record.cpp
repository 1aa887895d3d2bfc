#include "experiments/scale_policy_order/record.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string>
#include <vector>

namespace experiments::scale_policy_order {
namespace {

/// "backward 1, update": calls of what does not come first are numbered, from 0.
std::string words(const std::vector<Call>& calls) {
  std::vector<std::string> names;
  for (const Call& call : calls)
    names.push_back(call.which == 0 ? std::string(name_of(call.action))
                                    : fmt::format("{} {}", name_of(call.action), call.which));
  return fmt::format("{}", fmt::join(names, ", "));
}

std::size_t count(const Result& result, bool StepMeasurement::*what) {
  return static_cast<std::size_t>(std::ranges::count_if(result.steps, what));
}

void write_recipes(RunRecord& record, const Findings& found) {
  Table& table = record.table("recipes", {"recipe",
                                          "right_recipe",
                                          "optimizer",
                                          "calls_each_micro_batch",
                                          "calls_at_boundary",
                                          "pytorch",
                                          "predicted_formula",
                                          "predicted_factor_median",
                                          "predicted_factor_lowest",
                                          "predicted_factor_highest",
                                          "measured_factor_median",
                                          "measured_factor_lowest",
                                          "measured_factor_highest",
                                          "measured_over_predicted_median",
                                          "measured_over_predicted_lowest",
                                          "measured_over_predicted_highest",
                                          "cosine_median",
                                          "predicted_loss_ratio_median",
                                          "measured_loss_ratio_median",
                                          "steps_measured",
                                          "steps_right_skips",
                                          "steps_overflow_unseen",
                                          "final_loss_mean",
                                          "final_loss_half_width",
                                          "difference_mean",
                                          "difference_half_width",
                                          "final_accuracy_mean",
                                          "diverged_runs",
                                          "runs"});
  for (const Result& result : found.results) {
    const Recipe& recipe = *result.recipe;
    const Spread predicted = spread(result, &StepMeasurement::predicted);
    const Spread factor = spread(result, &StepMeasurement::factor);
    const Spread agreement = agreement_of(result);
    const Estimate loss = estimate(result.losses()), difference = found.difference(result);
    table.row({recipe.name,
               recipe.right,
               result.optimizer,
               words(recipe.each_micro_batch),
               words(recipe.at_boundary),
               pytorch_answer(recipe),
               recipe.formula,
               predicted.median,
               predicted.lowest,
               predicted.highest,
               factor.median,
               factor.lowest,
               factor.highest,
               agreement.median,
               agreement.lowest,
               agreement.highest,
               spread(result, &StepMeasurement::cosine).median,
               spread(result, &StepMeasurement::predicted_loss_ratio).median,
               spread(result, &StepMeasurement::loss_ratio).median,
               result.steps.size(),
               result.steps.size() - count(result, &StepMeasurement::right_applied),
               count(result, &StepMeasurement::unseen),
               loss.mean,
               loss.half_width,
               difference.mean,
               difference.half_width,
               estimate(result.accuracies()).mean,
               result.diverged_runs(),
               result.runs.size()});
  }
}

void write_runs(RunRecord& record, const Findings& found) {
  Table& table =
      record.table("runs", {"recipe", "optimizer", "seed", "final_loss", "final_accuracy", "steps_applied",
                            "steps_skipped", "steps_overflow_unseen", "final_scale"});
  for (const Result& result : found.results) {
    for (const RunResult& run : result.runs) {
      table.row({result.recipe->name, result.optimizer, run.seed, run.loss, run.accuracy, run.applied,
                 run.skipped, run.unseen, run.final_scale});
    }
  }
}

void write_steps(RunRecord& record, const Findings& found) {
  Table& table =
      record.table("steps", {"recipe", "optimizer", "step", "scale", "predicted_factor", "measured_factor",
                             "cosine", "predicted_loss_ratio", "measured_loss_ratio", "right_applied",
                             "applied", "overflow_unseen"});
  for (const Result& result : found.results) {
    for (const StepMeasurement& step : result.steps) {
      table.row({result.recipe->name, result.optimizer, step.step, step.scale, step.predicted, step.factor,
                 step.cosine, step.predicted_loss_ratio, step.loss_ratio, int{step.right_applied},
                 int{step.applied}, int{step.unseen}});
    }
  }
}

}  // namespace

void write_tables(RunRecord& record, const Findings& found) {
  write_recipes(record, found);
  write_runs(record, found);
  write_steps(record, found);
}

void write_summary(RunRecord& record, const Findings& found) {
  for (const Result& result : found.results) {
    const auto add = [&](std::string_view key, const Value& value) {
      record.summary(fmt::format("{}.{}.{}", result.recipe->name, result.optimizer, key), value);
    };
    add("predicted_factor", spread(result, &StepMeasurement::predicted).median);
    add("measured_factor", spread(result, &StepMeasurement::factor).median);
    add("measured_over_predicted", agreement_of(result).median);
    add("cosine", spread(result, &StepMeasurement::cosine).median);
    if (result.recipe->two_losses) {
      add("predicted_loss_ratio", spread(result, &StepMeasurement::predicted_loss_ratio).median);
      add("measured_loss_ratio", spread(result, &StepMeasurement::loss_ratio).median);
    }
    add("final_loss", estimate(result.losses()).mean);
    add("final_loss_difference", found.difference(result).mean);
    add("final_loss_difference_half_width", found.difference(result).half_width);
    add("diverged_runs", result.diverged_runs());
  }
}

}  // namespace experiments::scale_policy_order
