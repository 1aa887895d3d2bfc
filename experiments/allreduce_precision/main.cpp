/// What does summing the gradients of N workers in FP16 lose?
///
/// Trains in FP32, then lets N = 2 .. 4096 virtual workers average their gradients of the weights reached: by
/// six algorithms, each an exact order of additions; in FP16, with FP32 accumulation between FP16 messages,
/// or in FP32; dividing before the sum, half before and half after, or after. All is held against the exact
/// mean of what the workers hold, so that what their own backward passes lose does not count.

#include <fmt/format.h>

#include <string>

#include "experiments/allreduce_precision/findings.h"
#include "experiments/allreduce_precision/options.h"
#include "experiments/training/laboratory.h"
#include "experiments/training/options.h"

namespace experiments::allreduce_precision {
namespace {

void run(Run& run, Options& options) {
  options.training.directory = run.record().staging();
  const TrainingSetup setup(options.training);
  sim::Trainer trainer = setup.trainer({.seed = options.training.seed, .keep_in = ""});
  record_settings(run.record(), "optimizer", trainer.optimizer().name(), trainer.optimizer().options());
  const Findings found = measure(setup, trainer, options, run);
  const std::string setting = fmt::format(
      "{}, policy {}; step {}, {} elements of the gradient, seed {}; {}. network: {} micro-batches of {}, a "
      "worker each; further workers draw one of them. normal: independent draws for every worker, each "
      "element "
      "with the mean and deviation of these micro-batches.",
      setup.description(), options.policy, setup.steps(), found.elements, options.training.seed,
      setup.quality(found.evaluation), options.pool, *options.training.batch);
  report(run, found, options, setting);
}

}  // namespace
}  // namespace experiments::allreduce_precision

int main(int argc, char** argv) {
  using namespace experiments;
  allreduce_precision::Options options;
  return run(
      argc, argv,
      {.program = {.name = "allreduce_precision",
                   .question = "What does summing the gradients of N workers in FP16 lose?",
                   .example = "allreduce_precision --model autoencoder --steps 200 --out results/allreduce",
                   .outputs = allreduce_precision::outputs()},
       .options = [&](CommandLine& command_line) { allreduce_precision::bind(command_line, options); },
       .body = [&](Run& r) { allreduce_precision::run(r, options); }});
}
