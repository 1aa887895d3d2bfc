#pragma once
/// The options of `halflab allreduce`.

#include <string>
#include <vector>

#include "experiments/frame/command_line.h"
#include "sim/trainer/allreduce.h"
#include "tools/halflab/inputs.h"

namespace halflab::allreduce {

struct Options {
  Inputs inputs;
  std::string orders = "all";
  std::string precisions = "all";
  std::string division = "before";
};

void bind(experiments::CommandLine& command_line, Options& options);

/// Every order that is asked for with every precision that is. Throws std::invalid_argument, naming the option.
std::vector<sim::AllReduce> kinds_of(const Options& options);

}  // namespace halflab::allreduce
