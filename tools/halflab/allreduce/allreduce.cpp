#include "tools/halflab/allreduce/allreduce.h"

#include "tools/halflab/allreduce/findings.h"
#include "tools/halflab/allreduce/options.h"
#include "tools/halflab/command.h"

namespace halflab::allreduce {

int run(int argc, const char* const* argv, experiments::Streams streams) {
  Options options;
  return run_command(
      argc, argv,
      {.program =
           {.name = "halflab allreduce",
            .question = "What does an all-reduce lose of the mean of my ranks, by order and precision?",
            .example = "halflab allreduce rank0.safetensors rank1.safetensors --orders ring,binary_tree",
            .outputs = outputs(),
            .details =
                "Each PATH is what one rank brings, in the order of ranks. Errors are those of the mean "
                "against the exact one of the files' values, those of binary64 rounded to FP32 first. fp16: "
                "every sum is rounded to FP16; "
                "fp32_accumulation: only what is sent; bf16, bf16_fp32_accumulation: the same in bfloat16; "
                "fp32: nothing is rounded further. Every tensor is a message of its "
                "own, which a ring cuts into as many chunks as there are ranks."},
       .options = [&](experiments::CommandLine& command_line) { bind(command_line, options); },
       .body =
           [&](experiments::Run& run) {
             const auto kinds = kinds_of(options);
             const auto ranks = open_each(options.inputs);
             for (std::size_t i = 0; i < ranks.size(); ++i)
               require_numbers(ranks[i], options.inputs.paths[i]);
             Findings found = measure(ranks, kinds, run);
             found.paths = options.inputs.paths;
             report(run, found);
           }},
      streams);
}

}  // namespace halflab::allreduce
