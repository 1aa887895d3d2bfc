#pragma once
/// What all subcommands share: how one runs.

#include "experiments/frame/experiment.h"

namespace halflab {

/// Runs a subcommand, whose program is named "halflab NAME": results are kept with --out alone, and then have a page,
/// report.html. Returns the exit code of the frame's contract.
int run_command(int argc, const char* const* argv, experiments::Experiment command,
                experiments::Streams streams);

}  // namespace halflab
