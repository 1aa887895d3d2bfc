#pragma once
/// What the instruments of training runs saw, as tables, summary keys and sentences.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/record.h"
#include "sim/trainer.h"

namespace experiments {

/// The steps of one run, under the name that the tables have for it.
struct InstrumentedRun {
  std::string_view strategy;
  std::uint64_t seed = 0;
  std::span<const sim::StepRecord> steps = {};
  std::span<const sim::GradientSite> sites = {};
};

/// skips.csv: a row for each step without an update that was recorded, with the first tensor of it that was
/// not finite.
void write_skips(sim::RunRecord& record, std::span<const InstrumentedRun> runs);

/// statistics.csv: a row for each tensor and step with statistics; exponents.csv: one for each octave of
/// these that is not empty.
void write_statistics(sim::RunRecord& record, std::span<const InstrumentedRun> runs);

/// Of each kind of skipped steps how many there were, and the first: what a smaller scale cures, what none
/// cures, what the scaler decided by a rule of its own. A paragraph; empty without skipped steps.
std::string skips_paragraph(std::span<const InstrumentedRun> runs);

/// {"peak_tensor_bytes", all}, {"peak_tensor_bytes_weights", ...} for each role.
std::vector<std::pair<std::string, std::size_t>> peak_tensor_bytes(const sim::MemoryAccount& memory);

}  // namespace experiments
