#pragma once
/// The figures of master_weights.

#include <string>
#include <vector>

#include "experiments/frame/experiment.h"
#include "experiments/master_weights/findings.h"

namespace experiments::master_weights {

/// Draws the figures from the tables of the record; captions begin with the setting.
void draw_figures(Run& run, const std::vector<ConditionFindings>& findings, const std::string& setting);

}  // namespace experiments::master_weights
