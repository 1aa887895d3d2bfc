#pragma once
/// The options of `halflab quantize`.

#include <cstdint>
#include <string>

#include "experiments/frame/command_line.h"
#include "fp16/block.h"
#include "fp16/rounding.h"
#include "tools/halflab/inputs.h"

namespace halflab::quantize {

struct Options {
  Inputs inputs;
  std::string format = "nvfp4";
  std::string scale_rule;  ///< empty: the specification's
  std::string rounding = "nearest_even";
  std::uint64_t seed = 0;
  bool per_tensor_scale = false;
  bool saturate = false;
  bool decoded = false;
  std::string to;  ///< empty: nothing is written
};

void bind(experiments::CommandLine& command_line, Options& options);

/// How each tensor is quantized.
struct Recipe {
  const fp16::BlockFormat* block;  ///< null for a scalar format
  const fp16::Format* scalar;      ///< null for a block format
  std::string_view format_name;
  fp16::ScaleRule scale_rule = fp16::ScaleRule::floor;
  std::string_view rounding_name;
  fp16::Rounding rounding = fp16::Rounding::nearest_even;
  std::uint64_t seed = 0;
  bool per_tensor_scale = false;
  bool saturate = false;

  const fp16::Format& element() const { return block != nullptr ? block->element : *scalar; }
};

/// Throws std::invalid_argument, naming the option, for names that there are not, and for options that mean nothing to
/// the format.
Recipe recipe_of(const Options& options);

}  // namespace halflab::quantize
