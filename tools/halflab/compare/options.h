#pragma once
/// The options of `halflab compare`.

#include <cstdint>
#include <optional>
#include <string>

#include "experiments/frame/command_line.h"
#include "tools/halflab/inputs.h"

namespace halflab::compare {

struct Options {
  Inputs inputs;
  std::string as;                   ///< a format; empty: as stored
  std::optional<std::int64_t> ulp;  ///< none: 0 with --as, else bits
};

void bind(experiments::CommandLine& command_line, Options& options);

}  // namespace halflab::compare
