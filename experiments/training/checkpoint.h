#pragma once
/// Checkpoints: files from which a run that was cut off goes on, and ends with the bytes it would have ended
/// with.
///
/// A checkpoint is one file: "halflab\n", the version of its format (4 bytes), the size of what follows (8
/// bytes), the content in CBOR (RFC 8949) with floating-point numbers as their bits, and the CRC-32 of all
/// before it (4 bytes). Numbers and arrays are in this machine's byte order.

#include <array>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "experiments/frame/growing_file.h"
#include "fp16/names.h"
#include "sim/trainer/trainer.h"

namespace experiments {

using NamedTexts = std::vector<std::pair<std::string, std::string>>;

/// All that decides the results of a run, by name: {"model", "mlp:hidden1=64"}, {"seed", "3"}, ...
using RunIdentity = NamedTexts;

/// Where two runs differ first, by name: "batch", "'8'", "'16'"; what one has not is "none". Nothing where they are the same.
struct RunDifference {
  std::string name, first, second;
};
std::optional<RunDifference> first_difference(const RunIdentity& first, const RunIdentity& second);

/// The entry of a run's identity that is the number of ranks, and those that only several ranks have: how they sum, where
/// they look for what is not finite, and whether they share batch norm's statistics.
inline constexpr std::string_view ranks_entry = "ranks";
inline constexpr std::array<std::string_view, 3> entries_of_several_ranks{"all-reduce", "found inf",
                                                                          "synchronised batch norm"};
/// "1", of a run that says nothing of ranks.
std::string ranks_of(const RunIdentity& run);

/// CRC-32 of the examples of one epoch and of the test set, so that an identity tells data of the same name
/// apart.
std::uint32_t checksum_of(const sim::Dataset& dataset);

/// A run between two steps.
struct Checkpoint {
  RunIdentity run = {};
  sim::TrainerState trainer = {};
  names::NamedValues totals;    ///< what the program has added up over the steps so far
  NamedTexts notes;             ///< and what it has to say of them
  std::vector<FileMark> files;  ///< beside the checkpoint, with what it has written down of them
};

/// The content of a checkpoint's file.
std::string bytes_of(const Checkpoint& checkpoint);

/// Throws as read_checkpoint does, naming `file`.
Checkpoint checkpoint_from(const std::string& bytes, const std::filesystem::path& file);

/// Puts the file in place as a whole, after the disk has it all. Throws std::runtime_error, naming the file.
void write_checkpoint(const std::filesystem::path& file, const Checkpoint& checkpoint);

/// Throws std::runtime_error, in one line with the file, when it cannot be read or is no checkpoint, was cut
/// off or altered; std::invalid_argument when it has another version of the format.
Checkpoint read_checkpoint(const std::filesystem::path& file);

/// The last two checkpoints of a run, "checkpoint-<steps done>" in its directory.
class CheckpointDirectory {
 public:
  explicit CheckpointDirectory(std::filesystem::path directory) : directory_(std::move(directory)) {}

  void write(const Checkpoint& checkpoint) const;

  /// The newest one that is whole with the bytes of its files; none where there is none at all. A damaged one
  /// is passed over for the one before and reported to `warn` in a line. Throws std::runtime_error when all
  /// are damaged, std::invalid_argument, with both values, when the checkpoint is of another run or another
  /// version of the format. The number of ranks may be another `with_other_ranks`.
  std::optional<Checkpoint> latest(const RunIdentity& run,
                                   const std::function<void(const std::string&)>& warn,
                                   bool with_other_ranks = false) const;

  /// Removes them, and what a write left that was cut off.
  void clear() const;

 private:
  /// Newest first.
  std::vector<std::filesystem::path> files() const;

  std::filesystem::path directory_;
};

}  // namespace experiments
