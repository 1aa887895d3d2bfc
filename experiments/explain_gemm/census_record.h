#pragma once
/// Tables, summary and verdict of a census.

#include <string>

#include "experiments/explain_gemm/census.h"

namespace experiments::explain_gemm {

/// algorithms.csv, a line for every way; results.csv, one for every D; and the summary.
void write_census(RunRecord& record, const Census& census);
void write_census_verdict(RunRecord& record, const Census& census);

/// Of the first result that has a real bug; empty if none has.
std::string census_bug_line(const Census& census);

}  // namespace experiments::explain_gemm
