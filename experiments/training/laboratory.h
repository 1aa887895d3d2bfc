#pragma once
/// The laboratory that all experiments belong to: its families of variants, and how its numbers are computed.

#include "experiments/frame/experiment.h"

namespace experiments {

/// {"vector_path": "avx512"}: what decides speed and, as tests prove, no bit.
Json arithmetic_of_this_process();

/// Runs an experiment of the laboratory, as the frame does.
int run(int argc, const char* const* argv, const Experiment& experiment, Streams streams = {});

}  // namespace experiments
