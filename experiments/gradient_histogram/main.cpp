/// Where do a network's gradients lie, and which of them can FP16 hold?
///
/// Trains in FP32, pools the gradients of a few batches late in training, and counts them by binary exponent;
/// beside them the weights, what a step changes in them, and the gradients at some moments of training. The
/// gradients are those of the FP32 run; what FP16 would make of them is their cast.

#include <fmt/format.h>

#include "experiments/frame/printable.h"
#include "experiments/gradient_histogram/findings.h"
#include "experiments/gradient_histogram/options.h"
#include "experiments/gradient_histogram/paper_figures.h"
#include "experiments/training/laboratory.h"

namespace experiments::gradient_histogram {
namespace {

void run(Run& run, Options& options) {
  options.training.directory = run.record().staging();
  const TrainingSetup setup(options.training);
  TrainingBudget budget = setup.budget();
  budget.steps += options.pool;  // a schedule that ends at 0 would leave no update to count
  sim::Trainer trainer =
      setup.trainer({.seed = options.training.seed, .threads = run.threads(), .keep_in = ""},
                    sim::find_precision_policy("fp32"), sim::make_any_scaler("none"), budget);
  record_settings(run.record(), "optimizer", trainer.optimizer().name(), trainer.optimizer().options());
  const Findings found = measure(setup, trainer, options, run);
  report(run, found, setup, options,
         fmt::format("{}; step {}, {} pooled, seed {}, S = 1; {}.", setup.description(), setup.steps(),
                     counted(options.pool, "batch"), options.training.seed, setup.quality(found.evaluation)));
  if (!found.prediction_is_exact())
    run.fail("the histogram's prediction differs from the values' cast to FP16");
}

}  // namespace
}  // namespace experiments::gradient_histogram

int main(int argc, char** argv) {
  using namespace experiments;
  gradient_histogram::Options options;
  return run(argc, argv,
             {.program = {.name = "gradient_histogram",
                          .question = "Where do a network's gradients lie, and which of them can FP16 hold?",
                          .example = "gradient_histogram --model cnn --steps 300 --out results/cnn",
                          .outputs = gradient_histogram::outputs()},
              .options = [&](CommandLine& command_line) { gradient_histogram::bind(command_line, options); },
              .body = [&](Run& r) { gradient_histogram::run(r, options); }});
}
