#pragma once
/// The options of scaler_comparison: what they are by default, and how the command line sets them.

#include <string>
#include <vector>

#include "experiments/frame/command_line.h"
#include "experiments/scaler_comparison/regimes.h"
#include "experiments/training/data_parallel_options.h"
#include "experiments/training/options.h"
#include "experiments/training/training_setup.h"

namespace experiments::scaler_comparison {

struct Options {
  TrainingOptions training{.model = "autoencoder"};
  std::string policy = "amp";
  std::vector<std::string> scalers{"none", "static", "dynamic", "adaptive"};
  int seeds = 3;
  int twin_every = 10;
  int statistics_every = 0;
  int growth_interval = 20;
  std::string regimes = "calm";
  Disturbances disturbances = {};
  DataParallelOptions parallel = {};
};

inline void bind(CommandLine& command_line, Options& options) {
  options.training.bind(command_line, 20);
  add_policy(command_line, options.policy);
  add_scalers(command_line, options.scalers);
  command_line.add_seeds(options.seeds);
  options.parallel.bind(command_line);
  add_twin_every(command_line, options.twin_every, 5);
  command_line.add("--statistics-every", options.statistics_every,
                   "steps from one histogram of every gradient to the next; 0: never",
                   {.minimum = 0, .maximum = 1'000'000});
  command_line.add("--growth-interval", options.growth_interval,
                   "of every scaler that has one and is not given its own; the originals' 1000 or 2000 would "
                   "not move in so short a run",
                   {.minimum = 1});
  command_line.add(
      "--regimes", options.regimes,
      "what disturbs the runs: calm (nothing), spiky (outliers among the batches), drifting (the learning "
      "rate falls in the middle of the run), poisoned (losses that are NaN); all but calm alone rank the "
      "scalers",
      "A,B|all");
  command_line.add("--disturb-every", options.disturbances.every,
                   "steps, the last of which is an outlier or poisoned; more than half of a run: once",
                   {.minimum = 1, .maximum = 1'000'000, .quick = 7});
  command_line.add(
      "--outlier-factor", options.disturbances.outlier_factor,
      "by which an outlier's loss counts more; the default takes any S near its ceiling beyond it",
      {.minimum = 1, .maximum = 1e9, .minimum_excluded = true});
  command_line.add("--drift-factor", options.disturbances.drift_factor,
                   "of the learning rate in the second half of drifting runs",
                   {.minimum = 0, .maximum = 1, .minimum_excluded = true});
}

}  // namespace experiments::scaler_comparison
