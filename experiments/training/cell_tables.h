#pragma once
/// The tables of a cell: steps.csv and skips.csv, which grow while it runs, and parameters.csv.

#include <array>
#include <filesystem>
#include <memory>
#include <span>
#include <vector>

#include "experiments/frame/growing_file.h"
#include "experiments/frame/record.h"
#include "experiments/training/cells.h"

namespace experiments {

/// The tables of a cell, each with the columns that name it first.
inline constexpr std::array cell_tables{"steps.csv", "skips.csv", "parameters.csv"};
/// For --help.
Outputs cell_outputs();

/// What an unfinished run has written down of its steps: steps.partial.csv and skips.partial.csv.
class Journal {
 public:
  /// Goes on from the marks of a checkpoint, or without them begins.
  Journal(const Cell& cell, const std::vector<FileMark>& marks);

  void add(const sim::StepRecord& step, const sim::Clipping& clipping);
  std::vector<FileMark> marks();
  /// Writes steps.csv and skips.csv as they are by now.
  void copy_to(const std::filesystem::path& directory);
  /// Removes both partial files, once the run is finished.
  static void remove(const std::filesystem::path& directory);

 private:
  const Cell& cell_;
  std::unique_ptr<GrowingFile> steps_;
  std::unique_ptr<GrowingFile> skips_;
};

/// parameters.csv; `counts` are in the order of `parameters`.
void write_parameters(RunRecord& record, const Cell& cell, std::span<const sim::ParameterSpec> parameters,
                      std::span<const sim::UpdateCounts> counts);

}  // namespace experiments
