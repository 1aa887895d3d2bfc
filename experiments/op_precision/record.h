#pragma once
/// Tables, summary and verdict of what was found.

#include <string>
#include <vector>

#include "experiments/frame/command_line.h"
#include "experiments/frame/record.h"
#include "experiments/op_precision/lists.h"

namespace experiments::op_precision {

/// operations.csv and lists.csv.
void write_tables(RunRecord& record, const Findings& findings, const std::vector<ListEntry>& lists);

std::vector<Program::SummaryKey> summary_keys();
void write_summary(RunRecord& record, const Findings& findings, const std::vector<ListEntry>& lists);

void write_verdict(RunRecord& record, const Findings& findings, const std::vector<ListEntry>& lists,
                   const std::string& setting);

}  // namespace experiments::op_precision
