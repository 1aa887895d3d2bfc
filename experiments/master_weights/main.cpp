/// When does FP16 training need an FP32 copy of the weights?
///
/// Trains a network under several optimizers and rates, each with the weights kept in FP32 between the steps
/// (master weights), in FP16 or in bfloat16, rounded to nearest or stochastically. Forward and backward pass,
/// gradients and the optimizer's arithmetic are the same in all of them: from the same weights they make the
/// same update, and differ only in what the storage keeps of it. Every few steps the change of the stored
/// weights is held against the exact update.

#include <fmt/format.h>

#include <memory>
#include <string>
#include <vector>

#include "experiments/master_weights/conditions.h"
#include "experiments/master_weights/figures.h"
#include "experiments/master_weights/findings.h"
#include "experiments/master_weights/record.h"
#include "experiments/master_weights/verdict.h"
#include "experiments/training/laboratory.h"
#include "experiments/training/training_setup.h"

namespace experiments::master_weights {
namespace {

std::string setting_of(const std::vector<ConditionFindings>& findings, const Options& options) {
  const Condition& first = *findings.front().condition;
  return fmt::format(
      "{} on {}, batch {}, {} steps, {}; FP16 model (as of Apex O2), S = 2^{}, FP32 gradients, FP32 "
      "optimizer.",
      options.training.model, first.setup().dataset().name(), *first.training().batch, first.setup().steps(),
      seeds_text(options.training.seed, options.seeds), options.loss_scale_log2);
}

void run(Run& run, Options& options) {
  const std::vector<std::unique_ptr<Condition>> conditions = make_conditions(options.training);
  const std::vector<ConditionFindings> findings = measure(conditions, options, run);
  write_tables(run.record(), findings, options);
  write_summary(run.record(), findings);
  const std::string setting = setting_of(findings, options);
  draw_figures(run, findings, setting);
  write_verdict(run.record(), findings, setting);
}

}  // namespace
}  // namespace experiments::master_weights

int main(int argc, char** argv) {
  using namespace experiments;
  master_weights::Options options;
  return run(
      argc, argv,
      {.program = {.name = "master_weights",
                   .question = "When does FP16 training need an FP32 copy of the weights?",
                   .example = "master_weights --optimizer adamw --lr 3e-5 --schedule linear --steps 1000 "
                              "--out results/my_rate",
                   .summary_keys = master_weights::summary_keys()},
       .options =
           [&](CommandLine& command_line) {
             options.training.bind(command_line, 30);
             command_line.add_seeds(options.seeds, 2);
             command_line.add("--measure-every", options.measure_every,
                              "steps from one comparison with the exact update to the next",
                              {.minimum = 1, .maximum = 1'000'000, .quick = 10});
             command_line.add("--scale-log2", options.loss_scale_log2,
                              "log2 of the loss scale of FP16 models", {.minimum = 0, .maximum = 24});
           },
       .body = [&](Run& r) { master_weights::run(r, options); }});
}
