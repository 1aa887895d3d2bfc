#pragma once
/// The training runs of opt_levels: every recipe at the same batch, then each at the largest batch that fits
/// into the bytes of FP32.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "experiments/frame/experiment.h"
#include "experiments/opt_levels/memory.h"
#include "experiments/opt_levels/operations.h"
#include "experiments/opt_levels/options.h"
#include "experiments/opt_levels/recipes.h"
#include "experiments/training/all_reduce_cost.h"
#include "experiments/training/comparison.h"
#include "experiments/training/instruments.h"
#include "experiments/training/training_setup.h"

namespace experiments::opt_levels {

/// One training run.
struct TrainingRun {
  std::uint64_t seed = 0;
  std::vector<sim::StepRecord> steps;
  std::vector<sim::GradientSite> sites;
  std::vector<sim::ParameterSpec> parameters;
};

/// The runs of one recipe and one budget that differ in their seed. Results have the keys of the summary.
struct RunGroup {
  std::size_t recipe;  ///< as index of Findings::recipes
  TrainingBudget budget;
  bool is_control = false;  ///< all-reduced in FP32, to tell what the all-reduce costs
  SeedGroup group = {};
  std::vector<TrainingRun> runs;
};

/// What a recipe does with the bytes that the reference takes.
struct EqualBytes {
  BatchBytes batch;           ///< the largest that fits
  std::size_t runs = 0;       ///< with it, as index of Findings::groups; of a batch of 0 undefined
  std::size_t reference = 0;  ///< likewise those of the reference with the same batch, steps and rate
};

struct Findings {
  const TrainingSetup& setup;
  const Options& options;
  std::vector<Recipe> recipes;                        ///< the reference first
  std::vector<std::vector<OperationUse>> operations;  ///< of each recipe
  std::uint64_t budget_bytes = 0;
  std::vector<EqualBytes> equal_bytes;  ///< of each recipe
  std::vector<RunGroup> groups;  ///< those of the recipes at the batch of the options before the others
  std::vector<RunGroup> controls = {};  ///< of all recipes but the reference, or none

  const SeedGroup& at_default(std::size_t recipe) const { return groups[recipe].group; }
  bool is_classifier() const { return setup.model().is_classifier(); }
  /// By what recipes are judged: "final_accuracy" or "final_loss".
  std::string_view quality() const { return is_classifier() ? "final_accuracy" : "final_loss"; }
  /// How far a group's quality is from that of `other`, in pairs of the same seed.
  Estimate difference(const SeedGroup& group, const SeedGroup& other) const;
  /// The costs of all recipes that have controls.
  std::vector<AllReduceCost> all_reduce_costs() const;
  /// Network, data, optimizer, steps and seeds in a sentence.
  std::string setting() const;
  /// The rule of the runs at equal bytes, in a clause.
  std::string equal_bytes_rule() const;
};

/// A run's length and learning rate with another batch: as many examples, or with `equal_steps` as many steps;
/// the learning rate in proportion to the batch (Goyal et al. 2017, arXiv:1706.02677), or kept; the schedule's
/// numbers of steps in proportion to the run's. At least one step.
TrainingBudget with_batch(const TrainingBudget& given, int batch, const Options& options);

/// The earliest step, counted from 1, at which the loss of any of the runs is not finite; 0 without such a step.
double earliest_nonfinite_step(const SeedGroup& group);

/// The runs of the given groups as the instruments want them.
std::vector<InstrumentedRun> instrumented(const Findings& found, std::span<const RunGroup> groups);

/// For --help.
Outputs outputs();

/// Writes tables, summary, figures and verdict.
void report(Run& run, const Findings& found);
void write_verdict(RunRecord& record, const Findings& found);

/// Draws the figures from the tables of the record.
void draw_figures(Run& run, const Findings& found);
/// A cell for each operation and recipe: the format of its results, or of linear and conv2d that of what is
/// multiplied, in colour and text.
Figure operations_figure(const Findings& found);

/// Trains all of them, side by side on the threads of `run`. Throws std::invalid_argument, before any has
/// begun, where one of them cannot be.
Findings measure(const TrainingSetup& setup, const Options& options, Run& run);

}  // namespace experiments::opt_levels
