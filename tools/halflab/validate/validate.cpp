#include "tools/halflab/validate/validate.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <memory>
#include <span>
#include <stdexcept>
#include <string_view>

#include "experiments/frame/tensor_files/raw.h"
#include "fp16/names.h"
#include "fp16/rounding_names.h"
#include "tools/halflab/command.h"
#include "tools/halflab/inputs.h"
#include "tools/halflab/validate/code_file.h"
#include "tools/halflab/validate/findings.h"

namespace halflab::validate {
namespace {

namespace files = experiments::tensor_files;

void bind(experiments::CommandLine& command_line, Options& options) {
  command_line.add_words(
      "OP", options.words,
      fmt::format(
          "the operation, then a file for each operand (FILE:NAME where it holds several; .hex: codes "
          "in hexadecimal, one a line), then a file of results. Operations: {}",
          fmt::join(names::names_of(functions()), ", ")),
      1);
  command_line.add("--ulp", options.ulp, "so many steps away from the right result is near enough",
                   {.minimum = 0});
  command_line.add(
      "--rounding", options.rounding,
      fmt::format("what results are held to: {}", fmt::join(names::names_of(fp16::named_roundings), ", ")),
      "ROUNDING");
  command_line.add("--nan", options.nan,
                   "which NaNs are right: first_operand (quieted, as on x86), canonical_nvidia (0x7fff), "
                   "canonical_riscv (0x7e00), any",
                   "RULE");
  command_line.add_flag("--flush-subnormals", options.flush_subnormals,
                        "right is to read subnormal operands as zeros and to flush subnormal results");
  command_line.add_flag(
      "--saturate", options.saturate,
      "right is that what would be infinite becomes the largest finite number, infinities of "
      "operands, too");
  command_line.add("--dtype", options.dtype, dtype_help, "FORMAT");
  command_line.add("--result-dtype", options.result_dtype,
                   "the same of the file of results, where it holds another format", "FORMAT");
}

Findings measure_files(const Options& options, experiments::Run& run) {
  const Function& function = find_function(options.words[0]);
  const auto wanted = static_cast<std::size_t>(function.arity) + 2;
  if (options.words.size() != wanted)
    throw std::invalid_argument(
        fmt::format("FILE: {} takes {} files, of {} and of results, not {}", function.name, wanted - 1,
                    function.arity == 1 ? "its operand" : "its operands", options.words.size() - 1));
  Inputs inputs;
  inputs.dtype = options.dtype;
  const files::RawLayout raw = raw_layout(inputs);
  constexpr std::string_view result_option = "--result-dtype";
  const bool has_own = !options.result_dtype.empty();
  if (has_own) inputs.dtype = options.result_dtype;
  const files::RawLayout result_raw = raw_layout(inputs, result_option);
  std::vector<std::unique_ptr<CodeFile>> tensors;
  for (std::size_t i = 1; i < wanted; ++i)
    tensors.push_back(std::make_unique<CodeFile>(options.words[i], i + 1 < wanted ? raw : result_raw));
  std::vector<files::StoredTensor> operands;
  for (const auto& tensor : tensors) operands.push_back(tensor->tensor());
  if (!has_own) files::require_use_of(raw, operands);
  const files::StoredTensor results = std::move(operands.back());
  operands.pop_back();
  if (has_own) {
    files::require_use_of(raw, operands);
    files::require_use_of(result_raw, std::span(&results, 1), {.type = result_option});
  }
  return measure(operands, results, function, options, run);
}

}  // namespace

int run(int argc, const char* const* argv, experiments::Streams streams) {
  Options options;
  return run_command(
      argc, argv,
      {.program =
           {.name = "halflab validate",
            .question = "Are a kernel's results the exact values rounded once, and if not, what explains it?",
            .example = "halflab validate tanh x.npy y.npy --ulp 1 --nan any",
            .outputs = outputs(),
            .details =
                "The answer begins with its class: equal (the same bits), within (--ulp allows it) or "
                "different. A zero of the wrong sign is allowed from --ulp 1 on; a NaN and a number never "
                "are "
                "near, and an infinity comes one step after the largest finite number. Known deviations are "
                "looked for in sets of up to three. halflab inputs writes operands. Exit code 0: equal or "
                "within; 1: different; 2: bad usage or input."},
       .options = [&](experiments::CommandLine& command_line) { bind(command_line, options); },
       .body =
           [&](experiments::Run& run) {
             const Findings found = measure_files(options, run);
             report(run, found);
             if (!found.holds())
               run.fail(fmt::format("{} of {} results are wrong", found.counts.beyond, found.counts.results));
           }},
      streams);
}

}  // namespace halflab::validate
