#pragma once
/// The figure of op_precision.

#include <string>
#include <vector>

#include "experiments/frame/experiment.h"
#include "experiments/op_precision/lists.h"

namespace experiments::op_precision {

/// Each operation's gradient error, flushed share and headroom, in the groups that the criterion makes. Drawn
/// from lists.csv.
void draw_figures(Run& run, const Findings& findings, const std::vector<ListEntry>& lists,
                  const std::string& setting);

}  // namespace experiments::op_precision
