#pragma once

#include "experiments/common/experiment.h"
#include "experiments/explain_gemm/record.h"

namespace experiments::explain_gemm {

/// map: what each accumulator leaves unexplained with each number of slices; errors: where in D the
/// differences lie, if there are any. Both need the tables.
void draw_figures(Run& run, const Findings& found);

}  // namespace experiments::explain_gemm
