#pragma once
/// The rows of the verdict: every operation by every subject that has it, with what documents a difference.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "experiments/gpu/validate_gpu/operations.h"
#include "experiments/validation/shards.h"

namespace experiments::validate_gpu {

/// What NVIDIA's documentation or header says of an operation that the software half does otherwise.
struct Deviation {
  std::string_view operation;
  std::string_view meaning;
  bool (*applies)(const Operands& operands);
  std::uint64_t result;  ///< what is expected there, of one lane
};

const std::vector<Deviation>& documented_deviations();

struct Row {
  const Operation* operation;
  Subject subject;
  Function function;                  ///< null where it is not on the CPU, or without cuda_fp16.h
  Function reference;                 ///< of one lane
  const Deviation* deviation;         ///< null for none
  std::optional<std::size_t> driver;  ///< of device_drivers(); for a row on a GPU that has a kernel

  bool is_packed() const { return subject == Subject::cuda_header_packed || subject == Subject::gpu_packed; }
  bool is_on_gpu() const { return subject == Subject::gpu || subject == Subject::gpu_packed; }
  const Domain& domain() const;
  ExampleTypes example_types() const;
  std::string id() const;
};

std::string row_id(const Operation& operation, Subject subject);

/// In the order of operations() and of their subjects; the same in every build of one version.
const std::vector<Row>& rows();

/// The lines of rows() in a shard file, each by its id().
std::vector<ShardFile::Line> shard_lines();

struct Trial {
  Operands operands;  ///< packed: of both lanes
  std::uint64_t result = 0;
  std::uint64_t expected = 0;
  bool is_documented_deviation = false;  ///< what is expected is not what the software half gives

  bool is_mismatch() const { return result != expected; }
};

/// Only for a row with a function, here and below.
Trial trial(const Row& row, std::uint32_t shard, std::uint32_t index);
ShardResult run_shard(const Row& row, std::uint32_t shard);

/// The first mismatches of a shard.
std::vector<Trial> counterexamples(const Row& row, std::uint32_t shard, std::size_t limit);

Example example_of(const Row& row, const Trial& trial);

}  // namespace experiments::validate_gpu
