#include "tools/halflab/hist/options.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <stdexcept>

#include "tools/halflab/formats.h"

namespace halflab::hist {

void bind(experiments::CommandLine& command_line, Options& options) {
  halflab::bind(command_line, options.inputs);
  command_line.add("--format", options.format,
                   fmt::format("what the tensors are cast to: {}, as numpy, PyTorch and safetensors call "
                               "them, too; or in blocks {}",
                               scalar_format_names(), block_format_names()),
                   "FORMAT");
  command_line.add("--scale", options.scale,
                   "a power of two shown besides S = 1, such as 1024 or 2^10; auto: the recommended one",
                   "S");
  command_line.add("--scaled-by", options.scaled_by,
                   "the files hold gradients still multiplied by this power of two", "S");
  command_line.add_presets("--figure", options.figure,
                           {{"magnitudes", "values by magnitude, tensors by magnitude and by scale", {}},
                            {paper3,
                             "these, and all values in the layout of figure 3 of Micikevicius et al. (2018), "
                             "at S = 1, 8 and the shown scale",
                             {}}},
                           "which figures --out draws");
}

void require_figure(const Options& options, bool draws) {
  if (options.figure != paper3) return;
  if (!draws)
    throw experiments::UsageError("--figure paper3: is drawn into a directory; must come with --out");
  if (block_format(options.format) != nullptr ||
      scalar_format_where_blocks_are(options.format).format != fp16::binary16)
    throw experiments::UsageError(
        fmt::format("--figure paper3: has the zones of FP16 and is given with --format {}; allowed: binary16",
                    options.format));
}

int scale_log2(std::string_view option, const std::string& text) {
  const bool is_power = text.starts_with("2^");
  const char* const begin = text.data() + (is_power ? 2 : 0);
  const char* const end = text.data() + text.size();
  int exponent = 0;
  double value = 0;
  if (is_power) {
    const auto [stop, error] = std::from_chars(begin, end, exponent);
    if (error == std::errc{} && stop == end && exponent >= -100 && exponent <= 100) return exponent;
  } else {
    const auto [stop, error] = std::from_chars(begin, end, value);
    if (error == std::errc{} && stop == end && value > 0 && std::frexp(value, &exponent) == 0.5 &&
        std::abs(exponent - 1) <= 100)
      return exponent - 1;
  }
  throw std::invalid_argument(
      fmt::format("{}: '{}' is no scale; allowed: a power of two from 2^-100 to 2^100, such as 1024 or 2^10",
                  option, text));
}

std::optional<int> shown_scale_log2(const Options& options) {
  return options.scale == "auto" ? std::nullopt : std::optional(scale_log2("--scale", options.scale));
}

}  // namespace halflab::hist
