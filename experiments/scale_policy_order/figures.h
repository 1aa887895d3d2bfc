#pragma once

#include <string>

#include "experiments/frame/experiment.h"
#include "experiments/scale_policy_order/measurement.h"

namespace experiments::scale_policy_order {

/// Draws from steps.csv and recipes.csv.
void draw_figures(Run& run, const Findings& found, const Options& options, const std::string& setting);

}  // namespace experiments::scale_policy_order
