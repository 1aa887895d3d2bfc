#pragma once
/// The shards that all threads of a run write to, and the file that they are saved in.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <mutex>
#include <optional>

#include "experiments/gpu/validate_gpu/shard_file.h"

namespace experiments::validate_gpu {

/// Refers to the shards, and to the file's name.
class Ledger {
 public:
  Ledger(ShardFile& shards, const std::filesystem::path& file) : shards_(shards), file_(file) {}

  /// From any thread. Writes the file when it was not written for 20 seconds; throws as ShardFile::write does.
  void enter(std::size_t row, std::uint32_t shard, const ShardResult& result);

  /// Writes what was entered since; for one thread alone.
  void save();

 private:
  void write();

  ShardFile& shards_;
  const std::filesystem::path& file_;
  std::mutex mutex_;
  bool changed_ = false;
  std::optional<std::chrono::steady_clock::time_point> written_;
};

}  // namespace experiments::validate_gpu
