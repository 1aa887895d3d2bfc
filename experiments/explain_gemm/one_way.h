#pragma once
/// Is D stored by another rounding than to the nearest number, or off by one unit in the last place?

#include <optional>

#include "experiments/explain_gemm/classification.h"
#include "experiments/explain_gemm/mistake.h"

namespace experiments::explain_gemm {

/// The first way in which all unexplained outputs of 16 bits are on one side of the nearest numbers, 16 of them at least;
/// rounding in another place makes differences on both. Where the errors of long FP32 sums hide that, the side of the exact
/// values on which 95 % of 64 or more outputs lie. Nothing of binary32, whose sums are as coarse.
std::optional<Mistake> stored_one_way(const Problem& problem, const Classification& classes);

}  // namespace experiments::explain_gemm
