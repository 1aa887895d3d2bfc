#pragma once
/// The options of `halflab hist`.

#include <optional>
#include <string>

#include "experiments/frame/command_line.h"
#include "tools/halflab/inputs.h"

namespace halflab::hist {

struct Options {
  Inputs inputs;
  std::string format = "binary16";
  std::string scale = "auto";
  std::string scaled_by = "1";
  std::string figure = "magnitudes";
};

constexpr const char* paper3 = "paper3";  ///< of --figure

void bind(experiments::CommandLine& command_line, Options& options);

/// Throws experiments::UsageError where --figure goes with other options only.
void require_figure(const Options& options, bool draws);

/// The exponent of a scale that an option names. Throws std::invalid_argument where it is no power of two, "1024" or
/// "2^10".
int scale_log2(std::string_view option, const std::string& text);

/// That of --scale; none for auto.
std::optional<int> shown_scale_log2(const Options& options);

}  // namespace halflab::hist
