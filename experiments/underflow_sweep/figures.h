#pragma once
/// The figures of underflow_sweep.

#include <string>

#include "experiments/frame/experiment.h"
#include "experiments/underflow_sweep/measurement.h"

namespace experiments::underflow_sweep {

/// Draws the figures from the tables of the record; captions begin with the setting.
void draw_figures(Run& run, const Findings& found, const std::string& setting);

}  // namespace experiments::underflow_sweep
