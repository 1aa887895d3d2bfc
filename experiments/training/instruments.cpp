#include "experiments/training/instruments.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <stdexcept>

#include "experiments/frame/printable.h"
#include "experiments/training/counted_gradients.h"
#include "experiments/training/gradient_sites.h"

namespace experiments {
namespace {

/// The last of skip_kinds.
constexpr std::size_t after_overflow = skip_kinds.size() - 1;

/// The kind of a skip as an index of skip_kinds, of a run in which an overflow had gone unseen or not.
std::size_t kind_of(const sim::SkipRecord& skip, bool has_overflowed) {
  if (has_overflowed && skip.is_of_weight()) return after_overflow;
  if (skip.place == sim::SkipRecord::Place::nowhere) return 2;
  return skip.is_scale_dependent() ? 0 : 1;
}

bool is_measured(const sim::StepRecord& step) {
  return !step.twin.empty();
}

}  // namespace

void add_updates(std::vector<sim::UpdateCounts>& sums, const sim::StepRecord& step) {
  for (std::size_t i = 0; i < step.parameter_updates.size(); ++i) sums[i] += step.parameter_updates[i];
}

double fraction_swallowed(const sim::UpdateCounts& counts) {
  return share_of(counts.updates, counts.swallowed);
}

void TwinSums::add(const sim::StepRecord& step) {
  if (!is_measured(step) || step.skipped()) return;
  const sim::TwinComparison twin = sim::total_of(step.twin);
  ++steps;
  fraction_flushed += twin.fraction_flushed();
  norm_share_flushed += twin.norm_share_flushed();
  relative_error += twin.relative_error();
}

names::NamedValues TwinSums::means() const {
  return {{"mean_fraction_flushed", fraction_flushed / steps},
          {"mean_norm_share_flushed", norm_share_flushed / steps},
          {"mean_relative_error", relative_error / steps}};
}

void SkipTally::add(const sim::StepRecord& step) {
  std::string& overflow = kinds[after_overflow].first;
  if (step.unseen_overflow && overflow.empty()) overflow = describe_applied(*step.unseen_overflow);
  if (!step.skip) return;
  Kind& kind = kinds[kind_of(*step.skip, !overflow.empty())];
  if (kind.count++ == 0 && &kind != &kinds[after_overflow]) kind.first = describe(*step.skip);
}

std::string skips_paragraph(std::span<const TalliedRun> runs) {
  std::vector<std::string> sentences;
  for (std::size_t kind = 0; kind < skip_kinds.size(); ++kind) {
    std::size_t count = 0;
    std::string first;
    for (const TalliedRun& run : runs) {
      const SkipTally::Kind& of_run = run.skips.kinds[kind];
      if (count == 0 && of_run.count > 0)
        first = fmt::format("{}, seed {}. {}", run.strategy, run.seed, of_run.first);
      count += of_run.count;
    }
    if (count > 0) {
      sentences.push_back(
          fmt::format("Skipped {}: {}, the first under {}", skip_kinds[kind].text, count, first));
    }
  }
  return fmt::format("{}", fmt::join(sentences, " "));
}

std::string skips_paragraph(std::span<const InstrumentedRun> runs) {
  std::vector<TalliedRun> tallied;
  for (const InstrumentedRun& run : runs) {
    tallied.push_back({.strategy = std::string(run.strategy), .seed = run.seed});
    for (const sim::StepRecord& step : run.steps) tallied.back().skips.add(step);
  }
  return skips_paragraph(tallied);
}

double scaler_twins_of(std::span<const sim::StepRecord> steps) {
  double twins = 0;
  for (const sim::StepRecord& step : steps) twins += step.scaler_twins;
  return twins;
}

std::string scaler_twins_sentence(std::span<const TwinRequests> runs) {
  std::vector<TwinRequests> sums;
  for (const TwinRequests& run : runs) {
    if (sums.empty() || sums.back().strategy != run.strategy) sums.push_back({.strategy = run.strategy});
    sums.back().twins += run.twins;
    sums.back().steps += run.steps;
  }
  std::vector<std::string> clauses;
  for (const TwinRequests& sum : sums) {
    if (sum.twins > 0)
      clauses.push_back(fmt::format("{} asked for {} in {}", sum.strategy, counted(sum.twins, "twin"),
                                    counted(sum.steps, "step")));
  }
  if (clauses.empty()) return {};
  return fmt::format("Beyond the steps themselves, {}, each one more backward pass.",
                     fmt::join(clauses, ", "));
}

std::string scaler_twins_sentence(std::span<const InstrumentedRun> runs) {
  std::vector<TwinRequests> requests;
  for (const InstrumentedRun& run : runs) {
    requests.push_back({.strategy = std::string(run.strategy),
                        .twins = scaler_twins_of(run.steps),
                        .steps = static_cast<double>(run.steps.size())});
  }
  return scaler_twins_sentence(requests);
}

std::string vanishing_sentence(const InstrumentedRun& run) {
  const auto measured = std::ranges::find_if(run.steps, is_measured);
  if (measured == run.steps.end()) return {};
  const auto nearest = nearest_to_vanishing(measured->twin);
  if (nearest == measured->twin.end() || nearest->octaves_alive() > 0) {
    return fmt::format("At step {} and S = 1 no gradient tensor's largest value is below 2^-25.",
                       measured->step);
  }
  const auto site = static_cast<std::size_t>(nearest - measured->twin.begin());
  return fmt::format("At step {} and S = 1 {}.", measured->step,
                     octaves_alive_clause(run.sites[site].name, nearest->octaves_alive()));
}

std::string abort_sentence(std::string_view strategy, std::uint64_t seed, std::size_t steps,
                           std::string_view reason) {
  return fmt::format("{}, seed {}, made {} and was ended by its scaler: {}", strategy, seed,
                     counted(steps, "step"), reason);
}

const ResultKey& result_key(std::string_view name) {
  static const std::vector<ResultKey> keys = [] {
    std::vector<ResultKey> keys{
        {"final_loss", "1", "mean over the test set after the last step, in FP32"},
        {"final_accuracy", "1", "over the test set after the last step, in FP32", "classifiers only"},
        {"steps", "steps", "made; fewer than asked for where the scaler ended the run"},
        {"skipped_steps", "steps", "whose update was left out"},
        {"skipped_for_scale", "steps", "skipped, such as a smaller S would have kept: the twin was finite"},
        {"skipped_at_any_scale", "steps", "skipped, such as no S would have kept"},
        {"skipped_by_rule", "steps",
         "skipped without anything infinite or NaN, by a rule of the scaler's own"},
        {"skipped_after_overflow", "steps",
         "skipped with a weight that was not finite, as a sum over ranks had overflowed unseen before"},
        {"first_nonfinite_step", "steps", "the first with a loss that is not finite, from 1; 0 without any"},
        {"scaler_twins", "twins", "that the scaler asked for, each one more backward pass"},
        {"final_scale_log2", "log2", "S after the last step"},
        {"fraction_swallowed", "1", "updates that rounding undid, over all updates"},
        {"mean_fraction_flushed", "1",
         "twin non-zero and run zero, over the twin's non-zero; mean over measured, applied steps, nan "
         "without any",
         "with twins"},
        {"mean_norm_share_flushed", "1",
         "norm of the flushed values over the twin's, mean over the same steps", "with twins"},
        {"mean_relative_error", "1", "||run/S - twin|| / ||twin||, mean over the same steps", "with twins"},
        {"held_bytes", "bytes", "of all roles but temporaries, each at its peak"},
        {"peak_tensor_bytes", "bytes",
         "the most that tensors took at one time, without twins; of ranks by rank 0"}};
    for (const sim::MemoryRole role : sim::memory_roles)
      keys.push_back({fmt::format("peak_tensor_bytes_{}", sim::name_of(role)), "bytes",
                      fmt::format("the most that {} took at one time", sim::name_of(role))});
    return keys;
  }();
  const auto found = std::ranges::find(keys, name, &ResultKey::name);
  if (found == keys.end()) throw std::logic_error(fmt::format("result '{}' has no row", name));
  return *found;
}

const SummaryOf<Evaluated>& evaluation_summary() {
  static const SummaryOf<Evaluated> summary{
      {{"test_loss", "mean over the test set of the trained network, in FP32",
        [](const Evaluated& e) { return e.evaluation.loss; }},
       {"test_accuracy", "on the test set of the trained network, in FP32",
        [](const Evaluated& e) {
          return e.is_classifier ? std::optional(e.evaluation.accuracy) : std::nullopt;
        },
        "classifiers only"}}};
  return summary;
}

std::vector<std::string> peak_keys() {
  std::vector<std::string> keys{"peak_tensor_bytes"};
  for (const sim::MemoryRole role : sim::memory_roles)
    keys.push_back(fmt::format("peak_tensor_bytes_{}", sim::name_of(role)));
  return keys;
}

std::vector<std::pair<std::string, std::size_t>> peak_tensor_bytes(const sim::MemoryAccount& memory) {
  std::vector<std::pair<std::string, std::size_t>> peaks;
  for (const std::string& key : peak_keys()) {
    const bool is_first = peaks.empty();
    peaks.emplace_back(
        key, is_first ? memory.peak_bytes() : memory.peak_bytes(sim::memory_roles[peaks.size() - 1]));
  }
  return peaks;
}

}  // namespace experiments
