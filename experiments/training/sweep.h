#pragma once
/// Training runs that survive a kill, side by side: each run of a sweep is a cell with a directory of its
/// own.

#include <array>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "experiments/frame/columns.h"
#include "experiments/frame/experiment.h"
#include "experiments/training/checkpoint.h"
#include "experiments/training/instruments.h"
#include "experiments/training/training_setup.h"

namespace experiments {

/// A spec as a part of file names that any file system takes: "dynamic+growth_interval=20".
std::string in_file_name(std::string spec);

/// One training run: what the others of a sweep differ from it in. Model, policy and scaler with their
/// options.
struct Cell {
  std::string model;
  std::string policy;
  std::string scaler;
  std::uint64_t seed = 0;
  std::filesystem::path directory;  ///< of its results and checkpoints
};

struct Grid {
  std::vector<std::string> models;
  std::vector<std::string> policies;
  std::vector<std::string> scalers;  ///< empty: of each policy the one that its recipe comes with
  std::uint64_t first_seed = 0;
  int seeds = 1;
  std::filesystem::path
      directory;  ///< which the cells have theirs in: "mlp-amp-dynamic+growth_interval=20-3"
};

/// Models x policies x scalers x seeds, the last varying fastest.
std::vector<Cell> cells_of(const Grid& grid);

/// How a cell is run.
struct CellRun {
  const Cell& cell;
  const TrainingSetup& setup;
  RunChoice choice;
  RunIdentity identity;
  int checkpoint_every = 0;  ///< steps; 0: none
};

/// Trains the cell, from its newest checkpoint if there is one, and commits its directory: steps.csv, skips.csv,
/// parameters.csv, summary.json, verdict.txt and a manifest whose options are the identity. Does nothing if the
/// directory holds all that of the same run; where a file of it is missing or damaged, names it and makes it again.
///
/// While it runs, steps and skips grow in steps.partial.csv and skips.partial.csv beside the checkpoints, so that
/// time and disk grow linearly with the steps. Ticks `progress` once for every step, those that need not be made
/// included. Throws std::invalid_argument where a checkpoint is of another run.
///
/// The columns skip_... of steps.csv: of a step without an update the first tensor that was not finite
/// (sim/statistics/flight_recorder.h).
void run_cell(const CellRun& plan, Run& run, Progress& progress);

/// What a cell ended with, as its summary.json tells it, in that order.
struct CellResult {
  std::filesystem::path file;
  names::NamedValues values;
  std::string abort_reason;  ///< of a run that its scaler ended
  SkipTally skips = {};

  bool has(std::string_view key) const;
  /// Throws std::runtime_error, naming the file, for a key that is not there.
  double value(std::string_view key) const;
};

/// Throws std::runtime_error, in one line with the file and what to do, when that is no summary of a cell.
CellResult read_cell(const std::filesystem::path& directory);

/// The tables of a cell, each with the columns that name it first.
inline constexpr std::array cell_tables{"steps.csv", "skips.csv", "parameters.csv"};
/// For --help.
Outputs cell_outputs();

/// The columns that name the cell, and more.
template <class Row>
std::vector<Column<Row>> columns_of_cell(const std::vector<Column<Row>>& more) {
  return joined<Column<Row>>({{"model", "", [](const Row& r) { return r.cell.model; }},
                              {"policy", "", [](const Row& r) { return r.cell.policy; }},
                              {"scaler", "", [](const Row& r) { return r.cell.scaler; }},
                              {"seed", "", [](const Row& r) { return r.cell.seed; }}},
                             more);
}

}  // namespace experiments
