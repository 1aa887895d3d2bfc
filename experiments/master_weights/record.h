#pragma once
/// Tables and summary of master_weights.

#include <vector>

#include "experiments/frame/command_line.h"
#include "experiments/frame/record.h"
#include "experiments/master_weights/findings.h"

namespace experiments::master_weights {

/// conditions.csv, swallowed_by_ratio.csv and steps.csv.
void write_tables(RunRecord& record, const std::vector<ConditionFindings>& findings, const Options& options);

void write_summary(RunRecord& record, const std::vector<ConditionFindings>& findings);

/// What write_summary() writes, for --help.
std::vector<Program::SummaryKey> summary_keys();

/// Updates of normal weights of a storage, of all conditions.
RatioHistogram all_ratios(const std::vector<ConditionFindings>& findings, std::size_t storage);

/// Where a storage costs most: accuracy of classifiers, else loss. Conditions under which masters diverge as
/// well come last.
const ConditionFindings& worst_case(const std::vector<ConditionFindings>& findings, std::size_t storage);

double fraction_swallowed(const sim::UpdateCounts& counts);

}  // namespace experiments::master_weights
