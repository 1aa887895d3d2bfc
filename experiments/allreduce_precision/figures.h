#pragma once
/// The figures of allreduce_precision.

#include <string>

#include "experiments/allreduce_precision/measurement.h"
#include "experiments/frame/experiment.h"

namespace experiments::allreduce_precision {

/// Draws the figures from the tables of the record; captions begin with the setting.
void draw_figures(Run& run, const Findings& found, const Options& options, const std::string& setting);

}  // namespace experiments::allreduce_precision
