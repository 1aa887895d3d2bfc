#pragma once
/// What scale_policy_order says to its reader.

#include <string>

#include "experiments/frame/record.h"
#include "experiments/scale_policy_order/measurement.h"

namespace experiments::scale_policy_order {

void write_verdict(RunRecord& record, const Findings& found, const Options& options,
                   const std::string& setting);

}  // namespace experiments::scale_policy_order
