#pragma once
/// `halflab reveal`: in which order a black box sums.

#include "experiments/frame/experiment.h"

namespace halflab::reveal {

int run(int argc, const char* const* argv, experiments::Streams streams);

}  // namespace halflab::reveal
