#pragma once
/// `halflab replay`: what other loss scalers would have done on a run's gradients.

#include "experiments/frame/experiment.h"

namespace halflab::replay {

int run(int argc, const char* const* argv, experiments::Streams streams);

}  // namespace halflab::replay
