#include "tools/halflab/quantize/quantize.h"

#include "tools/halflab/command.h"
#include "tools/halflab/quantize/findings.h"

namespace halflab::quantize {

int run(int argc, const char* const* argv, experiments::Streams streams) {
  Options options;
  return run_command(
      argc, argv,
      {.program =
           {.name = "halflab quantize",
            .question = "What are these tensors in a format of few bits, and what does that lose?",
            .example = "halflab quantize model.safetensors --format nvfp4 --to model_nvfp4.safetensors",
            .outputs = outputs(),
            .details =
                "Blocks lie along the last dimension. --to writes, by the names of NVIDIA's Model "
                "Optimizer, NAME (codes; of 4 and 6 bits as bytes, each line packed from its lowest bits "
                "on), NAME_scale (of blocks) and NAME_scale_2 (F32, of the tensor, in nvfp4): a value is "
                "their product. With --per-tensor-scale NAME_scale is the tensor's, F32."},
       .options = [&](experiments::CommandLine& command_line) { bind(command_line, options); },
       .body =
           [&](experiments::Run& run) {
             recipe_of(options);  // before files are read
             const auto set = open(options.inputs);
             require_numbers(set, options.inputs.paths.front());
             report(run, measure(set, options, run));
           }},
      streams);
}

}  // namespace halflab::quantize
