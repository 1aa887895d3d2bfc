#pragma once
/// What opt_levels found, for people.

#include "experiments/opt_levels/measurement.h"
#include "sim/record.h"

namespace experiments::opt_levels {

void write_verdict(sim::RunRecord& record, const Findings& found);

}  // namespace experiments::opt_levels
