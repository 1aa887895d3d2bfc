/// How much of the gradient does FP16 lose at each loss scale, measured and predicted?
///
/// Trains in FP32, then takes a few batches and, for S = 2^0 .. 2^24, runs the real backward pass of the
/// policy with the loss times S against the twin: the same forward values, differentiated in FP32. Beside it
/// stands what the twin's exponent histogram at S = 1 predicts, which knows of the last rounding only, not of
/// those upstream.

#include <fmt/format.h>

#include <string>

#include "experiments/frame/printable.h"
#include "experiments/training/laboratory.h"
#include "experiments/training/options.h"
#include "experiments/underflow_sweep/findings.h"
#include "experiments/underflow_sweep/options.h"
#include "sim/loss_scaling/current_scaling.h"
#include "sim/precision/precision_policy.h"

namespace experiments::underflow_sweep {
namespace {

/// "policy fp8 with cast scales by current".
std::string policy_description(const std::string& policy) {
  const bool scales_casts = policy_from_option(policy).operands.narrows_per_tensor();
  return fmt::format(
      "policy {}{}", policy,
      scales_casts ? fmt::format(" with cast scales by {}", sim::CurrentScaling().name()) : "");
}

void run(Run& run, Options& options) {
  options.training.directory = run.record().staging();
  const TrainingSetup setup(options.training);
  sim::Trainer trainer =
      setup.trainer({.seed = options.training.seed, .threads = run.threads(), .keep_in = ""});
  record_settings(run.record(), "optimizer", trainer.optimizer().name(), trainer.optimizer().options());
  const Findings found = measure(setup, trainer, options, run);
  report(run, found, setup.model().is_classifier(),
         fmt::format("{}, {}; step {}, {}, seed {}; {}.", setup.description(),
                     policy_description(options.policy), setup.steps(), counted(options.pool, "batch"),
                     options.training.seed, setup.quality(found.evaluation)));
}

}  // namespace
}  // namespace experiments::underflow_sweep

int main(int argc, char** argv) {
  using namespace experiments;
  underflow_sweep::Options options;
  return run(
      argc, argv,
      {.program = {.name = "underflow_sweep",
                   .question =
                       "How much of the gradient does FP16 lose at each loss scale, measured and predicted?",
                   .example = "underflow_sweep --model autoencoder --steps 200 --out results/sweep",
                   .outputs = underflow_sweep::outputs()},
       .options = [&](CommandLine& command_line) { underflow_sweep::bind(command_line, options); },
       .body = [&](Run& r) { underflow_sweep::run(r, options); }});
}
