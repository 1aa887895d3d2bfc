#pragma once
/// What the cells of a sweep came to: per network its policies and scalers, in pairs of the same seed against
/// FP32.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "experiments/frame/columns.h"
#include "experiments/frame/figure.h"
#include "experiments/frame/record.h"
#include "experiments/training/cells.h"
#include "experiments/training/training_setup.h"

namespace experiments {

/// The runs under one policy and scaler that differ in their seed.
struct SeedGroup {
  std::string policy;
  std::string scaler;
  std::vector<CellResult> results;  ///< in the order of the seeds

  /// "amp dynamic".
  std::string strategy() const { return policy + ' ' + scaler; }
  std::vector<double> values(std::string_view key) const;
  Estimate estimate(std::string_view key) const { return experiments::estimate(values(key)); }
  std::size_t diverged_runs() const;  ///< whose final loss is not finite
  std::string divergence() const;     ///< "diverged", "2 of 5 diverged", or nothing
  std::size_t aborted_runs() const;   ///< that their scaler ended
  /// "ended by its scaler at step 3 of 500" where the group is one run, else "2 of 5 runs ended by their scaler
  /// at steps 3, 7 of 500"; nothing where none was ended. The first step is step 1.
  std::string ending(int steps) const;
};

/// Rows of the summary for results of these names, as means over the seeds, each name after the prefix; what the runs have
/// no result for is left out.
std::vector<SummaryRow<SeedGroup>> result_rows(const std::string& prefix,
                                               const std::vector<std::string>& names);
/// Numbers of runs of a group that ended badly: <prefix>diverged_runs and <prefix>aborted_runs.
std::vector<SummaryRow<SeedGroup>> failure_rows(const std::string& prefix);

/// The groups of one network: first the FP32 runs that the others are compared with, if there are any (those
/// without scaling, if there are several), then the others by their mean final loss, those without a finite
/// one last.
class Comparison {
 public:
  /// Reads what the cells of `model` have written; the setup must outlive the comparison.
  /// `common` is what its cells were chosen to have in common; the FP32 runs of several groups are all-reduced in FP32
  /// whatever it says.
  Comparison(std::string model, const TrainingSetup& setup, std::span<const Cell> cells,
             RunChoice common = {});

  const std::string& model() const { return model_; }
  const TrainingSetup& setup() const { return *setup_; }
  std::string description() const { return setup_->description(common_); }
  const std::vector<SeedGroup>& groups() const { return groups_; }
  std::uint64_t first_seed() const { return first_seed_; }
  std::size_t seeds() const { return groups_.front().results.size(); }
  bool has_reference() const { return has_reference_; }
  bool is_reference(const SeedGroup& group) const { return has_reference_ && &group == &groups_.front(); }
  /// What the network learns; null where that is no text.
  const sim::TextDataset* text() const { return dynamic_cast<const sim::TextDataset*>(&setup_->dataset()); }
  bool is_classifier() const { return setup_->model().is_classifier(); }
  /// By what the groups are judged: "final_accuracy" or "final_loss".
  std::string_view quality() const { return is_classifier() ? "final_accuracy" : "final_loss"; }

  /// To the reference, in pairs of the same seed; none of the reference itself and where there is none.
  std::optional<Estimate> difference(const SeedGroup& group, std::string_view key) const;

  /// Network, data, optimizer, steps and seeds in a sentence, and what the intervals are.
  std::string setting() const;

 private:
  void put_in_order();

  std::string model_;
  const TrainingSetup* setup_;
  RunChoice common_;
  std::uint64_t first_seed_ = 0;
  std::vector<SeedGroup> groups_;
  bool has_reference_ = false;
};

/// steps.csv, skips.csv and parameters.csv: the rows of all cells, each with the cell it belongs to; cells.csv: a
/// row a cell with its results.
void write_cells(RunRecord& record, std::span<const Cell> cells);

/// comparison.csv: a row for each group and result.
void write_comparisons(RunRecord& record, std::span<const Comparison> comparisons);

/// For --help: tables and summary of a single run and of a sweep.
Outputs comparison_outputs();

/// Means over the seeds; of a single run without the prefix <model>.<policy>.<scaler>.
void write_summary(RunRecord& record, std::span<const Comparison> comparisons, bool single_run);

void write_verdict(RunRecord& record, const Comparison& comparison);

/// Loss, its difference to FP32 where there is one, and loss scale over the steps of the first seed, from
/// <name>.csv, which this writes.
Figure loss_figure(RunRecord& record, const Comparison& comparison, const std::string& name);

/// A dot and an interval for each group, from comparison.csv.
Figure comparison_figure(const Comparison& comparison);

}  // namespace experiments
