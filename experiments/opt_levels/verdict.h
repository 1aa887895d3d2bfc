#pragma once
/// What opt_levels found, for people.

#include "experiments/frame/record.h"
#include "experiments/opt_levels/measurement.h"

namespace experiments::opt_levels {

void write_verdict(RunRecord& record, const Findings& found);

}  // namespace experiments::opt_levels
