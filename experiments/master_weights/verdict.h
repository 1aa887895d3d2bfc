#pragma once

#include <string>
#include <vector>

#include "experiments/frame/record.h"
#include "experiments/master_weights/findings.h"

namespace experiments::master_weights {

/// Says where the masters are needed and where not, with a table of the conditions.
void write_verdict(RunRecord& record, const std::vector<ConditionFindings>& findings,
                   const std::string& setting);

}  // namespace experiments::master_weights
