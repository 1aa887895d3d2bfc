#pragma once

#include <string>

#include "experiments/frame/command_line.h"
#include "sim/trainer/data_parallel.h"

namespace experiments {

/// How a training is spread over virtual ranks, as its user says it. One rank exchanges nothing, whatever else is said.
struct DataParallelOptions {
  int ranks = 1;
  std::string allreduce = "ring:precision=fp32";
  std::string found_inf = "after";
  bool sync_batch_norm = false;

  /// Adds --ranks, --allreduce, --found-inf and --sync-batch-norm.
  void bind(CommandLine& command_line);

  /// Throws std::invalid_argument, one line that names the option.
  sim::DataParallel choice() const;
};

/// "4 ranks, all-reduced by ring in fp16, divided before" and what is not the usual; empty for one rank.
std::string in_words(const sim::DataParallel& parallel);

}  // namespace experiments
