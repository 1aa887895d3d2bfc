#include "sim/trainer/trainer.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "sim/loss_scaling/delayed_scaling.h"
#include "sim/loss_scaling/no_scaling.h"
#include "sim/ops/elementwise.h"
#include "sim/ops/scale.h"
#include "sim/tensor/tensor_contents.h"
#include "sim/trainer/observers.h"

namespace sim {
namespace {

struct NamedTensor {
  std::string name;
  Tensor* tensor;
};

/// Weights and buffers, their names with shape and format.
std::vector<NamedTensor> tensors_of(ModelState& state) {
  std::vector<NamedTensor> tensors;
  const auto add = [&tensors](const std::string& name, Tensor& tensor) {
    tensors.push_back(
        {name + ' ' + to_string(tensor.shape()) + ' ' + std::string(fp16::name_of(tensor.format())),
         &tensor});
  };
  for (std::size_t i = 0; i < state.weights.size(); ++i) add(state.specs[i].name, state.weights[i]);
  for (auto& [name, buffer] : state.buffers) add(name, buffer);
  return tensors;
}

void multiply_losses(RecordedStep& recorded, double factor) {
  const auto multiply = [&](Variable& loss) {
    loss = recorded.tape.apply(scale, {loss}, {},
                               ScaleOptions{.forward_factor = factor, .backward_factor = factor});
  };
  multiply(recorded.forward.loss);
  for (Variable& loss : recorded.forward.losses) multiply(loss);
}

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

template <class Scaler>
names::NamedValues state_of(const std::unique_ptr<Scaler>& scaler) {
  return scaler ? scaler->state() : names::NamedValues();
}

template <class Scaler>
void restore_scaler(const std::unique_ptr<Scaler>& scaler, std::string_view kind,
                    const names::NamedValues& saved) {
  if (scaler) return scaler->restore(saved);
  if (saved.empty()) return;
  throw std::invalid_argument("trainer: saved state is of a run with a " + std::string(kind) +
                              " scaler, which this one has not");
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
      batches_(dataset, options.seed, options.batch) {
  const bool casts_with_scales = policy_.operands.narrows_per_tensor();
  if (auto* global = std::get_if<std::unique_ptr<LossScaler>>(&scaler)) {
    loss_scalers_ = one_for_each_loss(std::move(*global), model);
  } else {
    loss_scalers_.push_back(std::make_unique<NoScaling>());
  }
  if (auto* layer = std::get_if<std::unique_ptr<LayerScaler>>(&scaler)) layer_ = std::move(*layer);
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

RecordedStep Trainer::record_micro_batch(std::uint64_t number, const Batch& batch, float loss_factor) {
  RecordedStep recorded = record_step(model_, state_.specs, model_weights(), state_.buffers, batch, policy_,
                                      {.seed = options_.seed,
                                       .step = number,
                                       .threads = options_.threads,
                                       .tensor_scaler = tensor_.get(),
                                       .unit_scaling = state_.parametrisation()});
  if (loss_factor != 1) multiply_losses(recorded, loss_factor);
  return recorded;
}

std::vector<Trainer::LossTerm> Trainer::losses_of(const RecordedStep& recorded, const Batch& batch) const {
  if (loss_scalers_.size() == 1)
    return {{recorded.tape, recorded.forward.loss, *loss_scalers_.front(), batch}};
  std::vector<LossTerm> terms;
  for (std::size_t i = 0; i < loss_scalers_.size(); ++i)
    terms.push_back({recorded.tape, recorded.forward.losses[i], *loss_scalers_[i], batch});
  return terms;
}

SiteGradients Trainer::differentiate(const LossTerm& term, BackwardOptions options) const {
  options.mean_over = static_cast<float>(options_.accumulation_steps);
  return term.tape.backward(term.loss, options);
}

BackwardNeeds Trainer::observers_needs() const {
  BackwardNeeds needs;
  for (const StepObserver* observer : observers_) needs |= observer->needs(steps_done_);
  return needs;
}

void Trainer::add_backward(const LossTerm& term, Pending& pending, StepRecord& record) const {
  const BackwardNeeds needs = observers_needs();
  SiteGradients next = differentiate(term, {.loss_scale = pending.scale,
                                            .count_rounding = needs.rounding_counts,
                                            .find_nonfinite = needs.first_nonfinite,
                                            .layer_scaler = layer_.get()});
  const ObservedBackward observed{term.tape, term.loss, static_cast<float>(options_.accumulation_steps),
                                  pending.scale, next};
  for (StepObserver* observer : observers_) observer->after_backward(observed, record);
  if (pending.scaled.sites.empty()) {
    pending.scaled = {.sites = term.tape.sites(), .values = std::move(next)};
  } else {
    accumulate(pending.scaled.sites, pending.scaled.values, next, options_.threads);
  }
  pending.exponents = {};
  pending.summary = summarise(pending.scaled, term.scaler.needs_exponents() ? &pending.exponents : nullptr);
  pending.scaler_wants_twin = term.scaler.wants_twin(pending.summary);
  if (needs.twin || pending.scaler_wants_twin) add_twin(term, pending);
}

void Trainer::add_twin(const LossTerm& term, Pending& pending) const {
  const AllocationScope uncounted(nullptr);
  SiteGradients twin = differentiate(term, {.loss_scale = 1, .twin = options_.twin_format});
  pending.twin_finite &= std::ranges::none_of(twin.gradients, has_nonfinite);
  if (pending.twin) {
    accumulate(pending.scaled.sites, *pending.twin, twin, options_.threads);
  } else {
    pending.twin = std::move(twin);
  }
}

void Trainer::decide(const LossTerm& term, const Pending& pending, StepRecord& record) {
  record.decision = std::max(record.decision, update_scaler(term.scaler, pending, record));
  if (layer_) add_outcomes(pending.scaled);
  if (layer_ && pending.ends_step) record.decision = std::max(record.decision, decide_by_layers());
  sites_ = pending.scaled.sites;
  const ObservedDecision observed{
      term.tape,      term.loss,    pending.scale, static_cast<float>(options_.accumulation_steps),
      pending.scaled, pending.twin, state_,        term.batch};
  for (StepObserver* observer : observers_) observer->after_decision(observed, record);
}

Decision Trainer::update_scaler(LossScaler& scaler, const Pending& pending, StepRecord& record) {
  GradientSummary summary = pending.summary;
  fp16::ExponentHistogram twin_exponents;
  const TwinSummary twin{.finite = pending.twin_finite, .exponents = &twin_exponents};
  if (pending.scaler_wants_twin) {
    for (const Tensor& gradient : pending.twin->gradients) add_exponents(twin_exponents, gradient);
    summary.twin = &twin;
    ++record.scaler_twins;
  }
  return scaler.update(summary);
}

void Trainer::add_outcomes(const ScaledGradients& scaled) {
  for (const GradientSite& site : scaled.sites) {
    if (!is_weight(site)) layer_outcomes_.try_emplace(site.name, false);
  }
  for (std::size_t i = 0; i < scaled.sites.size(); ++i) {
    if (!is_weight(scaled.sites[i]) || !has_nonfinite(scaled.values.gradients[i])) continue;
    const std::string& name = scaled.sites[i].name;
    const auto layer = layer_outcomes_.find(name.substr(0, name.rfind('.')));
    if (layer != layer_outcomes_.end()) {
      layer->second = true;
    } else {
      for (auto& [any, found_nonfinite] : layer_outcomes_) found_nonfinite = true;
    }
  }
}

Decision Trainer::decide_by_layers() {
  std::vector<LayerOutcome> outcomes;
  for (const auto& [layer, found_nonfinite] : layer_outcomes_)
    outcomes.push_back({.layer = layer, .found_nonfinite = found_nonfinite});
  const Decision decision = layer_->update(outcomes);
  layer_outcomes_.clear();
  return decision;
}

void Trainer::add_unscaled(std::optional<Gradients>& sum, const LossTerm& term, Pending& pending,
                           StepRecord& record) const {
  const double divisor_ratio = layer_ ? 1 : term.scaler.unscale_scale() / static_cast<double>(pending.scale);
  if (options_.clip_before_unscale) {
    const ClippingResult result = clip(pending.scaled, options_.clipping);
    if (result.norm.norm >= record.clipping.norm.norm) record.clipping.norm = result.norm;
    record.clipping.clipped_values += result.clipped_values;
  }
  const AllocationScope scope(memory_.get(), MemoryRole::gradients);
  Gradients next = unscale(
      pending.scaled,
      {.divisor_ratio = divisor_ratio, .format = policy_.unscaled_gradients, .threads = options_.threads});
  if (!sum) {
    sum = std::move(next);
    return;
  }
  for (std::size_t i = 0; i < next.parameters.size(); ++i)
    add_to({&sum->parameters[i]}, next.parameters[i], options_.threads);
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

/// Forward, backward(S), observe, decide, unscale, clip, update. (PyTorch unscales before it decides; here the scaler looks
/// at the scaled gradients, and DeepSpeed's divides by the S it has just chosen.)
StepRecord Trainer::step(float loss_factor) {
  StepRecord record = begin_record();
  const AllocationScope scope(memory_.get());
  const std::size_t micro_batches = options_.accumulation_steps;
  std::optional<Pending> pending;
  std::optional<Gradients> gradients;
  for (std::size_t i = 0; i < micro_batches; ++i) {
    const std::uint64_t number = steps_done_ * micro_batches + i;
    const Batch batch = batches_.batch(number);
    const RecordedStep recorded = record_micro_batch(number, batch, loss_factor);
    record.loss += static_cast<float>(recorded.tape.value(recorded.forward.loss).element(0) /
                                      static_cast<double>(micro_batches));
    const std::vector<LossTerm> terms = losses_of(recorded, batch);
    for (std::size_t loss = 0; loss < terms.size(); ++loss) {
      if (!pending) pending.emplace(static_cast<float>(scale(loss)));
      pending->ends_step = i + 1 == micro_batches && loss + 1 == terms.size();
      add_backward(terms[loss], *pending, record);
      if (!decides_each_backward() && !pending->ends_step) continue;
      decide(terms[loss], *pending, record);
      if (!record.skipped()) add_unscaled(gradients, terms[loss], *pending, record);
      pending.reset();
    }
  }
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

TrainerState Trainer::save() {
  TrainerState saved{.steps_done = steps_done_,
                     .steps_applied = steps_applied_,
                     .layer_scaler = state_of(layer_),
                     .tensor_scaler = state_of(tensor_)};
  for (const auto& scaler : loss_scalers_) saved.loss_scalers.push_back(scaler->state());
  const auto add = [&saved](const std::string& name, std::span<const std::byte> bytes) {
    const auto* first = reinterpret_cast<const std::uint8_t*>(bytes.data());
    saved.arrays.push_back({name, {first, first + bytes.size()}});
  };
  for (const auto& [name, tensor] : tensors_of(state_)) add(name, bytes_of(*tensor));
  for (const auto& [name, bytes] : optimizer_->state()) add(name, bytes);
  return saved;
}

void Trainer::restore(const TrainerState& saved) {
  const std::vector<NamedTensor> tensors = tensors_of(state_);
  std::vector<StateBlock> arrays;
  for (const auto& [name, bytes] : saved.arrays) arrays.push_back({name, std::as_bytes(std::span(bytes))});
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const std::string found = i < arrays.size() ? arrays[i].name : "nothing";
    if (found == tensors[i].name && arrays[i].bytes.size() == tensors[i].tensor->size_bytes()) continue;
    throw std::invalid_argument("trainer: saved state has '" + found + "' in place of '" + tensors[i].name +
                                "'");
  }
  optimizer_->restore(std::span(arrays).subspan(tensors.size()));
  if (saved.loss_scalers.size() != loss_scalers_.size()) {
    throw std::invalid_argument("trainer: saved state has " + std::to_string(saved.loss_scalers.size()) +
                                " loss scalers in place of " + std::to_string(loss_scalers_.size()));
  }
  for (std::size_t i = 0; i < loss_scalers_.size(); ++i) loss_scalers_[i]->restore(saved.loss_scalers[i]);
  restore_scaler(layer_, "layer", saved.layer_scaler);
  restore_scaler(tensor_, "tensor", saved.tensor_scaler);
  for (std::size_t i = 0; i < tensors.size(); ++i)
    std::ranges::copy(arrays[i].bytes, bytes_of(*tensors[i].tensor).begin());
  steps_done_ = saved.steps_done;
  steps_applied_ = saved.steps_applied;
  round_copies();
}

}  // namespace sim
