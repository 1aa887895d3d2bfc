#include "experiments/scale_policy_order/recipes.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>
#include <limits>
#include <numeric>

#include "sim/tensor/integer_power.h"

namespace experiments::scale_policy_order {
namespace {

/// The factor of a right recipe.
double one(const StepFacts&) {
  return 1;
}

/// What clipping to `limit` multiplies gradients of this norm by.
double clip_coefficient(double norm, double limit) {
  return std::min(1.0, limit / (norm + 1e-6));
}

/// Gradients of norm N become S N, which a threshold C meets as N would meet C / S: the coefficients are
/// min(1, C / (S N)) in the place of min(1, C / N). Adam divides a factor out again.
double clipped_while_scaled(const StepFacts& facts) {
  if (facts.normalises) return 1;
  return clip_coefficient(facts.scales[0] * facts.norm, facts.max_norm) /
         clip_coefficient(facts.norm, facts.max_norm);
}

/// S g where g belongs. Adam on c g with epsilon is Adam on g with epsilon / c: its update changes only as
/// far as epsilon counts.
double scaled(const StepFacts& facts) {
  return facts.normalises ? 1 : facts.scales[0];
}

/// S g, clipped: of norm min(S N, C) in the place of min(N, C).
double scaled_and_clipped(const StepFacts& facts) {
  if (facts.normalises) return 1;
  return std::min(facts.scales[0] * facts.norm, facts.max_norm) / std::min(facts.norm, facts.max_norm);
}

/// g / S. Adam's epsilon is in effect epsilon S.
double divided_twice(const StepFacts& facts) {
  return facts.normalises ? 1 : 1 / facts.scales[0];
}

/// Dividing the sum at each of n micro-batches leaves g_n + g_(n-1) / S + ... in the place of the sum: the
/// last one. Its product with the mean G of n gradients of one distribution is E <g_n, G> = E <G, G>, so that
/// g_n / n is on average 1/n of G.
double last_micro_batch(const StepFacts& facts) {
  return facts.normalises ? 1 : 1 / static_cast<double>(facts.micro_batches);
}

/// (S_1 g_1 + ... + S_n g_n) / (n S), with the S of the end: on average the mean of S_i / S.
double mixed_scales(const StepFacts& facts) {
  if (facts.normalises) return 1;
  const double sum = std::accumulate(facts.scales.begin(), facts.scales.end(), 0.0);
  return sum / static_cast<double>(facts.scales.size()) / facts.divisor;
}

/// The sum in the place of the mean.
double number_of_micro_batches(const StepFacts& facts) {
  return facts.normalises ? 1 : static_cast<double>(facts.micro_batches);
}

/// n steps along g_i / n each: together the right one, as far as the gradient does not change on the way. To
/// Adam a gradient is as good as its n-th part, so that it makes n whole steps.
double steps_of_each_micro_batch(const StepFacts& facts) {
  return facts.normalises ? static_cast<double>(facts.micro_batches) : 1;
}

/// What was clipped before is at most C long, and the next S g is far longer: the result is C / S along the
/// last micro-batch's gradient. The least-squares factor is the ratio of lengths times the cosine, which is
/// taken as measured. NaN where a micro-batch's S g, about S N / n long, is not clipped.
double clipped_at_each_micro_batch(const StepFacts& facts) {
  if (facts.normalises) return 1;
  if (facts.scales[0] * facts.norm / static_cast<double>(facts.micro_batches) <= facts.max_norm)
    return std::numeric_limits<double>::quiet_NaN();
  return facts.cosine * facts.max_norm / facts.divisor / std::min(facts.norm, facts.max_norm);
}

/// A warm-up that rises by 1/w a step, then a straight line to 0.
double linear_schedule(double step, const StepFacts& facts) {
  const auto warmup = static_cast<double>(facts.warmup_steps), total = static_cast<double>(facts.total_steps);
  return step < warmup ? (step + 1) / warmup : std::max(0.0, 1 - (step - warmup) / (total - warmup));
}

/// The learning rate of a later step, whatever the optimizer.
double counted_by_schedule(const StepFacts& facts) {
  const auto applied = static_cast<double>(facts.applied);
  return linear_schedule(applied + static_cast<double>(facts.skipped), facts) /
         linear_schedule(applied, facts);
}

/// Adam's moments have seen t gradients, but are corrected by 1 - beta^(t + k) for t + k of them:
/// (1 - beta1^t) / (1 - beta1^(t+k)) * sqrt((1 - beta2^(t+k)) / (1 - beta2^t)), which is 1 without moments.
double counted_by_optimizer(const StepFacts& facts) {
  const std::uint64_t seen = facts.applied + 1, counted = seen + facts.skipped;
  const auto correction = [](double beta, std::uint64_t steps) {
    return 1 - sim::integer_power(beta, steps);
  };
  return correction(facts.beta1, seen) / correction(facts.beta1, counted) *
         std::sqrt(correction(facts.beta2, counted) / correction(facts.beta2, seen));
}

std::vector<Recipe> make_recipes() {
  using enum Action;
  return {// One backward pass a step.
          {.name = "right",
           .right = "right",
           .is_right = true,
           .formula = "1",
           .predicted = one,
           .each_micro_batch = {backward},
           .at_boundary = {unscale, step, update}},
          {.name = "never_unscaled",
           .right = "right",
           .formula = "S",
           .predicted = scaled,
           .each_micro_batch = {backward},
           .at_boundary = {optimizer_step}},
          {.name = "unscaled_twice",
           .right = "right",
           .formula = "1/S",
           .predicted = divided_twice,
           .each_micro_batch = {backward},
           .at_boundary = {unscale, unscale, step, update}},
          // With clipping.
          {.name = "right_clipped",
           .right = "right_clipped",
           .is_right = true,
           .formula = "1",
           .predicted = one,
           .each_micro_batch = {backward},
           .at_boundary = {unscale, clip_norm, step, update}},
          {.name = "clip_before_unscale",
           .right = "right_clipped",
           .formula = "C/(S min(N, C))",
           .predicted = clipped_while_scaled,
           .each_micro_batch = {backward},
           .at_boundary = {clip_norm, step, update}},
          {.name = "clipped_never_unscaled",
           .right = "right_clipped",
           .formula = "min(S N, C)/min(N, C)",
           .predicted = scaled_and_clipped,
           .each_micro_batch = {backward},
           .at_boundary = {clip_norm, optimizer_step}},
          {.name = "infinity_sought_after_clip",
           .right = "right_clipped",
           .formula = "1, until NaN",
           .predicted = one,
           .each_micro_batch = {backward},
           .at_boundary = {divide, clip_norm, find_infinity, step, update}},
          {.name = "right_clipped_by_value",
           .right = "right_clipped_by_value",
           .is_right = true,
           .formula = "1",
           .predicted = one,
           .each_micro_batch = {backward},
           .at_boundary = {unscale, clip_value, step, update}},
          {.name = "clip_value_before_unscale",
           .right = "right_clipped_by_value",
           .formula = "-",
           .each_micro_batch = {backward},
           .at_boundary = {clip_value, step, update}},
          // Gradient accumulation.
          {.name = "right_accumulation",
           .right = "right_accumulation",
           .is_right = true,
           .formula = "1",
           .predicted = one,
           .each_micro_batch = {backward},
           .at_boundary = {unscale, step, update},
           .accumulates = true},
          {.name = "unscale_each_micro_batch",
           .right = "right_accumulation",
           .formula = "1/n",
           .predicted = last_micro_batch,
           .each_micro_batch = {backward, unscale},
           .at_boundary = {step, update},
           .on_average = true,
           .accumulates = true},
          {.name = "update_each_micro_batch",
           .right = "right_accumulation",
           .formula = "mean S_i / S",
           .predicted = mixed_scales,
           .each_micro_batch = {backward, update},
           .at_boundary = {unscale, step},
           .on_average = true,
           .accumulates = true},
          {.name = "loss_not_divided",
           .right = "right_accumulation",
           .formula = "n",
           .predicted = number_of_micro_batches,
           .each_micro_batch = {backward},
           .at_boundary = {unscale, step, update},
           .accumulates = true,
           .divides_loss = false},
          {.name = "step_each_micro_batch",
           .right = "right_accumulation",
           .formula = "1 (Adam: n)",
           .predicted = steps_of_each_micro_batch,
           .each_micro_batch = {backward, unscale, step, update, zero_gradients},
           .at_boundary = {},
           .on_average = true,
           .accumulates = true},
          {.name = "right_accumulation_clipped",
           .right = "right_accumulation_clipped",
           .is_right = true,
           .formula = "1",
           .predicted = one,
           .each_micro_batch = {backward},
           .at_boundary = {unscale, clip_norm, step, update},
           .accumulates = true},
          {.name = "clip_each_micro_batch",
           .right = "right_accumulation_clipped",
           .formula = "cos C/(S min(N, C))",
           .predicted = clipped_at_each_micro_batch,
           .each_micro_batch = {backward, clip_norm},
           .at_boundary = {unscale, step, update},
           .accumulates = true},
          // Two losses.
          {.name = "one_scaler",
           .right = "one_scaler",
           .is_right = true,
           .formula = "1",
           .predicted = one,
           .each_micro_batch = {backward, {backward, 1}},
           .at_boundary = {unscale, step, update},
           .two_losses = true},
          {.name = "two_scalers_apart",
           .right = "one_scaler",
           .is_right = true,
           .formula = "1",
           .predicted = one,
           .each_micro_batch = {backward, unscale, stash, {backward, 1}, {unscale, 1}, add_stash},
           .at_boundary = {step, update, {update, 1}},
           .two_losses = true,
           .scalers = 2},
          {.name = "two_scalers_summed",
           .right = "one_scaler",
           .formula = "S2/S1 of one loss",
           .each_micro_batch = {backward, {backward, 1}},
           .at_boundary = {unscale, step, update},
           .two_losses = true,
           .scalers = 2},
          {.name = "two_scalers_unscaled_in_place",
           .right = "one_scaler",
           .formula = "1/S2 of one loss",
           .each_micro_batch = {backward, unscale, {backward, 1}, {unscale, 1}},
           .at_boundary = {step, update, {update, 1}},
           .two_losses = true,
           .scalers = 2},
          {.name = "update_after_each_loss",
           .right = "one_scaler",
           .formula = "S2/S1 of one loss",
           .each_micro_batch = {backward, update, {backward, 1}, update},
           .at_boundary = {unscale, step},
           .two_losses = true},
          // Steps that are skipped while S comes down.
          {.name = "right_skips",
           .right = "right_skips",
           .is_right = true,
           .formula = "1",
           .predicted = one,
           .each_micro_batch = {backward},
           .at_boundary = {unscale, step, update},
           .starts_too_high = true},
          {.name = "schedule_counts_skips",
           .right = "right_skips",
           .formula = "f(t+k)/f(t)",
           .predicted = counted_by_schedule,
           .each_micro_batch = {backward},
           .at_boundary = {unscale, step, update},
           .starts_too_high = true,
           .schedule_counts_skipped = true},
          {.name = "optimizer_counts_skips",
           .right = "right_skips",
           .formula = "1 (Adam: bias)",
           .predicted = counted_by_optimizer,
           .each_micro_batch = {backward},
           .at_boundary = {unscale, step, update},
           .starts_too_high = true,
           .optimizer_counts_skipped = true}};
}

/// The state that GradScaler keeps of one optimizer.
class GradScalerReplay {
 public:
  /// The error of this call; empty without one.
  std::string_view call(Action action) {
    switch (action) {
      case Action::unscale:
        if (stage_ == Stage::unscaled)
          return "unscale_() has already been called on this optimizer since the last update().";
        if (stage_ == Stage::stepped) return "unscale_() is being called after step().";
        stage_ = Stage::unscaled;
        return {};
      case Action::step:
        if (stage_ == Stage::stepped) return "step() has already been called since the last update().";
        stage_ = Stage::stepped;
        return {};
      case Action::update:
        if (stage_ == Stage::ready) return "No inf checks were recorded prior to update.";
        stage_ = Stage::ready;
        return {};
      default:
        return {};
    }
  }

 private:
  enum class Stage { ready, unscaled, stepped };
  Stage stage_ = Stage::ready;
};

bool uses(const Recipe& recipe, Action action) {
  const auto is_it = [action](const Call& call) { return call.action == action; };
  return std::ranges::any_of(recipe.each_micro_batch, is_it) ||
         std::ranges::any_of(recipe.at_boundary, is_it);
}

}  // namespace

std::string_view name_of(Action action) {
  constexpr std::array<std::string_view, 12> names{"backward",  "unscale",        "divide", "find_infinity",
                                                   "clip_norm", "clip_value",     "step",   "optimizer_step",
                                                   "update",    "zero_gradients", "stash",  "add_stash"};
  return names[static_cast<std::size_t>(action)];
}

std::span<const Recipe> recipes() {
  static const std::vector<Recipe> all = make_recipes();
  return all;
}

const Recipe& find_recipe(std::string_view name) {
  const auto found = std::ranges::find(recipes(), name, &Recipe::name);
  assert(found != recipes().end());
  return *found;
}

const Recipe& one_loss_alone(std::size_t loss) {
  using enum Action;
  static const auto make = [](std::size_t which) {
    Recipe recipe = find_recipe("one_scaler");
    recipe.each_micro_batch = {{backward, which}};
    return recipe;
  };
  static const std::array alone{make(0), make(1)};
  return alone.at(loss);
}

std::string pytorch_answer(const Recipe& recipe) {
  // GradScaler does not call an optimizer whose step is skipped, so that it could not count it.
  if (uses(recipe, Action::divide) || uses(recipe, Action::find_infinity) || recipe.optimizer_counts_skipped)
    return "own loop";
  const std::size_t micro_batches = recipe.accumulates ? 2 : 1;
  std::vector<Call> calls;
  for (int repeat = 0; repeat < 2; ++repeat) {
    for (std::size_t i = 0; i < micro_batches; ++i)
      calls.insert(calls.end(), recipe.each_micro_batch.begin(), recipe.each_micro_batch.end());
    calls.insert(calls.end(), recipe.at_boundary.begin(), recipe.at_boundary.end());
  }
  std::vector<GradScalerReplay> scalers(recipe.scalers);
  for (const Call& call : calls) {
    if (call.action == Action::backward) continue;
    const std::string_view error = scalers[call.which].call(call.action);
    if (!error.empty()) return "raises: " + std::string(error);
  }
  return "silent";
}

double predicted_loss_ratio(const Recipe& recipe, std::span<const double> scales) {
  if (!recipe.two_losses || scales.size() != 2) return std::numeric_limits<double>::quiet_NaN();
  if (recipe.name == "two_scalers_summed" || recipe.name == "update_after_each_loss")
    return scales[1] / scales[0];
  if (recipe.name == "two_scalers_unscaled_in_place") return scales[1];
  return 1;
}

}  // namespace experiments::scale_policy_order
