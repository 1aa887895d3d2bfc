/// Where do a network's gradients lie, and which of them can FP16 hold?
///
/// Trains in FP32, pools the gradients of a few batches late in training, and counts them by binary exponent;
/// beside them the weights, what a step changes in them, and the gradients at some moments of training. The
/// gradients are those of the FP32 run; what FP16 would make of them is their cast.

#include <fmt/format.h>

#include "experiments/gradient_histogram/findings.h"
#include "experiments/gradient_histogram/paper_figures.h"
#include "experiments/training/laboratory.h"

namespace experiments::gradient_histogram {
namespace {

void run(Run& run, Options& options) {
  const TrainingSetup setup(options.training);
  sim::Trainer trainer = setup.trainer({.seed = options.training.seed, .threads = run.threads()});
  record_settings(run.record(), "optimizer", trainer.optimizer().name(), trainer.optimizer().options());
  const Findings found = measure(setup, trainer, options, run);
  report(run, found, setup, options.figure,
         fmt::format("{}; step {}, {} batch{} pooled, seed {}, S = 1; {}.", setup.description(),
                     setup.steps(), options.pool, options.pool == 1 ? "" : "es", options.training.seed,
                     setup.quality(found.evaluation)));
  if (!found.prediction_is_exact())
    run.fail("the histogram's prediction differs from the values' cast to FP16");
}

void bind(CommandLine& command_line, Options& options) {
  command_line.add_presets(
      "--figure", options.figure,
      {{"exponents", "the model's gradients by exponent", {}},
       {"paper3",
        "activation gradients in the layout of figure 3 of Micikevicius et al. (2018), by default "
        "of",
        {{"--model", "ssd:normaliser=1"},
         {"--optimizer", "momentum:weight_decay=5.6e-6"},
         {"--lr", "1.2"},
         {"--batch", "32"},
         {"--steps", "250"}}},
       {"paper2b",
        "weight gradients over training, as in their figure 2b, by default of",
        {{"--model", "lstm:width=256"}, {"--steps", "160"}}}},
      "what to draw besides");
  options.training.bind(command_line, 30);
  command_line.add("--pool", options.pool, "batches whose gradients are counted together",
                   {.minimum = 1, .maximum = 1000, .quick = 2});
  command_line.add("--moments", options.moments,
                   "moments of training, evenly spaced, whose gradients are drawn as ridges",
                   {.minimum = 1, .maximum = 100, .quick = 3});
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
