#pragma once
/// The figures of formats.

#include <string>

#include "experiments/formats/measurement.h"
#include "experiments/frame/experiment.h"

namespace experiments::formats {

/// Draws the figures from the tables of the record; captions begin with the setting.
void draw_figures(Run& run, const Options& options, const std::string& setting);

}  // namespace experiments::formats
