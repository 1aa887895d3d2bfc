#pragma once

#include <string>

#include "experiments/accumulation/measurement.h"
#include "experiments/frame/record.h"

namespace experiments::accumulation {

/// What the findings say, in sentences, then as tables of errors and of losses.
void write_verdict(RunRecord& record, const Findings& found, const Options& options,
                   const std::string& setting);

}  // namespace experiments::accumulation
