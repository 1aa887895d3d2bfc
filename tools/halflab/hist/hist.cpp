#include "tools/halflab/hist/hist.h"

#include "experiments/frame/columns.h"
#include "tools/halflab/command.h"
#include "tools/halflab/formats.h"
#include "tools/halflab/hist/blocks.h"
#include "tools/halflab/hist/findings.h"

namespace halflab::hist {

int run(int argc, const char* const* argv, experiments::Streams streams) {
  Options options;
  return run_command(
      argc, argv,
      {.program = {.name = "halflab hist",
                   .question =
                       "What would a format lose of these tensors, and which loss scale would keep it?",
                   .example = "halflab hist gradients/ --select weight --format binary16 --out results/hist",
                   .outputs = experiments::outputs_of(outputs(), block_outputs()),
                   .details = "Values are cast to nearest even, with subnormals. What becomes zero, "
                              "subnormal or infinite is counted "
                              "exactly. The recommended S is an octave below the largest power of two at "
                              "which nothing overflows."},
       .options = [&](experiments::CommandLine& command_line) { bind(command_line, options); },
       .body =
           [&](experiments::Run& run) {
             require_figure(options, run.draws());
             const auto set = open(options.inputs);
             require_numbers(set, options.inputs.paths.front());
             if (const fp16::BlockFormat* const blocks = block_format(options.format)) {
               if (options.scale != "auto" || options.scaled_by != "1")
                 throw experiments::UsageError(
                     "--scale, --scaled-by: block formats have scales of their own; allowed: neither");
               return report(run, measure_blocks(set, *blocks, run));
             }
             report(run, measure(set, options, run), options.figure);
           }},
      streams);
}

}  // namespace halflab::hist
