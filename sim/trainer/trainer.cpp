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

bool has_nonfinite_weight(std::span<const GradientSite> sites, const SiteGradients& gradients) {
  for (std::size_t site = 0; site < sites.size(); ++site) {
    if (is_weight(sites[site]) && has_nonfinite(gradients.gradients[site])) return true;
  }
  return false;
}

/// Of each own rank.
std::vector<SiteGradients*> ranks_of(SiteGradients& first, std::vector<SiteGradients>& others) {
  std::vector<SiteGradients*> own{&first};
  for (SiteGradients& other : others) own.push_back(&other);
  return own;
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

void Trainer::on_own_ranks(MemoryAccount* account, const std::function<void(std::size_t)>& compute) const {
  const auto charged = [&](std::size_t own) {
    const AllocationScope scope(own == 0 ? account : nullptr);
    compute(own);
  };
  if (options_.parallel.sync_batch_norm) return exchange_->in_lock_step(charged);
  for (std::size_t own = 0; own < exchange_->own(); ++own) charged(own);
}

std::vector<Trainer::RankPass> Trainer::record_micro_batch(std::uint64_t micro_batch, float loss_factor) {
  std::vector<RankPass> passes(exchange_->own());
  for (std::size_t own = 0; own < passes.size(); ++own) {
    passes[own].batch = batches_.batch(micro_batch, {exchange_->first_own() + own, exchange_->ranks()});
  }
  on_own_ranks(memory_.get(), [&](std::size_t own) {
    RecordedStep recorded = record_rank(own, micro_batch, passes[own].batch);
    if (loss_factor != 1) multiply_losses(recorded, loss_factor);
    passes[own].recorded.emplace(std::move(recorded));
  });
  return passes;
}

/// What ranks other than 0 do to running statistics is lost, or where they share statistics the same.
RecordedStep Trainer::record_rank(std::size_t own, std::uint64_t micro_batch, const Batch& batch) {
  const Shard shard{exchange_->first_own() + own, exchange_->ranks()};
  std::unique_ptr<Buffers> copy;
  if (own != 0 || (shard.index != 0 && !options_.parallel.sync_batch_norm))
    copy = std::make_unique<Buffers>(state_.buffers);
  RecordedStep recorded =
      record_step(model_, state_.specs, model_weights(), copy ? *copy : state_.buffers, batch, policy_,
                  {.seed = options_.seed,
                   .step = micro_batch,
                   .shard = shard,
                   .gathering = options_.parallel.sync_batch_norm ? &exchange_->gathering(own) : nullptr,
                   .threads = options_.threads,
                   .tensor_scaler = tensor_.get(),
                   .unit_scaling = state_.parametrisation()});
  recorded.buffers = std::move(copy);
  return recorded;
}

double Trainer::mean_loss(const std::vector<RankPass>& passes) const {
  std::vector<double> losses;
  for (const RankPass& pass : passes)
    losses.push_back(pass.recorded->tape.value(pass.recorded->forward.loss).element(0));
  return mean_over_ranks(losses, *exchange_);
}

Trainer::LossTerms Trainer::losses_of(const std::vector<RankPass>& passes, std::size_t loss) const {
  LossTerms terms;
  for (const RankPass& pass : passes) {
    const ForwardPass& forward = pass.recorded->forward;
    terms.push_back({pass.recorded->tape, loss_scalers_.size() == 1 ? forward.loss : forward.losses[loss],
                     *loss_scalers_[loss], pass.batch});
  }
  return terms;
}

std::vector<SiteGradients> Trainer::differentiate(const LossTerms& terms, MemoryAccount* account,
                                                  BackwardOptions options) const {
  options.mean_over = static_cast<float>(options_.accumulation_steps);
  std::vector<SiteGradients> gradients(terms.size());
  on_own_ranks(account,
               [&](std::size_t own) { gradients[own] = terms[own].tape.backward(terms[own].loss, options); });
  return gradients;
}

BackwardNeeds Trainer::observers_needs() const {
  BackwardNeeds needs;
  for (const StepObserver* observer : observers_) needs |= observer->needs(steps_done_);
  return needs;
}

void Trainer::show_backward(const LossTerms& terms, const std::vector<SiteGradients>& gradients,
                            float loss_scale, StepRecord& record) {
  const bool was_found = record.skip.has_value();
  for (std::size_t own = 0; own < terms.size(); ++own) {
    const ObservedBackward observed{
        terms[own].tape,   terms[own].loss, static_cast<float>(options_.accumulation_steps),
        loss_scale,        gradients[own],  exchange_->first_own() + own,
        exchange_->ranks()};
    for (StepObserver* observer : observers_) observer->after_backward(observed, record);
  }
  if (record.skip && !was_found) pass_of_skip_ = backward_passes_;
  ++backward_passes_;
}

void Trainer::add_backward(const LossTerms& terms, Pending& pending, StepRecord& record) {
  const BackwardNeeds needs = observers_needs();
  std::vector<SiteGradients> next = differentiate(terms, memory_.get(),
                                                  {.loss_scale = pending.scale,
                                                   .count_rounding = needs.rounding_counts,
                                                   .find_nonfinite = needs.first_nonfinite,
                                                   .layer_scaler = layer_.get()});
  show_backward(terms, next, pending.scale, record);
  if (pending.scaled.sites.empty()) pending.scaled.sites = terms.front().tape.sites();
  add(pending.scaled.sites, pending.scaled.values, pending.others, std::move(next));
  const bool is_exchanged = has_several_ranks() && is_to_decide(pending);
  if (is_exchanged) exchange_gradients(pending);
  if (is_exchanged || !has_several_ranks()) summarise_gradients(pending, terms.front().scaler);
  if (is_exchanged && others_compute_ranks())
    require_same_gradients(pending.summary, steps_done_, *exchange_);
  if (needs.twin || pending.scaler_wants_twin) add_twin(terms, pending);
  if (is_exchanged && pending.twin)
    average_twins(pending.scaled.sites, ranks_of(*pending.twin, pending.other_twins), *exchange_);
}

/// To sums over micro-batches, one for each own rank, the first's apart from the others'; empty ones have none yet.
void Trainer::add(const std::vector<GradientSite>& sites, SiteGradients& first,
                  std::vector<SiteGradients>& others, std::vector<SiteGradients> next) const {
  if (first.gradients.empty()) {
    first = std::move(next.front());
    others.assign(std::move_iterator(next.begin() + 1), std::move_iterator(next.end()));
    return;
  }
  const std::vector<SiteGradients*> sums = ranks_of(first, others);
  accumulate(sites, first, next.front(), options_.threads);
  const AllocationScope uncounted(nullptr);
  for (std::size_t own = 1; own < sums.size(); ++own)
    accumulate(sites, *sums[own], next[own], options_.threads);
}

void Trainer::exchange_gradients(Pending& pending) const {
  const std::vector<GradientSite>& sites = pending.scaled.sites;
  const std::vector<SiteGradients*> own = ranks_of(pending.scaled.values, pending.others);
  if (options_.parallel.looks_before_exchange) {
    std::vector<bool> found;
    for (const SiteGradients* gradients : own) found.push_back(has_nonfinite_weight(sites, *gradients));
    pending.found_before_exchange = any_rank(found, *exchange_);
  }
  all_reduce_gradients(sites, own, options_.parallel.all_reduce, *exchange_);
}

void Trainer::summarise_gradients(Pending& pending, const LossScaler& scaler) const {
  pending.exponents = {};
  const bool counts_all = scaler.needs_exponents() && !has_several_ranks();
  pending.summary = summarise(pending.scaled, counts_all ? &pending.exponents : nullptr);
  if (has_several_ranks() && scaler.needs_exponents()) {
    pending.exponents = exponents_over_ranks(pending.scaled.sites,
                                             ranks_of(pending.scaled.values, pending.others), *exchange_);
    pending.summary.exponents = &pending.exponents;
  }
  if (pending.found_before_exchange) pending.summary.found_nonfinite = *pending.found_before_exchange;
  pending.scaler_wants_twin = scaler.wants_twin(pending.summary);
}

void Trainer::add_twin(const LossTerms& terms, Pending& pending) const {
  const AllocationScope uncounted(nullptr);
  std::vector<SiteGradients> twins =
      differentiate(terms, nullptr, {.loss_scale = 1, .twin = options_.twin_format});
  std::vector<bool> nonfinite;
  for (const SiteGradients& twin : twins)
    nonfinite.push_back(std::ranges::any_of(twin.gradients, has_nonfinite));
  pending.twin_finite &= !any_rank(nonfinite, *exchange_);
  if (!pending.twin) pending.twin.emplace();
  add(pending.scaled.sites, *pending.twin, pending.other_twins, std::move(twins));
}

void Trainer::decide(const LossTerm& term, Pending& pending, StepRecord& record) {
  const bool was_skipped = record.skipped();
  record.decision = std::max(record.decision, update_scaler(term.scaler, pending, record));
  if (layer_) add_outcomes(pending.scaled);
  if (layer_ && pending.ends_step) record.decision = std::max(record.decision, decide_by_layers());
  sites_ = pending.scaled.sites;
  if (record.skipped() && !was_skipped && options_.record_skips && others_compute_ranks())
    record.skip = first_over_ranks(record.skip, pass_of_skip_, *exchange_);
  const ObservedDecision observed{
      term.tape,         term.loss,    pending.scale, static_cast<float>(options_.accumulation_steps),
      pending.scaled,    pending.twin, state_,        term.batch,
      exchange_->ranks()};
  for (StepObserver* observer : observers_) observer->after_decision(observed, record);
}

Decision Trainer::update_scaler(LossScaler& scaler, Pending& pending, StepRecord& record) {
  GradientSummary summary = pending.summary;
  fp16::ExponentHistogram twin_exponents;
  const TwinSummary twin{.finite = pending.twin_finite, .exponents = &twin_exponents};
  if (pending.scaler_wants_twin) {
    twin_exponents =
        exponents_over_ranks(pending.scaled.sites, ranks_of(*pending.twin, pending.other_twins), *exchange_);
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
