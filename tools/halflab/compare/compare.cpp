#include "tools/halflab/compare/compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

#include "tools/halflab/command.h"
#include "tools/halflab/compare/findings.h"

namespace halflab::compare {

int run(int argc, const char* const* argv, experiments::Streams streams) {
  Options options;
  return run_command(
      argc, argv,
      {.program =
           {.name = "halflab compare",
            .question = "Do two files or folders, A and B, hold the same tensors, and if not, what differs?",
            .example = "halflab compare before.safetensors after.safetensors --as bfloat16 --ulp 1",
            .outputs = outputs(),
            .details =
                "Tensors are matched by name; two files with one tensor each are compared whatever their "
                "names. The answer begins with its class: equal (the same bits), within (what --as or --ulp "
                "asks for holds) or different. Bits: NaNs are equal where their bits are, and -0 is not +0. "
                "--as and --ulp compare numbers: any two NaNs are equal, a NaN and a number never are, -0 is "
                "+0, and an infinity comes one step after the largest finite number; so does what is too "
                "large for a format that has a NaN but no infinity. Where A and B are stored in two formats, "
                "steps are counted in the coarser one unless --as says otherwise. "
                "Integers and the like must have the same bits. "
                "Exit code 0: equal or within; 1: different; 2: bad usage or input."},
       .options = [&](experiments::CommandLine& command_line) { bind(command_line, options); },
       .body =
           [&](experiments::Run& run) {
             const Inputs& inputs = options.inputs;
             if (inputs.paths.size() != 2)
               throw std::invalid_argument(
                   fmt::format("PATH: compares two files or folders, not {}", inputs.paths.size()));
             const auto sets = open_each(inputs);
             const auto is_empty = [](const auto& set) {
               return set.tensors().empty() && set.passed_over().empty();
             };
             if (std::ranges::all_of(sets, is_empty))
               throw std::invalid_argument(fmt::format("'{}' holds no tensor, and neither does '{}'",
                                                       inputs.paths[0], inputs.paths[1]));
             const Findings found = measure(sets[0], sets[1], options, run);
             report(run, found);
             if (found.found == Class::different)
               run.fail(fmt::format("'{}' and '{}' are different", found.a, found.b));
           }},
      streams);
}

}  // namespace halflab::compare
