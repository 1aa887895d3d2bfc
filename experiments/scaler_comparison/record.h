#pragma once
/// What scaler_comparison writes down of its findings.

#include "experiments/frame/record.h"
#include "experiments/scaler_comparison/strategies.h"

namespace experiments::scaler_comparison {

/// The options in force of the optimizer and of every scaler.
void write_settings(RunRecord& record, const Findings& found);

/// runs.csv: a row for each run; the tables of common/instruments.h.
void write_tables(RunRecord& record, const Findings& found);

/// Means over the seeds; the number of runs that their scaler ended, and of memory the largest peak.
void write_summary(RunRecord& record, const Findings& found);

void write_verdict(RunRecord& record, const Findings& found);

}  // namespace experiments::scaler_comparison
