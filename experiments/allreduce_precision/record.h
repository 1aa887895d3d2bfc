#pragma once
/// The tables and the summary of allreduce_precision.

#include "experiments/allreduce_precision/measurement.h"
#include "experiments/frame/record.h"

namespace experiments::allreduce_precision {

/// The measurement of one of all kinds of all-reduce at S = 1 or the other scale. It must be there.
const Measured& at(const Findings& found, const Setting& setting, const sim::AllReduce& how);

/// `usual` with another division.
sim::AllReduce usual_with(sim::AllReduceDivision division);

/// allreduce.csv, scales.csv and windows.csv.
void write_tables(RunRecord& record, const Findings& found, const Options& options);

void write_summary(RunRecord& record, const Findings& found, const Options& options);

}  // namespace experiments::allreduce_precision
