#pragma once
/// The figures of opt_levels.

#include "experiments/frame/experiment.h"
#include "experiments/opt_levels/measurement.h"

namespace experiments::opt_levels {

/// Draws the figures from the tables of the record.
void draw_figures(Run& run, const Findings& found);

}  // namespace experiments::opt_levels
