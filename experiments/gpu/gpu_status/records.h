#pragma once
/// The records of ./lab gpu that stand among others in a folder, by GPU.

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "experiments/frame/json.h"
#include "experiments/validation/proofs.h"

namespace experiments::gpu_status {

/// A row of throughput.csv: a kernel whose results were right, beside one that limits it.
struct KernelTime {
  std::string kernel;
  std::string size;  ///< empty where the kernel has only one
  std::string unit;  ///< B or FLOP
  double rate = 0;   ///< units a second
  std::string limit;
  double ratio = 0;
  std::string target;  ///< the least ratio aimed at; empty for none
};

struct Record {
  std::string gpu;
  std::string where;  ///< the GPU, its driver, the day and the revision
  Json summary;
  std::map<std::string, validation::RowProof> rows;  ///< by validate_gpu::Row::id()
  std::vector<KernelTime> kernels;
};

/// One GPU with all its records.
struct RecordedGpu {
  std::string name;
  std::vector<Record> records;
};

/// Folders with other records are passed over. Throws std::runtime_error, naming the folder, for a record of
/// ./lab gpu that is not of a GPU, since it proves nothing, and naming the file for one that is damaged.
std::vector<RecordedGpu> read_gpus(const std::filesystem::path& records);

}  // namespace experiments::gpu_status
