#pragma once
/// The finished shards of all rows in one file: a run goes on where it stopped, and two machines are compared
/// without a reference.
///
/// The file: "halflab shards 2", "version 0.1.0" with Halflab's, "revision" with code_identity(), "gpu" with the
/// name of the one that rows on a GPU ran on, if any, then a line "shards finished row" for every row, an empty
/// line; then for each row with a finished shard a bitmap, least significant bit first, and for each finished
/// shard in ascending order its digest (8 bytes, little-endian), mismatches, documented deviations, other NaNs
/// and misrounded numbers (each seven bits a byte, the lowest first, 0x80 set in all bytes but the last).

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "experiments/gpu/validate_gpu/rows.h"

namespace experiments::validate_gpu {

/// Of one row, by their numbers.
using FinishedShards = std::map<std::uint32_t, ShardResult>;

class ShardFile {
 public:
  struct Line {
    std::string row;  ///< Row::id()
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

/// The lines of rows().
std::vector<ShardFile::Line> shard_lines();

struct ShardComparison {
  std::uint64_t shards_in_both = 0;
  std::uint64_t shards_differing = 0;
  std::string first_difference = {};  ///< row and shard
};

/// By their digests, here and below: of one row, which `row` names.
ShardComparison compare(const FinishedShards& ours, const FinishedShards& theirs, const std::string& row);
void add(ShardComparison& sum, const ShardComparison& part);

/// Both are of the same rows.
ShardComparison compare(const ShardFile& ours, const ShardFile& theirs);

}  // namespace experiments::validate_gpu
