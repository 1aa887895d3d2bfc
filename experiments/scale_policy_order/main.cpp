/// What does each mistake in the order of unscale, clip, accumulate, step and update do to the training?
///
/// Every recipe is a list of calls that is carried out as it stands. At each step of a right one the others of
/// its kind are set to its weights and see its batch, so that the factor which each puts on the learning rate
/// is well defined, and it is held against the one that follows from the calls on paper. Then each recipe
/// trains on its own.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <stdexcept>
#include <string>

#include "experiments/frame/printable.h"
#include "experiments/scale_policy_order/findings.h"
#include "experiments/scale_policy_order/options.h"
#include "experiments/training/laboratory.h"
#include "experiments/training/options.h"
#include "experiments/training/training_setup.h"
#include "fp16/names.h"
#include "sim/optimizers/registry.h"

namespace experiments::scale_policy_order {
namespace {

void check(const Options& options) {
  if (*options.training.batch % options.micro_batches != 0)
    throw std::invalid_argument(
        fmt::format("--micro-batches: {} do not divide a batch of {}; allowed: its divisors",
                    options.micro_batches, *options.training.batch));
}

/// Rejects what is wrong before anything is trained, and notes the options in force.
void record_optimizers(RunRecord& record, const Options& options) {
  for (const std::string& spec : options.optimizers) {
    const auto optimizer = from_option("--optimizers", [&] {
      const auto [name, given] = names::parse_numeric_spec(spec);
      return sim::make_optimizer(name, given);
    });
    record_settings(record, "optimizer", spec, optimizer->options());
  }
}

std::string description(const TrainingSetup& setup, const TrainingOptions& options) {
  return fmt::format("{} on {}, batch {}, {}", options.model, setup.dataset().name(), *options.batch,
                     counted(setup.steps(), "step"));
}

void run(Run& run, Options& options) {
  options.detector.seed = options.training.seed;
  const TrainingSetup setup(options.training);
  const TrainingSetup detector(options.detector);
  check(options);
  record_optimizers(run.record(), options);
  const Findings found = measure(setup, detector, options, run);
  const Setting skipping = setting_of(find_recipe("right_skips"), options.optimizers.front(), options);
  const std::string setting = fmt::format(
      "{}; two losses: {}; {} under policy amp, {}. S begins at 2^{}, that of a second scaler "
      "at 2^{}, that of recipes that skip steps at 2^{}, and doubles after {} clean steps; accumulation of n "
      "= "
      "{} micro-batches; norm clipped at C = {}, values at {}.",
      description(setup, options.training), description(detector, options.detector),
      fmt::join(options.optimizers, ", "), seeds_text(options.training.seed, options.seeds),
      options.scale_log2, options.scale_log2 - skipping.second_scale_below_log2, skipping.too_high_scale_log2,
      options.growth_interval, options.micro_batches, options.max_norm, options.max_value);
  report(run, found, options, setting);
}

}  // namespace
}  // namespace experiments::scale_policy_order

int main(int argc, char** argv) {
  using namespace experiments;
  scale_policy_order::Options options;
  return run(
      argc, argv,
      {.program = {.name = "scale_policy_order",
                   .question =
                       "What does each mistake in the order of unscale, clip, accumulate, step and update do "
                       "to the training?",
                   .example = "scale_policy_order --optimizers sgd,adam:epsilon=1e-12 --out results/order",
                   .outputs = scale_policy_order::outputs()},
       .options = [&](CommandLine& command_line) { scale_policy_order::bind(command_line, options); },
       .body = [&](Run& r) { scale_policy_order::run(r, options); }});
}
