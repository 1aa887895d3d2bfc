#pragma once
/// The figure of operations and their formats.

#include "experiments/frame/figure.h"
#include "experiments/opt_levels/measurement.h"

namespace experiments::opt_levels {

/// A cell for each operation and recipe: the format of its results, or of linear and conv2d that of what is
/// multiplied, in colour and text.
Figure operations_figure(const Findings& found);

}  // namespace experiments::opt_levels
