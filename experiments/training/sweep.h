#pragma once
/// Training runs that survive a kill, side by side: each run of a sweep is a cell with a directory of its
/// own.

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "experiments/frame/experiment.h"
#include "experiments/training/cells.h"
#include "experiments/training/checkpoint.h"
#include "experiments/training/ranks.h"
#include "experiments/training/training_setup.h"

namespace experiments {

/// How a cell is run.
struct CellRun {
  const Cell& cell;
  const TrainingSetup& setup;
  RunChoice choice;
  RunIdentity identity;
  int checkpoint_every = 0;  ///< steps; 0: none
  /// Throws where the cell has become another job's; asked before checkpoints and results are written. None where there
  /// are no other jobs.
  std::function<void()> require_claim = {};
  Ranks* ranks = nullptr;         ///< with whom it is computed; null: by this process alone
  bool with_other_ranks = false;  ///< goes on from a checkpoint of another number of ranks, too
  bool replaces_others = true;    ///< makes its run in the place of a finished one of other options
};

/// What a cell's directory holds.
struct CellCheck {
  enum class State { unfinished, of_another_run, damaged, finished };
  State state;
  std::string what = {};  ///< where two runs differ first, or the damaged file
};
CellCheck check_cell(const std::filesystem::path& directory, const RunIdentity& identity);

/// The files of a finished cell, its manifest among them.
std::vector<std::string> files_of_cell(const std::filesystem::path& directory);
/// The checksums of all of them but the manifest, which holds these.
Json checksums_of_cell(const std::filesystem::path& directory);

/// Trains the cell, from its newest checkpoint if there is one, and commits its directory: steps.csv, skips.csv,
/// parameters.csv, summary.json, verdict.txt and a manifest whose options are the identity. One that went on with other ranks
/// than it began with says so in summary, verdict and options, and is no cell of either number. Does nothing if the
/// directory holds all that of the same run; where a file of it is missing or damaged, names it and makes it again.
///
/// While it runs, steps and skips grow in steps.partial.csv and skips.partial.csv beside the checkpoints, so that
/// time and disk grow linearly with the steps. Ticks `progress` once for every step, those that need not be made
/// included. Throws std::invalid_argument where a checkpoint is of another run, or a finished cell that must not be replaced;
/// DirectoryInUse where another process is writing there. Where an interruption asks for checkpoints
/// (experiments/frame/interrupt.h), one of the steps done is written first. Of several ranks the first does so, and the
/// others compute their part.
///
/// The columns skip_... of steps.csv: of a step without an update the first tensor that was not finite
/// (sim/statistics/flight_recorder.h).
void run_cell(const CellRun& plan, Run& run, Progress& progress);

}  // namespace experiments
