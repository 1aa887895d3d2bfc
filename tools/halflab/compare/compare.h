#pragma once
/// `halflab compare`: whether two files or folders hold the same tensors, and if not, what differs.

#include "experiments/frame/experiment.h"

namespace halflab::compare {

int run(int argc, const char* const* argv, experiments::Streams streams);

}  // namespace halflab::compare
