#pragma once
/// The trials of one shard of an instruction: operands in, results held to what is right.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "experiments/cpu/instructions/instruction.h"
#include "experiments/validation/shard_result.h"

namespace experiments::validate_cpu {

using validation::ShardResult;

/// Room for the operands, results and exceptions of a shard, at fixed places, so that it can be shared with the
/// program that executes the instruction.
class ShardMemory {
 public:
  static constexpr std::size_t most_trials = 1 << 16;
  static constexpr std::size_t size = most_trials * (4 * sizeof(std::uint64_t) + sizeof(Exceptions));

  /// `memory` has that size and outlives this.
  explicit ShardMemory(std::byte* memory) : memory_(memory) {}

  std::byte* operands(std::size_t place) const { return memory_ + place * column; }
  std::byte* results() const { return memory_ + 3 * column; }
  Exceptions* exceptions() const { return reinterpret_cast<Exceptions*>(memory_ + 4 * column); }
  Batch batch(std::size_t count, bool with_exceptions) const;

 private:
  static constexpr std::size_t column = most_trials * sizeof(std::uint64_t);

  std::byte* memory_;
};

/// Writes the shard's operands, and over the results and exceptions of an earlier one what is wrong almost everywhere, so
/// that a row which stores nothing is not judged by another's. Returns how many trials the shard has. The domain's shards
/// are no larger than ShardMemory::most_trials.
std::size_t write_operands(const Instruction& instruction, std::uint32_t shard, const ShardMemory& memory);

/// Inputs of a row, rounded up to whole shards: where nothing else is asked for, with --quick, and at most.
inline constexpr std::uint64_t usual_samples = 1 << 22, quick_samples = 1 << 16,
                               most_samples = std::uint64_t{1} << 32;

/// Whether a shard's exceptions are judged besides its values: in the usual sample, which begins with the borders. The
/// others of an exhaustive run have values alone.
bool has_judged_exceptions(const Domain& domain, std::uint32_t shard);

/// What is right for each trial of a shard.
std::vector<Outcome> expected_outcomes(const Instruction& instruction, std::uint32_t shard);

/// A row, and its shards that are to be tried.
struct WantedShards {
  const Instruction* instruction;
  std::vector<std::uint32_t> shards;
};

/// A shard of rows for which the same results are right, so that expected_outcomes() of any of them serves all.
struct SharedShard {
  std::uint32_t shard;
  std::vector<std::size_t> rows;  ///< places in the list
};

/// Every wanted shard of every row once. Rows of one model, mode and domain, as scalar and vector forms are, share theirs.
std::vector<SharedShard> shared_shards(const std::vector<WantedShards>& rows);

struct Difference {
  std::uint32_t index = 0;  ///< in the shard
  Operands operands;
  Outcome found, expected;  ///< exceptions: of the trial's whole group of lanes

  bool in_value() const { return found.value != expected.value; }
};

struct Judgement {
  ShardResult result;
  std::vector<Difference> differences;  ///< the first ones
};

/// Holds results, and exceptions where they were asked for, to `expected`. Lanes raise their exceptions together and
/// so are judged together: one difference for all.
Judgement judge(const Instruction& instruction, std::uint32_t shard, const std::vector<Outcome>& expected,
                const ShardMemory& memory, bool with_exceptions, std::size_t most_differences);

}  // namespace experiments::validate_cpu
