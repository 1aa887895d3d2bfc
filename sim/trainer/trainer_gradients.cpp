/// From the losses of a step to gradients that the optimizer takes.

#include <algorithm>
#include <iterator>
#include <stdexcept>
#include <string>
#include <utility>

#include "sim/ops/elementwise.h"
#include "sim/ops/scale.h"
#include "sim/trainer/observers.h"
#include "sim/trainer/trainer.h"

namespace sim {
namespace {

void multiply_losses(RecordedStep& recorded, double factor) {
  const auto multiply = [&](Variable& loss) {
    loss = recorded.tape.apply(scale, {loss}, {},
                               ScaleOptions{.forward_factor = factor, .backward_factor = factor});
  };
  multiply(recorded.forward.loss);
  for (Variable& loss : recorded.forward.losses) multiply(loss);
}

bool has_nonfinite_weight(std::span<const GradientSite> sites, const SiteGradients& gradients) {
  for (std::size_t site = 0; site < sites.size(); ++site) {
    if (is_weight(sites[site]) && has_nonfinite(gradients.gradients[site])) return true;
  }
  return false;
}

/// The gradients of each own rank.
std::vector<SiteGradients*> ranks_of(SiteGradients& first, std::vector<SiteGradients>& others) {
  std::vector<SiteGradients*> own{&first};
  for (SiteGradients& other : others) own.push_back(&other);
  return own;
}

}  // namespace

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
  const LossScaler& scaler = terms.front().scaler;
  const bool is_to_decide = this->is_to_decide(pending);
  if (is_to_decide) finish_gradients(pending, scaler);
  const bool is_for_scaler = is_to_decide ? pending.scaler_wants_twin : scaler.may_want_twin();
  record.scaler_twins += is_for_scaler;
  if (needs.twin || is_for_scaler)
    add_twin(terms, pending);
  else
    pending.twin.reset();
  if (is_to_decide && has_several_ranks() && pending.twin)
    average_twins(pending.scaled.sites, ranks_of(*pending.twin, pending.other_twins), *exchange_);
}

void Trainer::finish_gradients(Pending& pending, const LossScaler& scaler) const {
  if (has_several_ranks()) exchange_gradients(pending);
  summarise_gradients(pending, scaler);
  if (pending.scaler_wants_twin && !scaler.may_want_twin())
    throw std::logic_error("scaler '" + std::string(scaler.name()) +
                           "' wants a twin and said that it never would");
  if (others_compute_ranks())
    require_same_gradients(pending.scaled.sites, pending.scaled.values, pending.summary.found_nonfinite,
                           steps_done_, *exchange_);
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
  const bool tells_sums_apart = options_.record_skips && options_.accumulation_steps > 1;
  if (options_.parallel.looks_before_exchange || tells_sums_apart) {
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
  if (options_.parallel.looks_before_exchange && pending.found_before_exchange)
    pending.summary.found_nonfinite = *pending.found_before_exchange;
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
  record.decision = std::max(record.decision, update_scaler(term.scaler, pending));
  if (layer_) add_outcomes(pending.scaled);
  if (layer_ && pending.ends_step) record.decision = std::max(record.decision, decide_by_layers());
  sites_ = pending.scaled.sites;
  if (record.skipped() && !was_skipped && options_.record_skips && others_compute_ranks())
    record.skip = first_over_ranks(record.skip, pass_of_skip_, *exchange_);
  const ObservedDecision observed{term.tape,
                                  term.loss,
                                  pending.scale,
                                  static_cast<float>(options_.accumulation_steps),
                                  pending.scaled,
                                  pending.twin,
                                  state_,
                                  term.batch,
                                  exchange_->ranks(),
                                  pending.summary.found_nonfinite,
                                  pending.found_before_exchange};
  for (StepObserver* observer : observers_) observer->after_decision(observed, record);
}

Decision Trainer::update_scaler(LossScaler& scaler, Pending& pending) const {
  GradientSummary summary = pending.summary;
  fp16::ExponentHistogram twin_exponents;
  const TwinSummary twin{.finite = pending.twin_finite, .exponents = &twin_exponents};
  if (pending.scaler_wants_twin) {
    twin_exponents =
        exponents_over_ranks(pending.scaled.sites, ranks_of(*pending.twin, pending.other_twins), *exchange_);
    summary.twin = &twin;
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
    if (!(result.norm.norm < record.clipping.norm.norm)) record.clipping.norm = result.norm;  // NaN, too
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

}  // namespace sim
