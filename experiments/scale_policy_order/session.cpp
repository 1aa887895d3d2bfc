#include "experiments/scale_policy_order/session.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <utility>

#include "fp16/names.h"
#include "sim/loss_scaling/registry.h"
#include "sim/ops/elementwise.h"
#include "sim/optimizers/registry.h"
#include "sim/schedules/registry.h"

namespace experiments::scale_policy_order {
namespace {

sim::UpdateArithmetic arithmetic_of(const Setting& setting) {
  return {.operations = setting.updates, .state = setting.updates, .seed = setting.seed};
}

std::unique_ptr<sim::Optimizer> make_optimizer(const Setting& setting) {
  const auto [name, given] = names::parse_numeric_spec(setting.optimizer);
  return sim::make_optimizer(name, given, arithmetic_of(setting));
}

std::unique_ptr<sim::Schedule> make_schedule(const Recipe& recipe, const Setting& setting) {
  if (!recipe.starts_too_high) return sim::make_schedule();
  return sim::make_schedule("linear", {{"warmup_steps", static_cast<double>(setting.warmup_steps)},
                                       {"counts_skipped_steps", recipe.schedule_counts_skipped}});
}

bool any_nonfinite(const std::vector<sim::Tensor>& tensors) {
  return std::ranges::any_of(tensors, sim::has_nonfinite);
}

bool has_infinity(const sim::Tensor& tensor) {
  bool found = false;
  sim::for_each_piece(tensor, [&](std::span<const float> values) {
    found |= std::ranges::any_of(values, [](float value) { return std::isinf(value); });
  });
  return found;
}

}  // namespace

void UntypedGradients::add(sim::ScaledGradients scaled) {
  std::vector<sim::Tensor> fresh;
  for (std::size_t site = 0; site < scaled.sites.size(); ++site) {
    if (sim::is_weight(scaled.sites[site])) fresh.push_back(std::move(scaled.values.gradients[site]));
  }
  add_parameters(std::move(fresh));
}

void UntypedGradients::add(const UntypedGradients& others) {
  add_parameters(others.values_.parameters);
}

void UntypedGradients::add_parameters(std::vector<sim::Tensor> fresh) {
  if (empty()) {
    values_.parameters = std::move(fresh);
    return;
  }
  for (std::size_t i = 0; i < fresh.size(); ++i) sim::add_to({&values_.parameters[i]}, fresh[i], 1);
}

void UntypedGradients::divide(float scale) {
  sim::ScaledGradients scaled;
  for (sim::Tensor& parameter : values_.parameters) {
    scaled.sites.push_back({.name = {}, .kind = sim::GradientSite::Kind::weight, .variable = {}});
    scaled.values.gradients.push_back(std::move(parameter));
    scaled.values.scales.push_back(static_cast<double>(scale));
  }
  values_ = sim::unscale(scaled);
}

Session::Session(const TrainingSetup& setup, const Recipe& recipe, const Setting& setting)
    : setup_(setup),
      recipe_(recipe),
      setting_(setting),
      policy_(sim::make_precision_policy("amp")),
      batches_(setup.dataset(), setting.seed, setting.batch / micro_batches()),
      state_(sim::ModelState::initial(setup.model(), setting.seed)),
      optimizer_(make_optimizer(setting)),
      schedule_(make_schedule(recipe, setting)) {
  for (sim::Tensor& weight : state_.weights) weight = sim::rounded(weight, setting.updates);
  int scale_log2 = recipe.starts_too_high ? setting.too_high_scale_log2 : setting.scale_log2;
  for (std::size_t i = 0; i < recipe.scalers; ++i, scale_log2 -= setting.second_scale_below_log2)
    scalers_.push_back({sim::make_scaler("dynamic", {{"init_scale", std::ldexp(1.0, scale_log2)},
                                                     {"growth_interval", setting.growth_interval}})});
}

StepOutcome Session::step() {
  StepOutcome outcome;
  zero_gradients();
  for (std::size_t i = 0; i < micro_batches(); ++i) {
    const sim::RecordedStep recorded = record();
    for (const Call& call : recipe_.each_micro_batch) perform(call, recorded, outcome);
    if (i + 1 < micro_batches()) continue;
    for (const Call& call : recipe_.at_boundary) perform(call, recorded, outcome);
  }
  return outcome;
}

void Session::follow(const Session& other) {
  for (std::size_t i = 0; i < state_.weights.size(); ++i)
    state_.weights[i] = sim::rounded(other.state_.weights[i], setting_.updates);
  state_.buffers = other.state_.buffers;
}

bool Session::has_diverged() const {
  return any_nonfinite(state_.weights);
}

sim::RecordedStep Session::record() {
  std::vector<sim::Tensor> weights;
  for (std::size_t i = 0; i < state_.weights.size(); ++i)
    weights.push_back(sim::rounded(state_.weights[i], sim::model_format(policy_, state_.specs[i])));
  const std::uint64_t number = micro_batches_done_++;
  sim::RecordedStep recorded =
      sim::record_step(setup_.model(), state_.specs, sim::pointers_to(weights), state_.buffers,
                       batches_.batch(number), policy_, {.seed = setting_.seed, .step = number});
  recorded.weights = std::move(weights);
  return recorded;
}

void Session::perform(const Call& call, const sim::RecordedStep& recorded, StepOutcome& outcome) {
  switch (call.action) {
    case Action::backward:
      return backward(call.which, recorded, outcome);
    case Action::unscale:
      return unscale(scalers_[call.which], outcome);
    case Action::divide:
      return divide(scalers_[call.which], outcome);
    case Action::find_infinity:
      scalers_[call.which].found_nonfinite |=
          std::ranges::any_of(gradients_.values().parameters, has_infinity);
      return;
    case Action::clip_norm:
      return clip({.max_norm = setting_.max_norm}, outcome);
    case Action::clip_value:
      return clip({.max_value = setting_.max_value}, outcome);
    case Action::step:
      return step_if_finite(scalers_[call.which], outcome);
    case Action::optimizer_step:
      return optimizer_step(outcome);
    case Action::update:
      return update(scalers_[call.which]);
    case Action::zero_gradients:
      return zero_gradients();
    case Action::stash:
      stash_ = std::exchange(gradients_, {});
      return;
    case Action::add_stash:
      return gradients_.add(stash_);
  }
}

void Session::zero_gradients() {
  gradients_ = {};
  overflowed_ = false;
}

void Session::backward(std::size_t loss, const sim::RecordedStep& recorded, StepOutcome& outcome) {
  const auto& [tape, pass, weights, buffers] = recorded;
  const float scale = scaler_of_loss(loss).rule->scale();
  outcome.scales.push_back(static_cast<double>(scale));
  sim::ScaledGradients scaled{
      .sites = tape.sites(),
      .values = tape.backward(recipe_.two_losses ? pass.losses[loss] : pass.loss,
                              {.loss_scale = scale,
                               .mean_over = recipe_.divides_loss ? static_cast<float>(micro_batches()) : 1})};
  gradients_.add(std::move(scaled));
  overflowed_ |= any_nonfinite(gradients_.values().parameters);
}

void Session::unscale(Scaler& scaler, StepOutcome& outcome) {
  scaler.found_nonfinite |= any_nonfinite(gradients_.values().parameters);
  divide(scaler, outcome);
}

void Session::divide(Scaler& scaler, StepOutcome& outcome) {
  outcome.divisor = static_cast<double>(scaler.rule->scale());
  gradients_.divide(scaler.rule->scale());
  scaler.is_unscaled = true;
}

void Session::clip(const sim::Clipping& clipping, StepOutcome& outcome) {
  const sim::ClippingResult result = sim::clip(gradients_.values(), clipping);
  if (clipping.max_norm && std::isnan(outcome.norm)) outcome.norm = result.norm.norm;
}

void Session::step_if_finite(Scaler& scaler, StepOutcome& outcome) {
  if (!scaler.is_unscaled) unscale(scaler, outcome);
  if (std::ranges::none_of(scalers_, &Scaler::found_nonfinite)) return optimizer_step(outcome);
  if (recipe_.optimizer_counts_skipped) optimizer_->begin_step(learning_rate());
  ++skipped_;
}

double Session::learning_rate() const {
  return optimizer_->learning_rate() *
         schedule_->factor({.applied = applied_, .skipped = skipped_, .total = setting_.steps});
}

void Session::optimizer_step(StepOutcome& outcome) {
  optimizer_->begin_step(learning_rate());
  for (std::size_t i = 0; i < state_.weights.size(); ++i)
    optimizer_->update(i, state_.weights[i], gradients_.values().parameters[i]);
  ++applied_;
  ++outcome.updates;
  outcome.unseen += overflowed_;
}

void Session::update(Scaler& scaler) {
  scaler.rule->update({.found_nonfinite = std::exchange(scaler.found_nonfinite, false)});
  scaler.is_unscaled = false;
}

}  // namespace experiments::scale_policy_order
