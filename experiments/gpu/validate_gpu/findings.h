#pragma once
/// What a run on a GPU adds to the findings that all validations share.

#include <vector>

#include "experiments/frame/help_text.h"
#include "experiments/frame/record.h"
#include "experiments/gpu/validate_gpu/attempts.h"
#include "experiments/gpu/validate_gpu/sweep.h"
#include "experiments/validation/findings.h"

namespace experiments::validate_gpu {

Finding finding_of(const RowOutcome& outcome, const DeviceFailures& failures);

/// The version of NVIDIA's header, besides the summary of the findings; for --help, and written.
Outputs header_outputs();
void write_header_summary(RunRecord& record);

void write_verdict(RunRecord& record, const std::vector<Finding>& findings, const DeviceFailures& failures);

}  // namespace experiments::validate_gpu
