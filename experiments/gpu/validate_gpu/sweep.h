#pragma once
/// Runs rows shard by shard, on the CPU from several threads and on a GPU, and goes on where an earlier run
/// stopped.

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "experiments/frame/experiment.h"
#include "experiments/gpu/validate_gpu/attempts.h"
#include "experiments/gpu/validate_gpu/drivers.h"
#include "experiments/gpu/validate_gpu/rows.h"
#include "experiments/validation/row_outcome.h"
#include "experiments/validation/shards.h"

namespace experiments::validate_gpu {

/// The family of the operations with three operands.
inline constexpr std::string_view fused_family = "fused multiply-add";

struct SweepSettings {
  std::vector<std::size_t> rows;  ///< indices into rows(); those that do not run here are passed over
  std::filesystem::path file;     ///< of the shards
  bool on_cpu = true, on_gpu = false;
  std::uint64_t samples = 0;  ///< trials of a row on the CPU; at least that many, in whole shards
  /// Likewise on a GPU, where a shard may be 2^32 of them.
  std::uint64_t gpu_samples = 0;
  bool all_triples = false;  ///< all 2^48 of the fused multiply-adds, fused_family, on a GPU
  /// No shard is begun that would, if it takes as long as the row's last one, end later than this after the start.
  std::optional<double> budget_s = std::nullopt;
  std::size_t counterexamples = 8;  ///< kept of a row
  const std::vector<Driver>* drivers =
      &device_drivers();  ///< for tests: as many, of the same rows and domains
};

/// One outcome for each of settings.rows, by their indices into rows(), in their order, of the wanted shards alone. `shards` holds what is
/// finished, and is written to the file every 20 seconds, at the end and when the run is interrupted or fails.
/// Shards with examples are run a second time on a device for these, while the budget lasts; other results then are a
/// mismatch, too. A shard that the device fails at is added to `failures` and ends the shards of its rows; a lost
/// device ends all.
std::vector<RowOutcome> sweep(const SweepSettings& settings, ShardFile& shards, Run& run,
                              DeviceFailures& failures);

}  // namespace experiments::validate_gpu
