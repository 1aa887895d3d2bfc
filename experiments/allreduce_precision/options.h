#pragma once
/// The options of allreduce_precision: what they are by default, and how the command line sets them.

#include <optional>
#include <string>

#include "experiments/frame/command_line.h"
#include "experiments/training/options.h"
#include "experiments/training/training_setup.h"

namespace experiments::allreduce_precision {

struct Options {
  TrainingOptions training{.model = "mlp", .batch = 32, .steps = 100};
  std::string policy = "amp";
  int pool = 64;
  int elements = 4096;
  int max_workers_log2 = 12;
  std::optional<int> scale_log2;
  std::optional<int> max_scale_log2;
};

inline void bind(CommandLine& command_line, Options& options) {
  options.training.bind(command_line, 20);
  add_policy(command_line, options.policy);
  command_line.add("--pool", options.pool, "micro-batches of --batch examples, each of one worker",
                   {.minimum = 2, .maximum = 8192, .quick = 8});
  command_line.add("--elements", options.elements,
                   "elements of the gradient that are averaged, chosen at random",
                   {.minimum = 1, .maximum = 65536, .quick = 512});
  command_line.add("--max-workers-log2", options.max_workers_log2, "N = 2^1, 2^2 .. 2^this",
                   {.minimum = 1, .maximum = 13, .quick = 6});
  command_line.add("--scale-log2", options.scale_log2,
                   "log2 of the loss scale, beside 0; without it, that which leaves the largest "
                   "gradient of a worker an octave below 65504",
                   {.minimum = 0, .maximum = 120});
  command_line.add("--max-scale-log2", options.max_scale_log2,
                   "scales.csv runs from S = 2^0 to 2^this; without it, to four octaves beyond "
                   "what --scale-log2 is without it",
                   {.minimum = 0, .maximum = 120});
}

}  // namespace experiments::allreduce_precision
