/// Where do the bytes and the operations of a training step go, and what fits on a given card?
///
/// By formula, from a description of the network: nothing of its size is allocated. The formulas are held
/// against published figures, and against what training steps of the simulator really allocate.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "experiments/memory_anatomy/findings.h"
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

void bind(CommandLine& command_line, Options& options) {
  command_line.add("--network", options.network,
                   fmt::format("one of {}, or a file; with its symbols, as bert_large:layers=12",
                               fmt::join(shipped_networks(), ", ")),
                   "NAME|FILE.toml");
  command_line.add("--batch", options.batch, "the network's symbol of this name", {.minimum = 1});
  command_line.add("--sequence", options.sequence, "the network's symbol of this name", {.minimum = 1});
  add_policy(command_line, options.policy);
  command_line.add_choice("--optimizer", options.optimizer, "optimizers", "whose state is counted");
  command_line.add("--card", options.card,
                   fmt::format("one of {}", fmt::join(names::names_of(sim::cards()), ", ")), "NAME");
  command_line.add("--memory-gib", options.memory_gib, "memory in place of the card's",
                   {.minimum = 0, .maximum = 1 << 20, .minimum_excluded = true});
  command_line.add("--peak-tflops", options.peak_tflops,
                   "rate of contractions in the policy's lower precision, in place of the card's",
                   {.minimum = 0, .maximum = 1e9, .minimum_excluded = true});
  command_line.add("--bandwidth-gb-per-s", options.bandwidth_gb_per_s, "in place of the card's",
                   {.minimum = 0, .maximum = 1e9, .minimum_excluded = true});
  command_line.add("--context-mib", options.context_mib,
                   "what the device's own kernels take before any tensor",
                   {.minimum = 0, .maximum = 1 << 20});
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
