#pragma once
/// The figures of gradient_histogram.

#include <string>
#include <string_view>

#include "experiments/frame/experiment.h"
#include "experiments/gradient_histogram/pooled.h"

namespace experiments::gradient_histogram {

/// Draws the figures from the tables of the record; captions begin with the setting.
void draw_figures(Run& run, const Findings& found, std::string_view model, const std::string& setting);

}  // namespace experiments::gradient_histogram
