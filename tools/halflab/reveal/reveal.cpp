#include "tools/halflab/reveal/reveal.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "experiments/explain_gemm/tree_file.h"
#include "fp16/reveal_order.h"
#include "tools/halflab/command.h"
#include "tools/halflab/reveal/findings.h"

namespace halflab::reveal {
namespace {

void bind(experiments::CommandLine& command_line, Options& options) {
  command_line.add("--python", options.python,
                   "a function that sums an array, such as numpy:sum or torch:sum", "MODULE:FUNCTION");
  command_line.add("--interpreter", options.interpreter, "Python to call it in", "PROGRAM");
  command_line.add("--order", options.order,
                   fmt::format("in place of --python one of our own orders: {} (default pairwise)",
                               fmt::join(order_names(), ", ")),
                   "NAME");
  command_line.add("--dtype", options.dtype, "of the array", "FORMAT");
  command_line.add("--terms", options.terms, "that are summed; calls grow with their square at most",
                   {.minimum = 1, .maximum = 4096});
  command_line.add("--trials", options.trials, "random inputs that the found tree is replayed on",
                   {.minimum = 0, .maximum = 100000});
  command_line.add("--to", options.to, "write the tree, for halflab explain --tree", "FILE.json");
  command_line.add_seed(options.seed);
}

}  // namespace

int run(int argc, const char* const* argv, experiments::Streams streams) {
  Options options;
  return run_command(
      argc, argv,
      {.program = {.name = "halflab reveal",
                   .question = "In which order does a black box sum?",
                   .example =
                       "halflab reveal --python numpy:sum --dtype float32 --terms 32 --out results/order",
                   .outputs = outputs(),
                   .details = "A large number at i, its negative at j and small ones elsewhere: how many of "
                              "these the result counts "
                              "says where i and j meet (FPRev, USENIX ATC 2025). The tree that follows is "
                              "then replayed on random numbers. "
                              "The function runs with your rights, as any Python that you call."},
       .options = [&](experiments::CommandLine& command_line) { bind(command_line, options); },
       .body =
           [&](experiments::Run& run) {
             try {
               const Findings found = measure(options, run);
               report(run, found);
               if (!options.to.empty()) experiments::explain_gemm::write_tree(options.to, found.tree);
             } catch (const fp16::NotATree& error) {
               throw std::runtime_error(
                   fmt::format("{} is no sum in a fixed order: {}", options.box(), error.what()));
             }
           }},
      streams);
}

}  // namespace halflab::reveal
