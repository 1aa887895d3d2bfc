#pragma once
/// What scale_policy_order says to its reader.

#include <string>

#include "experiments/scale_policy_order/measurement.h"
#include "sim/record.h"

namespace experiments::scale_policy_order {

void write_verdict(sim::RunRecord& record, const Findings& found, const Options& options,
                   const std::string& setting);

}  // namespace experiments::scale_policy_order
