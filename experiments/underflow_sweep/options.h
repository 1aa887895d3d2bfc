#pragma once
/// The options of underflow_sweep: what they are by default, and how the command line sets them.

#include <string>

#include "experiments/frame/command_line.h"
#include "experiments/training/options.h"
#include "experiments/training/training_setup.h"

namespace experiments::underflow_sweep {

struct Options {
  TrainingOptions training{.model = "mlp", .steps = 600};
  std::string policy = "amp";
  int pool = 4;             ///< batches
  int max_scale_log2 = 24;  ///< of the largest scale
};

inline void bind(CommandLine& command_line, Options& options) {
  options.training.bind(command_line, 30);
  add_policy(command_line, options.policy);
  command_line.add("--pool", options.pool, "batches measured at every scale",
                   {.minimum = 1, .maximum = 100, .quick = 2});
  command_line.add("--max-scale-log2", options.max_scale_log2, "the sweep runs from 2^0 to 2^this",
                   {.minimum = 0, .maximum = 120});
}

}  // namespace experiments::underflow_sweep
