/// Where do the bytes and the operations of a training step go, and what fits on a given card?
///
/// By formula, from a description of the network: nothing of its size is allocated. The formulas are held
/// against published figures, and against what training steps of the simulator really allocate.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "experiments/memory_anatomy/findings.h"
#include "experiments/memory_anatomy/options.h"
#include "experiments/training/laboratory.h"
#include "experiments/training/options.h"
#include "experiments/training/training_setup.h"

namespace experiments::memory_anatomy {
namespace {

void run(Run& run, const Options& options) {
  const sim::PrecisionPolicy policy = policy_from_option(options.policy);
  from_option("--optimizer",
              [&] { return sim::OptimizerState(names::parse_spec(options.optimizer), policy); });
  const Step step(options, policy);
  report(run, step, options, measure(step, options, run.threads()));
}

}  // namespace
}  // namespace experiments::memory_anatomy

int main(int argc, char** argv) {
  using namespace experiments;
  memory_anatomy::Options options;
  return run(argc, argv,
             {.program = {.name = "memory_anatomy",
                          .question =
                              "Where do the bytes and the operations of a training step go, and what fits on "
                              "a given card?",
                          .example = "memory_anatomy --network gpt2_xl --card a100-80gb --policy bf16",
                          .outputs = memory_anatomy::outputs()},
              .options = [&](CommandLine& command_line) { memory_anatomy::bind(command_line, options); },
              .body = [&](Run& r) { memory_anatomy::run(r, options); }});
}
