#pragma once
/// `halflab explain`: which arithmetic made a matrix product.

#include "experiments/frame/experiment.h"

namespace halflab::explain {

int run(int argc, const char* const* argv, experiments::Streams streams);

}  // namespace halflab::explain
