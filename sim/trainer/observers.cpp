#include "sim/trainer/observers.h"

#include "sim/tensor/memory_account.h"
#include "sim/tensor/tensor_contents.h"
#include "sim/trainer/trainer.h"

namespace sim {
namespace {

/// The first sum that is not finite, if there is one.
std::optional<SkipRecord> nonfinite_sum(const ObservedDecision& decision) {
  const ScaledGradients& scaled = decision.gradients;
  for (std::size_t site = 0; site < scaled.sites.size(); ++site) {
    const Tensor& gradient = scaled.values.gradients[site];
    if (!is_weight(scaled.sites[site]) || !has_nonfinite(gradient)) continue;
    SkipRecord record = record_of_sum(scaled.sites[site].name, gradient);
    record.is_sum_over_ranks = decision.ranks > 1 && !decision.found_before_exchange.value_or(false);
    return record;
  }
  return std::nullopt;
}

}  // namespace

BackwardNeeds TwinObserver::needs(std::size_t step) const {
  const bool is_measured = step % every_ == 0;
  return {.rounding_counts = is_measured, .twin = is_measured};
}

void TwinObserver::after_decision(const ObservedDecision& decision, StepRecord& record) {
  if (!needs(record.step).twin) return;
  const ScaledGradients& scaled = decision.gradients;
  record.twin.resize(scaled.sites.size());
  const auto fresh = compare_sites(scaled.sites, scaled.values, *decision.twin);
  for (std::size_t site = 0; site < fresh.size(); ++site) record.twin[site] += fresh[site];
}

BackwardNeeds StatisticsObserver::needs(std::size_t step) const {
  return {.rounding_counts = step % every_ == 0};
}

void StatisticsObserver::after_decision(const ObservedDecision& decision, StepRecord& record) {
  if (needs(record.step).rounding_counts && record.statistics.empty())
    record.statistics = site_statistics(decision.gradients.values);
}

void SkipObserver::after_backward(const ObservedBackward& backward, StepRecord& record) {
  if (record.skip || !backward.gradients.first_nonfinite) return;
  const AllocationScope uncounted(nullptr);
  record.skip =
      find_cause(backward.tape, backward.loss, backward.gradients, twin_format_, backward.mean_over);
  record.skip->loss_scale = backward.loss_scale;
  record.skip->rank = backward.rank;
  record.skip->ranks = backward.ranks;
}

void SkipObserver::after_decision(const ObservedDecision& decision, StepRecord& record) {
  std::optional<SkipRecord>& found = record.skipped() ? record.skip : record.unseen_overflow;
  const bool may_be_unseen = decision.found_before_exchange && !decision.found_nonfinite;
  if (found || !(record.skipped() || may_be_unseen)) return;
  found = nonfinite_sum(decision);
  if (!found && record.skipped()) found = find_cause(decision.tape, decision.loss, {}, twin_format_);
  if (!found) return;
  found->step = record.step;
  found->loss_scale = decision.loss_scale;
  found->ranks = decision.ranks;
}

void SkipObserver::after_last_decision(StepRecord& record) {
  if (!record.skipped()) {
    record.skip.reset();
    return;
  }
  record.unseen_overflow.reset();
  if (record.skip) record.skip->step = record.step;
}

}  // namespace sim
