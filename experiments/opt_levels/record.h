#pragma once
/// The tables and the summary of opt_levels.

#include "experiments/frame/command_line.h"
#include "experiments/frame/record.h"
#include "experiments/opt_levels/measurement.h"

namespace experiments::opt_levels {

/// The manifest's settings: each policy's roles, the options of optimizer and scalers.
void write_settings(RunRecord& record, const Findings& found);

/// policies.csv, operations.csv, batches.csv, runs.csv, steps.csv and skips.csv.
void write_tables(RunRecord& record, const Findings& found);

void write_summary(RunRecord& record, const Findings& found);

std::vector<Program::SummaryKey> summary_keys();

}  // namespace experiments::opt_levels
