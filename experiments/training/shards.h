#pragma once
/// Sweeps that several jobs share: which cells are whose, and what they have made put together again.

#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "experiments/frame/shard.h"
#include "experiments/training/cells.h"
#include "experiments/training/sweep.h"

namespace experiments {

/// Cells index, index + count, ... of all, counted from 1.
std::vector<Cell> cells_of(const Shard& shard, std::span<const Cell> all);

/// Calls make(cell, require_claim) for every cell, up to `threads` at one time, each with a claim in `directory`
/// (experiments/frame/claims.h). Those that other jobs work on come last, once they are given up or done; so all are done
/// in the end, whoever has made them. A cell whose directory another process still writes into (DirectoryInUse) is waited for
/// likewise. `tell` is given a line, once, where any is waited for. `require_claim` throws ClaimLost, after which the cell is another job's.
void make_claimed(std::span<const Cell> cells, const std::filesystem::path& directory, int threads,
                  const std::function<void(const std::string&)>& tell,
                  const std::function<void(const Cell&, const std::function<void()>& require_claim)>& make);

/// A cell to be found in one of several folders.
struct CellToMerge {
  const Cell& cell;
  RunIdentity identity;
};

/// Copies the cells from the folders of shards, DIR/cells, into their own directories, which are in out/cells. Throws
/// std::invalid_argument, in one line that names cells and folders, before anything is copied: where a folder is given twice,
/// where a cell is still being made, of another run or revision, damaged, in none, or in two folders and not the same in both,
/// and where in `out` it is being made, of another run, finished or not, or has other files. The same copies of a cell are
/// accepted: they can come only to the same tables.
void merge_cells(const std::vector<CellToMerge>& cells, const std::vector<std::string>& folders,
                 const std::filesystem::path& out);

}  // namespace experiments
