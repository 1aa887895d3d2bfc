#pragma once
/// What the shards of rows gave, kept from one run to the next.

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "experiments/frame/interrupt.h"
#include "experiments/frame/stopwatch.h"
#include "experiments/validation/shard_result.h"

namespace experiments::validation {

/// The finished shards of one row, by their numbers.
using FinishedShards = std::map<std::uint32_t, ShardResult>;

/// The finished shards of all rows in one file: a run goes on where it stopped, and two machines are compared
/// without a reference.
///
/// The file: "halflab shards 2", "version 0.1.0" with Halflab's, "revision" with code_identity(), "gpu" with the
/// name of the one that rows on a GPU ran on, if any, then a line "shards finished row" for every row, an empty
/// line; then for each row with a finished shard a bitmap, least significant bit first, and for each finished
/// shard in ascending order its digest (8 bytes, little-endian), mismatches, documented deviations, other NaNs
/// and misrounded numbers (each seven bits a byte, the lowest first, 0x80 set in all bytes but the last).
class ShardFile {
 public:
  struct Line {
    std::string row;  ///< names the row and who computes it
    std::uint32_t shard_count;

    friend bool operator==(const Line&, const Line&) = default;
  };

  /// Nothing finished.
  explicit ShardFile(std::vector<Line> lines);

  enum class Use {
    go_on,   ///< of the same code, by code_identity
    compare  ///< of any
  };

  /// Throws std::runtime_error, naming the file, where it cannot be read, is of another version or of other
  /// rows, or is damaged.
  static ShardFile read(const std::filesystem::path& file, std::vector<Line> lines, Use use);

  /// Renamed into place. Throws std::runtime_error, naming the file.
  void write(const std::filesystem::path& file) const;

  void set(std::size_t row, std::uint32_t shard, const ShardResult& result);
  bool is_finished(std::size_t row, std::uint32_t shard) const { return finished_[row].contains(shard); }
  const FinishedShards& finished(std::size_t row) const { return finished_[row]; }
  const std::vector<Line>& lines() const { return lines_; }

  /// Empty if no row on a GPU is finished.
  const std::string& gpu() const { return gpu_; }
  /// Throws std::runtime_error if shards of a GPU of another name are finished.
  void set_gpu(const std::string& name);

 private:
  std::string header() const;

  std::string gpu_;
  std::vector<Line> lines_;
  std::vector<FinishedShards> finished_;
};

struct ShardComparison {
  std::uint64_t shards_in_both = 0;
  std::uint64_t shards_differing = 0;
  std::string first_difference;  ///< row and shard
};

/// By their digests, here and below: of one row, which `row` names.
ShardComparison compare(const FinishedShards& ours, const FinishedShards& theirs, const std::string& row);
void add(ShardComparison& sum, const ShardComparison& part);

/// Both are of the same rows.
ShardComparison compare(const ShardFile& ours, const ShardFile& theirs);

/// The shards that all threads of a run write to, and the file that they are saved in; refers to both.
class Ledger {
 public:
  Ledger(ShardFile& shards, const std::filesystem::path& file) : shards_(shards), file_(file) {}

  /// From any thread. Writes the file when it was not written for 20 seconds; throws as ShardFile::write does.
  void enter(std::size_t row, std::uint32_t shard, const ShardResult& result);

  /// Writes what was entered since; for one thread alone.
  void save();

  /// Calls `work` and saves, however that ends; an interruption then says where the shards are.
  template <typename Work>
  void keep_while(Work&& work) {
    try {
      work();
    } catch (const Interrupted&) {
      save();
      throw Interrupted("interrupted; the finished shards are kept in " + file_.string());
    } catch (...) {
      save();
      throw;
    }
    save();
  }

 private:
  void write();

  ShardFile& shards_;
  const std::filesystem::path& file_;
  std::mutex mutex_;
  bool changed_ = false;
  std::optional<Stopwatch> written_;  ///< since the file was last written
};

}  // namespace experiments::validation
