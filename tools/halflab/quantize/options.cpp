#include "tools/halflab/quantize/options.h"

#include <fmt/format.h>

#include <stdexcept>

#include "experiments/frame/tensor_files/element_type.h"
#include "fp16/names.h"
#include "fp16/rounding_names.h"
#include "fp16/scale_rule_names.h"
#include "tools/halflab/formats.h"

namespace halflab::quantize {
namespace {

[[noreturn]] void refuse(std::string_view option, std::string_view format, std::string_view why) {
  throw std::invalid_argument(fmt::format("{}: {} {}", option, format, why));
}

void require_meaning(const Options& options, const Recipe& recipe) {
  if (options.decoded && options.to.empty())
    throw std::invalid_argument("--decoded: nothing is written; allowed beside --to FILE");
  if (!options.scale_rule.empty() && (recipe.block == nullptr || recipe.block->has_tensor_scale))
    refuse("--scale-rule", recipe.format_name,
           "has no scales that are powers of two; allowed for mx formats");
  if (options.per_tensor_scale && recipe.block != nullptr)
    refuse("--per-tensor-scale", recipe.format_name, "has scales of its own; allowed for scalar formats");
  if (options.saturate && recipe.block != nullptr)
    refuse("--saturate", recipe.format_name, "always saturates; allowed for scalar formats");
  if (recipe.scalar == nullptr) return;
  const fp16::Format& format = *recipe.scalar;
  if (!format.has_zero()) refuse("--format", recipe.format_name, "has no zero and holds scales alone");
  if (experiments::tensor_files::type_of_format(recipe.format_name) == nullptr)
    refuse("--format", recipe.format_name, "lies in no file");
}

}  // namespace

void bind(experiments::CommandLine& command_line, Options& options) {
  halflab::bind(command_line, options.inputs);
  command_line.add(
      "--format", options.format,
      fmt::format("what the tensors become: {}, {}, as numpy, PyTorch and safetensors call them, too",
                  block_format_names(), scalar_format_names()),
      "FORMAT");
  command_line.add(
      "--scale-rule", options.scale_rule,
      "of the scales of mx formats: floor (the specification's), ceil, rceil, even, as torchao has them",
      "RULE");
  command_line.add(
      "--rounding", options.rounding,
      "of the elements: nearest_even, nearest_away, toward_zero, toward_positive, toward_negative, "
      "to_odd, stochastic",
      "ROUNDING");
  command_line.add_seed(options.seed);
  command_line.add_flag(
      "--per-tensor-scale", options.per_tensor_scale,
      "of scalar formats: divide each tensor by a scale that makes its largest value theirs");
  command_line.add_flag("--saturate", options.saturate,
                        "of scalar formats: what overflows becomes the largest number");
  command_line.add("--to", options.to, "the safetensors file to write; without it only the errors are told",
                   "FILE");
  command_line.add_flag("--decoded", options.decoded, "write the values that the codes stand for, as F32");
}

Recipe recipe_of(const Options& options) {
  if (!options.to.empty() && !options.to.ends_with(".safetensors"))
    refuse("--to", options.to, "is no name of a safetensors file; allowed: names that end in .safetensors");
  const fp16::BlockFormat* const block = block_format(options.format);
  const fp16::NamedFormat* const scalar =
      block != nullptr ? nullptr : &scalar_format_where_blocks_are(options.format);
  const fp16::NamedRounding rounding = experiments::from_option(
      "--rounding", [&]() -> auto& {
        return names::find_by_name(fp16::named_roundings, "rounding", options.rounding);
      });
  Recipe recipe{.block = block,
                .scalar = scalar != nullptr ? &scalar->format : nullptr,
                .format_name = block != nullptr ? block->name : scalar->name,
                .rounding_name = rounding.name,
                .rounding = rounding.rounding,
                .seed = options.seed,
                .per_tensor_scale = options.per_tensor_scale,
                .saturate = options.saturate};
  require_meaning(options, recipe);
  if (!options.scale_rule.empty())
    recipe.scale_rule = experiments::from_option("--scale-rule", [&] {
      return names::find_by_name(fp16::named_scale_rules, "scale rule", options.scale_rule).rule;
    });
  return recipe;
}

}  // namespace halflab::quantize
