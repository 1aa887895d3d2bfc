#pragma once
/// What the instruments of training runs saw, as sums, summary keys and sentences.

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "experiments/frame/columns.h"
#include "sim/trainer/trainer.h"

namespace experiments {

/// The steps of one run, under the name that the tables have for it.
struct InstrumentedRun {
  std::string_view strategy;
  std::uint64_t seed = 0;
  std::span<const sim::StepRecord> steps = {};
  std::span<const sim::GradientSite> sites = {};
  std::span<const sim::ParameterSpec> parameters = {};
};

/// The updates of each parameter; of steps without an update nothing.
void add_updates(std::vector<sim::UpdateCounts>& sums, const sim::StepRecord& step);

/// The share of the updates that rounding undid.
double fraction_swallowed(const sim::UpdateCounts& counts);

/// What a run lost against its twins: sums over its applied steps that were measured.
struct TwinSums {
  double steps = 0;
  double fraction_flushed = 0;
  double norm_share_flushed = 0;
  double relative_error = 0;

  /// A step that was skipped or not measured counts for none.
  void add(const sim::StepRecord& step);
  /// {"mean_fraction_flushed", ...}, over the steps; NaN without any.
  names::NamedValues means() const;
};

/// A kind of skipped steps.
struct SkipKind {
  std::string_view key;   ///< in the summary
  std::string_view text;  ///< "Skipped <text>: 3"
};
/// What a smaller scale cures, what none cures, what the scaler decided by a rule of its own, and what was lost before: a
/// weight was not finite, as a sum over ranks had overflowed that nobody looked into.
inline constexpr std::array skip_kinds{
    SkipKind{"skipped_for_scale", "for its scale"},
    SkipKind{"skipped_at_any_scale", "that no scale would have saved"},
    SkipKind{"skipped_by_rule", "by its scaler's own rule"},
    SkipKind{"skipped_after_overflow", "with weights that an unseen overflow had left infinite or NaN"}};

/// The skipped steps of a run.
struct SkipTally {
  struct Kind {
    std::size_t count = 0;
    std::string first;  ///< what happened, in a sentence; of the last kind the overflow, whatever came of it
  };
  std::array<Kind, skip_kinds.size()> kinds = {};  ///< in the order of skip_kinds

  /// The next step. One without a record counts for none.
  void add(const sim::StepRecord& step);
};

struct TalliedRun {
  std::string strategy;
  std::uint64_t seed = 0;
  SkipTally skips = {};
};

/// A paragraph on skipped steps: how many of each kind, and the first; empty without skipped steps.
std::string skips_paragraph(std::span<const TalliedRun> runs);
std::string skips_paragraph(std::span<const InstrumentedRun> runs);

/// Twins that loss scalers asked for: what they cost besides the steps themselves.
struct TwinRequests {
  std::string strategy;
  double twins = 0;
  double steps = 0;  ///< that were made
};

double scaler_twins_of(std::span<const sim::StepRecord> steps);

/// "adaptive asked for 6 twins in 500 steps"; runs of the same strategy, side by side, count together. Empty
/// where none was asked for.
std::string scaler_twins_sentence(std::span<const TwinRequests> runs);
std::string scaler_twins_sentence(std::span<const InstrumentedRun> runs);

/// Which tensor vanishes first at S = 1, by its largest gradient at the first measured step, or that none
/// does; one of rounding noise, or without a gradient, cannot. Empty where no step was measured.
std::string vanishing_sentence(const InstrumentedRun& run);

/// Why a run ended before its last step.
std::string abort_sentence(std::string_view strategy, std::uint64_t seed, std::size_t steps,
                           std::string_view reason);

/// What a training run comes to under one key of its results.
struct ResultKey {
  std::string name;
  std::string unit;
  std::string meaning;
  std::string when;
};
/// The row of a result, one for every program that trains. Throws std::logic_error for a name that has no row.
const ResultKey& result_key(std::string_view name);
/// The results that are peaks of memory: of all tensors, and of each role.
std::vector<std::string> peak_keys();

/// test_loss and, of classifiers, test_accuracy.
struct Evaluated {
  const sim::Evaluation& evaluation;
  bool is_classifier;
};
const SummaryOf<Evaluated>& evaluation_summary();

/// {"peak_tensor_bytes", all}, {"peak_tensor_bytes_weights", ...} for each role: the most that tensors took at one time.
std::vector<std::pair<std::string, std::size_t>> peak_tensor_bytes(const sim::MemoryAccount& memory);

}  // namespace experiments
