#pragma once
/// The figures of scaler_comparison.

#include "experiments/frame/experiment.h"
#include "experiments/scaler_comparison/strategies.h"

namespace experiments::scaler_comparison {

/// Losses of all runs and their differences to FP32, and loss scale and flushed share of the first seed, from
/// loss.csv and scale.csv, which it writes. Of more strategies than can be told apart both ends by their final loss.
void draw_figures(Run& run, const Findings& found);

}  // namespace experiments::scaler_comparison
