#pragma once

#include "experiments/explain_gemm/census.h"
#include "experiments/explain_gemm/record.h"
#include "experiments/frame/experiment.h"

namespace experiments::explain_gemm {

/// map: what each accumulator leaves unexplained with each number of slices; errors: where in D the
/// differences lie, if there are any. Both need the tables.
void draw_figures(Run& run, const Findings& found);

/// census: in how many ways each D is made, and whether it is explained. Needs results.csv.
void draw_census_figure(Run& run, const Census& census);

}  // namespace experiments::explain_gemm
