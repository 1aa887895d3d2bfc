#pragma once
/// `halflab show`: a number, a code or an operation bit by bit.

#include "experiments/frame/experiment.h"

namespace halflab::show {

int run(int argc, const char* const* argv, experiments::Streams streams);

}  // namespace halflab::show
