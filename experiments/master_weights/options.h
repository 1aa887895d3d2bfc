#pragma once
/// The options of master_weights: what they are by default, and how the command line sets them.

#include "experiments/frame/command_line.h"
#include "experiments/training/training_setup.h"

namespace experiments::master_weights {

struct Options {
  TrainingOptions training{.model = "mlp:hidden1=128:hidden2=64", .batch = 64, .steps = 500};
  int seeds = 3;
  int measure_every = 25;
  int loss_scale_log2 = 10;
};

inline void bind(CommandLine& command_line, Options& options) {
  options.training.bind(command_line, 30);
  command_line.add_seeds(options.seeds, 2);
  command_line.add("--measure-every", options.measure_every,
                   "steps from one comparison with the exact update to the next",
                   {.minimum = 1, .maximum = 1'000'000, .quick = 10});
  command_line.add("--scale-log2", options.loss_scale_log2, "log2 of the loss scale of FP16 models",
                   {.minimum = 0, .maximum = 24});
}

}  // namespace experiments::master_weights
