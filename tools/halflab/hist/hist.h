#pragma once
/// `halflab hist`: what a format loses of tensors at every scale.

#include "experiments/frame/experiment.h"

namespace halflab::hist {

int run(int argc, const char* const* argv, experiments::Streams streams);

}  // namespace halflab::hist
