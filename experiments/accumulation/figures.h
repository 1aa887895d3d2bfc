#pragma once

#include <string>
#include <vector>

#include "experiments/accumulation/measurement.h"

namespace experiments::accumulation {

/// orders, tensor_cores and loss_reduction, from the tables dots and loss_reduction. `setting` says what the
/// dot products are of.
void draw_figures(Run& run, const std::vector<MeasuredMean>& means, const Options& options,
                  const std::string& setting);

}  // namespace experiments::accumulation
