/// What does each precision recipe cost in accuracy, and what does it save?
///
/// Trains one network on the same seeds and batches under every recipe, a precision policy with the scaler that
/// it comes with; then under each recipe once more at the largest batch that fits into the bytes which FP32 takes.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "experiments/opt_levels/findings.h"
#include "experiments/opt_levels/options.h"
#include "experiments/training/laboratory.h"
#include "experiments/training/options.h"
#include "experiments/training/training_setup.h"

namespace experiments::opt_levels {
namespace {

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
  options.training.directory = run.record().staging();
  const TrainingSetup setup(options.training);
  report(run, measure(setup, options, run));
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
