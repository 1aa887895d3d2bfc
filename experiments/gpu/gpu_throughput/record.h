#pragma once
/// Tables, summary, verdict and figure. Measured numbers stand in timing.csv, its figure, keys of the summary that
/// begin with rate., ratio., limit. or overhead., and on the screen.

#include <string>
#include <vector>

#include "experiments/frame/experiment.h"
#include "experiments/gpu/gpu_throughput/context_memory.h"
#include "experiments/gpu/gpu_throughput/judgement.h"
#include "experiments/gpu/gpu_throughput/measurement.h"

namespace experiments::gpu_throughput {

/// "2.91 TB/s", "612 GFLOP/s".
std::string rate_text(double rate, Unit unit);

/// One sentence on the targets: which are reached, which are not, how many could not be judged.
std::string conclusion(const std::vector<Judgement>& judgements);

/// What a person reads: a line for each row, and the conclusion.
std::string screen_text(const std::vector<Row>& rows, const std::vector<Judgement>& judgements);

/// What the copy reaches of the bandwidth that the driver states for the memory, in bytes a second; empty without
/// a copy or where none is stated.
std::string copy_text(const std::vector<Row>& rows, double stated_rate);

std::string context_text(const ContextMemory& memory);

/// For --help.
Outputs outputs();
void write_timing(RunRecord& record, const std::vector<Row>& rows, const std::vector<Judgement>& judgements);
void write_summary(RunRecord& record, const std::vector<Row>& rows, const std::vector<Judgement>& judgements);
void write_summary(RunRecord& record, const ContextMemory& memory);

/// What was checked: nothing of it is measured. Where a check failed, the run has failed.
void write_verdict(Run& run, const std::vector<Row>& rows);

/// Every row's rate as a share of its limit's, with its spread; of no rows nothing.
void draw_figure(Run& run, const std::vector<Judgement>& judgements, const std::string& setting);

}  // namespace experiments::gpu_throughput
