#pragma once
/// A device for tests of validate_gpu whose kernels invent their answers, and sweeps on it.

#include <cstdint>
#include <filesystem>
#include <functional>
#include <sstream>
#include <string>
#include <vector>

#include "experiments/frame/experiment.h"
#include "experiments/gpu/validate_gpu/attempts.h"
#include "experiments/gpu/validate_gpu/drivers.h"
#include "experiments/gpu/validate_gpu/findings.h"
#include "experiments/gpu/validate_gpu/rows.h"
#include "experiments/gpu/validate_gpu/sweep.h"
#include "experiments/validation/shards.h"
#include "fp16/cuda/mix.h"
#include "tests/experiments/gpu/validate_gpu_rows.h"
#include "tests/file_contents.h"
#include "tests/temporary_directory.h"

namespace test {

using experiments::validate_gpu::device_drivers;
using experiments::validate_gpu::DeviceAnswer;
using experiments::validate_gpu::DeviceFailures;
using experiments::validate_gpu::Driver;
using experiments::validate_gpu::Finding;
using experiments::validate_gpu::finding_of;
using experiments::validate_gpu::RowOutcome;
using experiments::validate_gpu::rows;
using experiments::validate_gpu::shard_lines;
using experiments::validate_gpu::ShardFile;
using experiments::validate_gpu::SweepSettings;

inline const std::vector<std::string> some_rows{"hadd, GPU", "hfma, GPU", "hfma_relu, GPU packed",
                                                "hexp, GPU", "hadd, software half"};

/// Answers that depend on row and shard alone.
inline DeviceAnswer invented_answer(const Driver& driver, std::uint32_t shard) {
  DeviceAnswer answer{.time_s = 0.25, .rows = {}};
  for (const std::string& id : driver.rows)
    answer.rows.push_back(
        {.result = {.digest = fp16::cuda::mix(std::hash<std::string>{}(id) + shard)}, .examples = {}});
  return answer;
}

/// The program's drivers, with kernels that invent answers and count their runs.
struct InventedDevice {
  std::vector<Driver> drivers = device_drivers();
  int runs = 0;

  InventedDevice() {
    for (Driver& driver : drivers) {
      driver.run = [this, copy = driver](std::uint32_t shard) {
        ++runs;
        return invented_answer(copy, shard);
      };
      driver.obstacle = [] { return std::string(); };
      driver.answers = {};
    }
  }
  InventedDevice(const InventedDevice&) = delete;

  Driver& driver_of(const std::string& id) { return drivers.at(rows().at(row_index(id)).driver.value()); }
};

struct Swept {
  std::vector<RowOutcome> outcomes;
  DeviceFailures failures;
  std::string bytes;  ///< of the shard file

  std::vector<Finding> findings() const {
    std::vector<Finding> all;
    for (const RowOutcome& outcome : outcomes) all.push_back(finding_of(outcome, failures));
    return all;
  }
};

inline SweepSettings settings_for(const std::vector<std::string>& ids, const InventedDevice& device) {
  SweepSettings settings{.rows = {},
                         .file = {},
                         .on_gpu = true,
                         .gpu_samples = std::uint64_t{1} << 34,
                         .drivers = &device.drivers};
  for (const std::string& id : ids) settings.rows.push_back(row_index(id));
  return settings;
}

/// Goes on with the shards that the directory holds.
inline Swept swept(const TemporaryDirectory& directory, SweepSettings settings) {
  const std::string file = directory / "shards.bin";
  settings.file = file;
  std::ostringstream warnings;
  experiments::RunRecord record(directory / "run");
  experiments::Run run(record, {.threads = 2, .terminal = nullptr, .warnings = &warnings});
  ShardFile shards = std::filesystem::exists(file)
                         ? ShardFile::read(file, shard_lines(), ShardFile::Use::go_on)
                         : ShardFile(shard_lines());
  Swept result{.outcomes = {}, .failures = {}, .bytes = {}};
  result.outcomes = sweep(settings, shards, run, result.failures);
  if (std::filesystem::exists(file)) result.bytes = test::content_of(file);
  return result;
}

}  // namespace test
