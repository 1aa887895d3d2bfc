#pragma once
/// The rows of the verdict: every operation by every subject that has it, with what documents a difference.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "experiments/validate_gpu/operations.h"

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
  Function function;           ///< null where it does not run here
  Function reference;          ///< of one lane
  const Deviation* deviation;  ///< null for none
  std::string_view needs;      ///< what is missing where function is null

  bool runs() const { return function != nullptr; }
  bool is_packed() const { return subject == Subject::cuda_header_packed || subject == Subject::gpu_packed; }
  bool is_on_gpu() const { return subject == Subject::gpu || subject == Subject::gpu_packed; }
  const Domain& domain() const;
  std::string id() const;
};

/// In the order of operations() and of their subjects; the same in every build of one version.
const std::vector<Row>& rows();

struct Trial {
  Operands operands;  ///< packed: of both lanes
  std::uint64_t result = 0;
  std::uint64_t expected = 0;
  bool is_documented_deviation = false;  ///< what is expected is not what the software half gives

  bool is_mismatch() const { return result != expected; }
};

struct ShardResult {
  std::uint64_t digest = 0;  ///< of all results in their order
  std::uint32_t mismatches = 0;
  std::uint32_t documented = 0;  ///< documented deviations

  friend bool operator==(const ShardResult&, const ShardResult&) = default;
};

/// Only for a row that runs, here and below.
Trial trial(const Row& row, std::uint32_t shard, std::uint32_t index);
ShardResult run_shard(const Row& row, std::uint32_t shard);

/// The first mismatches of a shard.
std::vector<Trial> counterexamples(const Row& row, std::uint32_t shard, std::size_t limit);

}  // namespace experiments::validate_gpu
