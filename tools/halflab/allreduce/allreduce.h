#pragma once
/// `halflab allreduce`: what the order and the precision of an all-reduce lose of the mean of a user's own ranks.

#include "experiments/frame/experiment.h"

namespace halflab::allreduce {

int run(int argc, const char* const* argv, experiments::Streams streams);

}  // namespace halflab::allreduce
