#include "experiments/training/shards.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <stdexcept>
#include <thread>

#include "experiments/frame/claims.h"
#include "experiments/frame/interrupt.h"
#include "experiments/frame/parallel.h"
#include "experiments/training/checkpoint.h"

namespace experiments {
namespace {

namespace fs = std::filesystem;

std::string name_of(const Cell& cell) {
  return cell.directory.filename().string();
}

[[noreturn]] void refuse(std::string_view why, std::string_view allowed) {
  throw std::invalid_argument(fmt::format("--merge: {}; allowed: {}", why, allowed));
}

/// "'a', 'b' and 5 more".
std::string some_of(const std::vector<std::string>& names) {
  constexpr std::size_t most = 3;
  std::vector<std::string> quoted;
  for (std::size_t i = 0; i < std::min(most, names.size()); ++i)
    quoted.push_back(fmt::format("'{}'", names[i]));
  std::string text = fmt::format("{}", fmt::join(quoted, ", "));
  if (names.size() > most) text += fmt::format(" and {} more", names.size() - most);
  return text;
}

/// A cell that is whole, in a folder of a shard.
struct FoundCell {
  const Cell* cell;
  fs::path directory;
};

void refuse_while_being_made(const CellToMerge& wanted, const std::string& folder) {
  const std::string name = name_of(wanted.cell);
  if (const auto owner = owner_of(fs::path(folder) / "claims", name))
    refuse(fmt::format("cell '{}' in '{}' is still being made by {}", name, folder, owner->text()),
           "once all are done");
}

/// Copies are no harm, as long as they are the same: manifests alone tell times. A folder that was copied to another disk, or
/// a cell that two jobs have made, shall not keep a sweep from its tables.
void refuse_unlike(const std::string& name, const std::string& folder, const std::string& other) {
  const auto cell_in = [&](const std::string& of) { return fs::path(of) / "cells" / name; };
  if (checksums_of_cell(cell_in(folder)) != checksums_of_cell(cell_in(other)))
    refuse(fmt::format("cell '{}' has other files in '{}' than in '{}'", name, other, folder),
           "each cell once, or the same copies of it");
}

/// Where the cell is whole; none where it is in no folder.
std::optional<FoundCell> find_cell(const CellToMerge& wanted, const std::vector<std::string>& folders) {
  const std::string name = name_of(wanted.cell);
  std::optional<std::string> holder;
  for (const std::string& folder : folders) {
    refuse_while_being_made(wanted, folder);
    const CellCheck check = check_cell(fs::path(folder) / "cells" / name, wanted.identity);
    switch (check.state) {
      case CellCheck::State::unfinished:
        continue;
      case CellCheck::State::of_another_run:
        refuse(fmt::format("cell '{}' in '{}' is of another run: {}", name, folder, check.what),
               "cells of this sweep, and of one revision");
      case CellCheck::State::damaged:
        refuse(fmt::format("cell '{}' in '{}' is damaged: file '{}' is missing or not what its run wrote",
                           name, folder, check.what),
               "to make it again");
      case CellCheck::State::finished:
        if (holder) refuse_unlike(name, *holder, folder);
        if (!holder) holder = folder;
    }
  }
  if (!holder) return std::nullopt;
  return FoundCell{&wanted.cell, fs::path(*holder) / "cells" / name};
}

bool is_in_place(const FoundCell& found) {
  return fs::exists(found.cell->directory) && fs::equivalent(found.directory, found.cell->directory);
}

/// What the cell would be copied over must be of the same run, finished or not, and nobody's work.
void refuse_to_replace(const CellToMerge& wanted, const FoundCell& found, const fs::path& out) {
  if (is_in_place(found)) return;
  constexpr std::string_view allowed = "another --out, or to remove the cell";
  const std::string name = name_of(wanted.cell);
  refuse_while_being_made(wanted, out.string());
  const CellCheck check = check_cell(wanted.cell.directory, wanted.identity);
  if (check.state == CellCheck::State::of_another_run)
    refuse(fmt::format("cell '{}' in --out '{}' is of another run: {}", name, out.string(), check.what),
           allowed);
  if (check.state == CellCheck::State::finished &&
      checksums_of_cell(wanted.cell.directory) != checksums_of_cell(found.directory))
    refuse(fmt::format("cell '{}' has other files in --out '{}' than in '{}'", name, out.string(),
                       found.directory.parent_path().parent_path().string()),
           allowed);
  if (check.state != CellCheck::State::unfinished) return;
  try {  // checkpoints of another run are hours of work, too
    CheckpointDirectory(wanted.cell.directory).latest(wanted.identity, [](const std::string&) {});
  } catch (const std::invalid_argument& of_another_run) {
    throw std::invalid_argument(fmt::format("--merge: {}", of_another_run.what()));
  } catch (const std::runtime_error&) {  // no checkpoint of it can be read
  }
}

/// The files of a finished run, and nothing that it went on from.
void copy_cell(const FoundCell& found) {
  const fs::path& to = found.cell->directory;
  if (is_in_place(found)) return;
  const fs::path staging = to.parent_path() / fmt::format(".{}.partial", to.filename().string());
  fs::remove_all(staging);
  for (const std::string& file : files_of_cell(found.directory)) {
    fs::create_directories((staging / file).parent_path());
    fs::copy_file(found.directory / file, staging / file);
  }
  fs::remove_all(to);
  fs::rename(staging, to);
}

/// "2 cells are made elsewhere, the first by Slurm job 7_2 on node3, waiting until done or given up: 'a', 'b'".
std::string waiting_text(const std::vector<const Cell*>& cells, const fs::path& claims) {
  std::vector<std::string> names;
  for (const Cell* cell : cells) names.push_back(name_of(*cell));
  const auto owner = owner_of(claims, names.front());
  return fmt::format(
      "{} made elsewhere{}, waiting until done or given up: {}",
      names.size() == 1 ? "a cell is" : fmt::format("{} cells are", names.size()),
      owner ? fmt::format(", {}by {}", names.size() == 1 ? "" : "the first ", owner->text()) : "",
      some_of(names));
}

}  // namespace

std::vector<Cell> cells_of(const Shard& shard, std::span<const Cell> all) {
  std::vector<Cell> own;
  for (std::size_t i = shard.index - 1; i < all.size(); i += shard.count) own.push_back(all[i]);
  return own;
}

void make_claimed(std::span<const Cell> cells, const fs::path& directory, int threads,
                  const std::function<void(const std::string&)>& tell,
                  const std::function<void(const Cell&, const std::function<void()>& require_claim)>& make) {
  constexpr std::chrono::milliseconds pause{200};
  Claims claims(directory);
  std::vector<const Cell*> left;
  for (const Cell& cell : cells) left.push_back(&cell);
  for (bool is_first = true; !left.empty(); is_first = false) {
    if (!is_first) std::this_thread::sleep_for(pause);
    throw_if_interrupted();
    std::vector<char> is_others(left.size());
    parallel_for_each(left.size(), threads, [&](std::size_t i) {
      const std::string name = name_of(*left[i]);
      is_others[i] = !claims.claim(name);
      if (is_others[i]) return;
      try {
        make(*left[i], [&] { claims.require(name); });
      } catch (const ClaimLost&) {
        is_others[i] = true;
      } catch (const DirectoryInUse&) {  // its former owner is held up, and not yet done
        is_others[i] = true;
      } catch (...) {
        claims.give_back(name);
        throw;
      }
      claims.give_back(name);
    });
    std::vector<const Cell*> others;
    for (std::size_t i = 0; i < left.size(); ++i) {
      if (is_others[i]) others.push_back(left[i]);
    }
    left = std::move(others);
    if (is_first && !left.empty()) tell(waiting_text(left, directory));
  }
}

void merge_cells(const std::vector<CellToMerge>& cells, const std::vector<std::string>& folders,
                 const fs::path& out) {
  for (const std::string& folder : folders) {
    if (!fs::is_directory(fs::path(folder) / "cells"))
      refuse(fmt::format("'{}' holds no cells", folder), "folders that --out of shards named");
    const auto is_same = [&](const std::string& other) { return fs::equivalent(folder, other); };
    if (std::ranges::count_if(folders, is_same) > 1)
      refuse(fmt::format("folder '{}' is given twice", folder), "each folder once");
  }
  std::vector<FoundCell> found;
  std::vector<std::string> gaps;
  for (const CellToMerge& wanted : cells) {
    if (const auto cell = find_cell(wanted, folders))
      found.push_back(*cell);
    else
      gaps.push_back(name_of(wanted.cell));
  }
  if (!gaps.empty())
    refuse(fmt::format("{} of {} cells are in none of {}: {}", gaps.size(), cells.size(), some_of(folders),
                       some_of(gaps)),
           "all cells of the sweep");
  for (std::size_t i = 0; i < cells.size(); ++i) refuse_to_replace(cells[i], found[i], out);
  for (const FoundCell& cell : found) copy_cell(cell);
}

}  // namespace experiments
