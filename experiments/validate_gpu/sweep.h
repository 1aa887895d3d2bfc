#pragma once
/// Runs rows shard by shard, from several threads, and goes on where an earlier run stopped.

#include <cstdint>
#include <filesystem>
#include <vector>

#include "experiments/common/experiment.h"
#include "experiments/validate_gpu/rows.h"
#include "experiments/validate_gpu/shard_file.h"

namespace experiments::validate_gpu {

struct SweepSettings {
  std::vector<std::size_t> rows;    ///< indices into rows(); those that do not run here are passed over
  std::uint64_t samples = 0;        ///< trials of a row; at least that many, in whole shards
  std::filesystem::path file;       ///< of the shards
  std::size_t counterexamples = 8;  ///< kept of a row
};

struct RowOutcome {
  std::size_t row;  ///< index into rows()
  std::uint64_t inputs = 0;
  std::uint64_t inputs_now = 0;  ///< of these, tried by this run and not by an earlier one
  std::uint64_t mismatches = 0;
  std::uint64_t documented = 0;
  std::vector<Trial> counterexamples = {};
  double time_s = 0;  ///< of this run, summed over the threads
};

/// One outcome for each of settings.rows, in their order, of the sampled shards alone. `shards` holds what is
/// finished, and is written to the file every 20 seconds, at the end and when the run is interrupted.
std::vector<RowOutcome> sweep(const SweepSettings& settings, ShardFile& shards, Run& run);

}  // namespace experiments::validate_gpu
