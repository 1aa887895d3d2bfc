#pragma once
/// The options of scale_policy_order: what they are by default, and how the command line sets them.

#include <string>
#include <vector>

#include "experiments/frame/command_line.h"
#include "experiments/training/options.h"
#include "experiments/training/training_setup.h"

namespace experiments::scale_policy_order {

struct Options {
  TrainingOptions training{.model = "mlp:hidden1=64:hidden2=32", .batch = 32, .steps = 200};
  /// The network of the recipes of two losses.
  TrainingOptions detector{.model = "ssd:channels=4:normaliser=0", .batch = 8, .steps = 60};
  std::vector<std::string> optimizers{"sgd", "adam"};
  int micro_batches = 4;
  double max_norm = 1;
  double max_value = 0.01;
  int scale_log2 = 16;
  int growth_interval = 20;
  int seeds = 5;
};

inline void bind(CommandLine& command_line, Options& options) {
  add_model(command_line, options.training.model);
  add_data(command_line, options.training.data);
  command_line.add_choices("--optimizers", options.optimizers, "optimizers",
                           "optimizers, with options as adam:epsilon=1e-12");
  add_batch(command_line, options.training.batch);
  command_line.add("--micro-batches", options.micro_batches, "n, that a batch is accumulated of",
                   {.minimum = 2, .maximum = 1024});
  command_line.add_steps(options.training.steps, 20);
  command_line.add("--detector-steps", options.detector.steps,
                   "training steps of the detector, whose two losses are scaled",
                   {.minimum = 1, .maximum = 1000000, .quick = 4});
  command_line.add("--clip-norm", options.max_norm, "C, the largest norm of all gradients together",
                   {.minimum = 0, .minimum_excluded = true, .in_binary32 = true});
  command_line.add("--clip-value", options.max_value, "largest magnitude of a gradient",
                   {.minimum = 0, .minimum_excluded = true, .in_binary32 = true});
  command_line.add("--scale-log2", options.scale_log2, "log2 of the S that runs begin with",
                   {.minimum = 8, .maximum = 64});
  command_line.add("--growth-interval", options.growth_interval, "clean steps after which S doubles",
                   {.minimum = 1, .maximum = 1000000});
  command_line.add_seed(options.training.seed);
  command_line.add_seeds(options.seeds, 2);
}

}  // namespace experiments::scale_policy_order
