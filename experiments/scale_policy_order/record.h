#pragma once
/// The tables and the summary of scale_policy_order.

#include "experiments/frame/record.h"
#include "experiments/scale_policy_order/measurement.h"

namespace experiments::scale_policy_order {

/// recipes.csv, runs.csv and steps.csv.
void write_tables(RunRecord& record, const Findings& found);

void write_summary(RunRecord& record, const Findings& found);

}  // namespace experiments::scale_policy_order
