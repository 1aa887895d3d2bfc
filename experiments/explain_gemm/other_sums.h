#pragma once
/// Are the wrong outputs sums of other products than they should be?

#include <optional>

#include "experiments/explain_gemm/mistake.h"
#include "experiments/explain_gemm/wrong.h"

namespace experiments::explain_gemm {

/// The mistake is first looked for in operands that were rounded, or whose subnormal numbers are read as 0: of those that fit,
/// the one that leaves least, and with it those that leave no more but for chance. Then of operands read by columns. Last, of
/// products that are missing or come twice, of any stretch of k, where hardly one of all these stretches would fit by chance.
std::optional<Mistake> other_sum(const Problem& problem, const Wrongs& sample);

}  // namespace experiments::explain_gemm
