#pragma once
/// The options of opt_levels: what they are by default, and how the command line sets them.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <string>

#include "experiments/frame/command_line.h"
#include "experiments/opt_levels/recipes.h"
#include "experiments/training/data_parallel_options.h"
#include "experiments/training/options.h"
#include "experiments/training/training_setup.h"

namespace experiments::opt_levels {

/// The network that is trained unless another is asked for, and what FP32 trains it well with. Momentum,
/// since under Adam O3 is NaN from the second step on: its epsilon of 1e-8 is 0 in FP16.
struct DefaultNetwork {
  static constexpr const char* model = "cnn:channels=4";
  static constexpr int batch = 32, steps = 240;
  static constexpr double learning_rate = 0.2;
};

struct Options {
  TrainingOptions training = {};
  std::string recipes =
      "O1,O2,O3,amp,bf16,fp16,fp16:reductions=binary32,fp8,fp8_unscaled,mxfp8,fp4_tensor,"
      "mxfp4,nvfp4";
  int seeds = 4;
  int twin_every = 25;
  bool equal_steps = false;
  bool keep_learning_rate = false;
  DataParallelOptions parallel = {};
};

inline void bind(CommandLine& command_line, Options& options) {
  command_line.add_choice(
      "--model", options.training.model, "models",
      fmt::format("network to train, with options as mlp:hidden1=64 (default: {} in {} steps of {} examples "
                  "at a learning rate of {})",
                  DefaultNetwork::model, DefaultNetwork::steps, DefaultNetwork::batch,
                  DefaultNetwork::learning_rate));
  options.training.bind_without_model(command_line, 8);
  command_line.add("--recipes", options.recipes,
                   fmt::format("to hold against {}, policies with overrides as O2:keep_batchnorm_fp32=false: "
                               "all, or out of {}",
                               reference, fmt::join(recipe_names(), ", ")),
                   "A,B|all");
  command_line.add_seeds(options.seeds, 1);
  options.parallel.bind(command_line);
  add_twin_every(command_line, options.twin_every, 4);
  command_line.add_flag("--equal-steps", options.equal_steps,
                        "larger batches are trained with for as many steps, and not for as many examples");
  command_line.add_flag("--keep-lr", options.keep_learning_rate,
                        "larger batches keep the learning rate, which else grows with them in proportion");
}

}  // namespace experiments::opt_levels
