/// What does each precision recipe cost in accuracy, and what does it save?
///
/// The same network, seeds and batches under every recipe, a precision policy with the scaler that it comes
/// with. Then each recipe once more at the largest batch that fits into the bytes which FP32 takes.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "experiments/opt_levels/findings.h"
#include "experiments/training/laboratory.h"
#include "experiments/training/options.h"
#include "experiments/training/training_setup.h"

namespace experiments::opt_levels {
namespace {

/// The network that is trained unless another is asked for, and what FP32 trains it well with. Momentum,
/// since under Adam O3 is NaN from the second step on: its epsilon of 1e-8 is 0 in FP16.
struct DefaultNetwork {
  static constexpr const char* model = "cnn:channels=4";
  static constexpr int batch = 32, steps = 240;
  static constexpr double learning_rate = 0.2;
};

void fill_in(TrainingOptions& training) {
  if (!training.model.empty()) return;
  training.model = DefaultNetwork::model;
  if (!training.batch) training.batch = DefaultNetwork::batch;
  if (!training.steps) training.steps = DefaultNetwork::steps;
  if (!training.learning_rate && training.optimizer.empty())
    training.learning_rate = DefaultNetwork::learning_rate;
}

void run(Run& run, Options& options) {
  fill_in(options.training);
  const TrainingSetup setup(options.training);
  report(run, measure(setup, options, run));
}

void bind(CommandLine& command_line, Options& options) {
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
  add_twin_every(command_line, options.twin_every, 4);
  command_line.add_flag("--equal-steps", options.equal_steps,
                        "larger batches are trained with for as many steps, and not for as many examples");
  command_line.add_flag("--keep-lr", options.keep_learning_rate,
                        "larger batches keep the learning rate, which else grows with them in proportion");
}

}  // namespace
}  // namespace experiments::opt_levels

int main(int argc, char** argv) {
  using namespace experiments;
  opt_levels::Options options;
  return run(
      argc, argv,
      {.program = {.name = "opt_levels",
                   .question = "What does each precision recipe cost in accuracy, and what does it save?",
                   .example = "opt_levels --model mlp --recipes O1,O2,O3 --seeds 5 --out results/mlp",
                   .outputs = opt_levels::outputs()},
       .options = [&](CommandLine& command_line) { opt_levels::bind(command_line, options); },
       .body = [&](Run& r) { opt_levels::run(r, options); }});
}
