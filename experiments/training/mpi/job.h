#pragma once
/// A program as one of several ranks, from its launch to its exit code.

#include <functional>

#include "experiments/frame/experiment.h"
#include "experiments/training/ranks.h"

namespace experiments {

/// Calls `run`, which returns an exit code, with the processes that --mpi among the arguments asks for; null without, where
/// no launcher has started several, unless each is to make a shard. Only
/// rank 0 has streams that anybody sees: what ends all ranks alike is told once. What ends one alone ends all, with its line.
/// Returns the exit code of this process.
int run_on_ranks(std::string_view program, int argc, const char* const* argv,
                 const std::function<int(Ranks* processes, Streams streams)>& run);

}  // namespace experiments
