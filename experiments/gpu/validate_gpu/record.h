#pragma once
/// Tables, summary and verdict of what a run found.

#include <cstdint>
#include <string>
#include <vector>

#include "experiments/frame/record.h"
#include "experiments/gpu/validate_gpu/device_failures.h"
#include "experiments/gpu/validate_gpu/findings.h"

namespace experiments::validate_gpu {

/// The tables verdicts, counterexamples and timing.
void write_tables(RunRecord& record, const std::vector<Finding>& findings);
void write_summary(RunRecord& record, const std::vector<Finding>& findings);  ///< all but the device
void write_verdict(RunRecord& record, const std::vector<Finding>& findings, const DeviceFailures& failures);

/// Time and rate of each family by subject, for the screen alone.
std::string timing_text(const std::vector<Finding>& findings);

std::uint64_t mismatches(const std::vector<Finding>& findings);

}  // namespace experiments::validate_gpu
