#pragma once
/// The program that executes the instructions of one processor: for validate_cpu, or alone.

#include <cstdint>
#include <string>

#include "experiments/cpu/instructions/shard_trials.h"

namespace experiments::validate_cpu {

/// What a program alone was asked for.
struct RunnerOptions {
  std::string rows;  ///< only those whose name or group holds this text
  std::uint64_t samples = usual_samples;
  unsigned threads = 1;
  std::string out;       ///< file for validate_cpu --from; none without
  std::string emulator;  ///< what stands for the processor, such as "Bochs 3.0"; none where this is silicon
};

/// Which processor this is, what it lacks, and which rows this program has: what a program tells first.
std::string introduction(const std::string& model);

/// Tells the introduction on stdout, then executes what stdin asks for, in the ShardMemory behind the file
/// descriptor, until stdin ends: "execute FAMILY ROW TRIALS EXCEPTIONS", answered by "done". Returns the exit code.
int serve(int memory);

/// Holds all rows to the software half, prints the verdict and returns the exit code.
int validate_alone(const RunnerOptions& options);

}  // namespace experiments::validate_cpu
