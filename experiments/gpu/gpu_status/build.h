#pragma once
/// How the programs for GPUs were built.

#include "experiments/frame/json.h"

namespace experiments::gpu_status {

/// The manifest's "cuda": the kernels' compiler, architectures and flags as one text; null without kernels.
Json cuda_json();

/// Revision, compilers and flags of these programs.
Json build_json();

}  // namespace experiments::gpu_status
