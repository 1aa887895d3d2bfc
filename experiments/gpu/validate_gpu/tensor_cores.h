#pragma once
/// Tensor cores: instructions on the device against the model, themselves and each other, and recorded steps against
/// the model of fp16/mma.h.

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "experiments/frame/experiment.h"
#include "experiments/gpu/validate_gpu/drivers.h"
#include "experiments/gpu/validate_gpu/findings.h"
#include "experiments/validation/shards.h"
#include "fp16/mma.h"

namespace experiments::validate_gpu {

/// Appends a driver for each instruction, accumulator and family of inputs.
void append_tensor_core_drivers(std::vector<Driver>& drivers);

/// Compares each finished shard of an instruction with that of the first one in the list, by their digests; not
/// those families that judge an instruction by itself, whose results depend on the shape of its tiles.
ShardComparison compare_instructions(const ShardFile& shards);

/// For --help.
Outputs agreement_outputs();
/// Writes the summary and the verdict of that comparison; a difference fails the run.
void write_agreement(Run& run, const ShardFile& shards);

/// A file of recorded single steps: header a0,..,b0,..,c_f32,d_f32,d_f16, then bits in hexadecimal digits.
/// The binary16 accumulator of d_f16 is c_f32 rounded to nearest-even.
struct VectorFile {
  std::string_view name;
  const fp16::TensorCore& core;
};

const std::vector<VectorFile>& vector_files();

/// The folder "tensor-core" of HALFLAB_DATA_DIR; nothing where that is not set or has no such folder.
std::optional<std::filesystem::path> vector_folder();

struct VectorMismatch {
  int line;  ///< of the file, from 1
  std::uint32_t result, expected;
};

struct VectorOutcome {
  std::string accumulator;  ///< f32 or f16
  std::uint64_t steps = 0;
  std::uint64_t mismatches = 0;
  std::vector<VectorMismatch> counterexamples;  ///< the first eight
};

/// Checks a file with each accumulator. Throws std::runtime_error, naming file and line, where it cannot be read.
std::vector<VectorOutcome> check_vectors(const std::filesystem::path& folder, const VectorFile& file);

/// What a file of recorded steps shows, with each accumulator. Nothing is read without a folder.
std::vector<Finding> vector_findings(const std::optional<std::filesystem::path>& folder,
                                     const VectorFile& file);

}  // namespace experiments::validate_gpu
