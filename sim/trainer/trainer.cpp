#include "sim/trainer/trainer.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "sim/loss_scaling/delayed_scaling.h"
#include "sim/loss_scaling/no_scaling.h"
#include "sim/trainer/observers.h"

namespace sim {
namespace {

std::vector<std::unique_ptr<LossScaler>> one_for_each_loss(std::unique_ptr<LossScaler> scaler,
                                                           const Model& model) {
  const auto count = static_cast<std::size_t>(scaler->num_losses());
  if (count != 1 && count != model.num_losses()) {
    throw std::invalid_argument(
        "scaler '" + std::string(scaler->name()) + "': num_losses = " + std::to_string(count) +
        " does not suit this model; allowed: " +
        (model.num_losses() == 1
             ? "1, its only loss"
             : "1 for the sum of its losses, " + std::to_string(model.num_losses()) + " for one each"));
  }
  const names::NamedValues options = scaler->options();
  std::vector<std::unique_ptr<LossScaler>> scalers;
  scalers.push_back(std::move(scaler));
  while (scalers.size() < count)
    scalers.push_back(make_scaler(scalers.front()->name(), {options.begin(), options.end()}));
  return scalers;
}

/// Throws where the ranks cannot do what one could.
void require_shareable(const TrainerOptions& options, const std::unique_ptr<LayerScaler>& layer) {
  const std::size_t ranks = options.parallel.ranks;
  if (options.batch % ranks != 0) {
    throw std::invalid_argument("a batch of " + std::to_string(options.batch) + " examples over " +
                                std::to_string(ranks) + " ranks; allowed: multiples of the ranks");
  }
  if (ranks > 1 && layer && layer->needs() != LayerNeeds{}) {
    throw std::invalid_argument("scaler '" + std::string(layer->name()) + "': " + std::to_string(ranks) +
                                " ranks would scale their gradients differently, which then have no mean; "
                                "allowed: 1 rank");
  }
}

}  // namespace

Trainer::Trainer(const Model& model, const Dataset& dataset, const PrecisionPolicy& policy, AnyScaler scaler,
                 std::unique_ptr<Optimizer> optimizer, std::unique_ptr<Schedule> schedule,
                 const TrainerOptions& options)
    : model_(model),
      policy_(policy),
      optimizer_(std::move(optimizer)),
      schedule_(std::move(schedule)),
      options_(options),
      virtual_ranks_(options.exchange ? nullptr : std::make_unique<VirtualRanks>(options.parallel.ranks)),
      exchange_(options.exchange ? options.exchange : virtual_ranks_.get()),
      batches_(dataset, options.seed, options.batch) {
  const bool casts_with_scales = policy_.operands.narrows_per_tensor();
  if (auto* global = std::get_if<std::unique_ptr<LossScaler>>(&scaler)) {
    loss_scalers_ = one_for_each_loss(std::move(*global), model);
  } else {
    loss_scalers_.push_back(std::make_unique<NoScaling>());
  }
  if (auto* layer = std::get_if<std::unique_ptr<LayerScaler>>(&scaler)) layer_ = std::move(*layer);
  require_shareable(options, layer_);
  if (auto* tensor = std::get_if<std::unique_ptr<TensorScaler>>(&scaler)) tensor_ = std::move(*tensor);
  std::optional<UnitScaling> unit_scaling;
  if (const auto* unit = std::get_if<UnitScaling>(&scaler)) unit_scaling = *unit;
  if (tensor_ && !casts_with_scales) {
    throw std::invalid_argument("scaler '" + std::string(tensor_->name()) +
                                "' scales casts to FP8, and policy '" + std::string(policy_.name) +
                                "' has none; allowed: policy fp8");
  }
  if (casts_with_scales && !tensor_) tensor_ = std::make_unique<DelayedScaling>();
  if (options.statistics_every != 0) observe(std::make_unique<StatisticsObserver>(options.statistics_every));
  if (options.twin_every != 0) observe(std::make_unique<TwinObserver>(options.twin_every));
  if (options.record_skips) observe(std::make_unique<SkipObserver>(options.twin_format));
  take_state(ModelState::initial(model, options.seed, unit_scaling));
  round_copies();
  const AllocationScope scope(memory_.get(), MemoryRole::optimizer_state);
  for (std::size_t i = 0; i < state_.weights.size(); ++i) optimizer_->allocate(i, state_.weights[i].size());
}

void Trainer::observe(std::unique_ptr<StepObserver> observer) {
  observers_.push_back(observer.get());
  own_observers_.push_back(std::move(observer));
}

void Trainer::take_state(ModelState initial) {
  state_ = std::move(initial);
  for (std::size_t i = 0; i < state_.weights.size(); ++i) {
    const fp16::Format seen = model_format(policy_, state_.specs[i]);
    const fp16::Format kept = kept_format(policy_, state_.specs[i]);
    const AllocationScope scope(memory_.get(),
                                kept == seen ? MemoryRole::weights : MemoryRole::master_weights);
    state_.weights[i] = rounded(state_.weights[i], kept);
  }
  const AllocationScope scope(memory_.get(), MemoryRole::buffers);
  for (auto& [name, buffer] : state_.buffers)
    buffer = rounded(buffer, policy_.keep_batchnorm_fp32 ? fp16::binary32 : policy_.model);
}

double Trainer::scale(std::size_t loss) const {
  return layer_ ? layer_->loss_scale() : loss_scalers_[loss]->scale();
}

names::NamedValues Trainer::scaler_options() const {
  if (layer_) return layer_->options();
  if (state_.unit_scaling) return state_.unit_scaling->options();
  const LossScaler& global = *loss_scalers_.front();
  return tensor_ && global.name() == "none" ? tensor_->options() : global.options();
}

std::string Trainer::abort_reason() const {
  for (const auto& scaler : loss_scalers_) {
    if (!scaler->abort_reason().empty()) return scaler->abort_reason();
  }
  return {};
}

std::vector<const Tensor*> Trainer::model_weights() const {
  std::vector<const Tensor*> weights = pointers_to(state_.weights);
  for (std::size_t i = 0; i < copies_.size(); ++i) {
    if (!copies_[i].empty()) weights[i] = &copies_[i];
  }
  return weights;
}

void Trainer::round_copies() {
  const AllocationScope scope(memory_.get(), MemoryRole::weights);
  const ElementRounding rounding{
      policy_.weight_rounding,
      RandomStream(options_.seed, "weight copies step " + std::to_string(steps_applied_))};
  const bool rounds_to_nearest = policy_.weight_rounding == fp16::Rounding::nearest_even;
  copies_.resize(state_.weights.size());
  for (std::size_t i = 0; i < copies_.size(); ++i) {
    const fp16::Format format = model_format(policy_, state_.specs[i]);
    if (format == state_.weights[i].format()) continue;
    if (copies_[i].empty()) copies_[i] = Tensor(state_.weights[i].shape(), format);
    copy_rounded({&copies_[i], nullptr, rounds_to_nearest ? nullptr : &rounding, i}, state_.weights[i],
                 options_.threads);
  }
}

StepRecord Trainer::begin_record() const {
  StepRecord record{.step = steps_done_, .scale = static_cast<float>(scale())};
  for (std::size_t i = 1; i < loss_scalers_.size(); ++i)
    record.further_scales.push_back(static_cast<float>(scale(i)));
  return record;
}

/// Factors of layers differ from one micro-batch to the next, so that these must not add up while scaled.
bool Trainer::decides_each_backward() const {
  return layer_ || loss_scalers_.front()->update_granularity() == UpdateGranularity::per_backward;
}

/// Forward, backward(S), exchange, observe, decide, unscale, clip, update. (PyTorch unscales before it decides; here the scaler looks
/// at the scaled gradients, and DeepSpeed's divides by the S it has just chosen.)
StepRecord Trainer::step(float loss_factor) {
  StepRecord record = begin_record();
  backward_passes_ = 0;
  const AllocationScope scope(memory_.get());
  const std::size_t micro_batches = options_.accumulation_steps;
  std::optional<Pending> pending;
  std::optional<Gradients> gradients;
  for (std::size_t i = 0; i < micro_batches; ++i) {
    const std::uint64_t number = steps_done_ * micro_batches + i;
    const std::vector<RankPass> passes = record_micro_batch(number, loss_factor);
    record.loss += static_cast<float>(mean_loss(passes) / static_cast<double>(micro_batches));
    for (std::size_t loss = 0; loss < loss_scalers_.size(); ++loss) {
      const LossTerms terms = losses_of(passes, loss);
      if (!pending) pending.emplace(static_cast<float>(scale(loss)));
      pending->ends_step = i + 1 == micro_batches && loss + 1 == loss_scalers_.size();
      add_backward(terms, *pending, record);
      if (!is_to_decide(*pending)) continue;
      decide(terms.front(), *pending, record);
      if (!record.skipped()) add_unscaled(gradients, terms.front(), *pending, record);
      pending.reset();
    }
  }
  if (tensor_ && others_compute_ranks()) share_maxima(*tensor_, *exchange_);
  if (tensor_) tensor_->end_step();
  for (StepObserver* observer : observers_) observer->after_last_decision(record);
  if (!record.skipped()) update_weights(*gradients, record);
  ++steps_done_;
  return record;
}

void Trainer::update_weights(Gradients& gradients, StepRecord& record) {
  if (!options_.clip_before_unscale) record.clipping = clip(gradients, options_.clipping);
  record.learning_rate =
      optimizer_->learning_rate() *
      schedule_->factor(
          {.applied = steps_applied_, .skipped = steps_done_ - steps_applied_, .total = options_.steps});
  optimizer_->begin_step(record.learning_rate);
  for (std::size_t i = 0; i < state_.weights.size(); ++i) {
    record.parameter_updates.push_back(optimizer_->update(i, state_.weights[i], gradients.parameters[i]));
    record.updates += record.parameter_updates.back();
  }
  ++steps_applied_;
  round_copies();
}

}  // namespace sim
