#pragma once
/// `halflab run`: an experiment, wherever it was installed.

#include "experiments/frame/experiment.h"

namespace halflab::run_experiment {

/// Becomes the experiment that the first word names, with the words after it; lists all where there is none.
int run(int argc, const char* const* argv, experiments::Streams streams);

}  // namespace halflab::run_experiment
