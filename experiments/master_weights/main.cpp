/// When does FP16 training need an FP32 copy of the weights?
///
/// Trains a network under several optimizers and rates, each with the weights kept in FP32 between the steps
/// (master weights), in FP16 or in bfloat16, rounded to nearest or stochastically. Forward and backward pass,
/// gradients and the optimizer's arithmetic are the same in all of them: from the same weights they make the
/// same update, and differ only in what the storage keeps of it. Every few steps the change of the stored
/// weights is held against the exact update.

#include <memory>
#include <vector>

#include "experiments/master_weights/findings.h"
#include "experiments/master_weights/options.h"
#include "experiments/training/laboratory.h"

namespace experiments::master_weights {
namespace {

void run(Run& run, Options& options) {
  options.training.directory = run.record().staging();
  const std::vector<std::unique_ptr<Condition>> conditions = make_conditions(options.training);
  report(run, measure(conditions, options, run), options);
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
                   .outputs = master_weights::outputs()},
       .options = [&](CommandLine& command_line) { master_weights::bind(command_line, options); },
       .body = [&](Run& r) { master_weights::run(r, options); }});
}
