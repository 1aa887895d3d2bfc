#pragma once
/// The cells of a sweep, one training run each, and what each ended with.

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "experiments/frame/columns.h"
#include "experiments/training/instruments.h"

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

/// The columns that name the cell, and more.
template <class Row>
std::vector<Column<Row>> columns_of_cell(const std::vector<Column<Row>>& more) {
  return joined<Column<Row>>({{"model", "", [](const Row& r) { return r.cell.model; }},
                              {"policy", "", [](const Row& r) { return r.cell.policy; }},
                              {"scaler", "", [](const Row& r) { return r.cell.scaler; }},
                              {"seed", "", [](const Row& r) { return r.cell.seed; }}},
                             more);
}

/// The summary's key of why a cell's scaler ended it.
inline constexpr std::string_view abort_key = "abort_reason";
/// The summary's key of the ranks of a cell that went on with others: "to step 500 on 4 ranks, then on 3".
inline constexpr std::string_view former_ranks_key = "former_ranks";
/// The summary's key of what the first step of a kind was skipped for.
std::string first_key(const SkipKind& kind);

/// What a cell ended with, as its summary.json tells it, in that order.
struct CellResult {
  std::filesystem::path file;
  names::NamedValues values;
  std::string abort_reason;  ///< of a run that its scaler ended
  SkipTally skips = {};
  std::string former_ranks = {};  ///< as in former_ranks_key; empty where it ran on as many throughout

  bool has(std::string_view key) const;
  /// Throws std::runtime_error, naming the file, for a key that is not there.
  double value(std::string_view key) const;
};

/// Throws std::runtime_error, in one line with the file and what to do, when that is no summary of a cell.
CellResult read_cell(const std::filesystem::path& directory);

}  // namespace experiments
