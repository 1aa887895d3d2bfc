#pragma once
/// What the instruments of training runs saw, as tables, summary keys and sentences.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "experiments/common/confidence.h"
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

/// steps.csv: a row for each step; what it lost against its twin is NaN where it was not measured.
void write_steps(sim::RunRecord& record, std::span<const InstrumentedRun> runs);

/// layers.csv: a row for each tensor of each measured step.
void write_layers(sim::RunRecord& record, std::span<const InstrumentedRun> runs);

/// skips.csv: a row for each step without an update that was recorded, with the first tensor of it that was
/// not finite.
void write_skips(sim::RunRecord& record, std::span<const InstrumentedRun> runs);

/// statistics.csv: a row for each tensor and step with statistics; exponents.csv: one for each octave of
/// these that is not empty.
void write_statistics(sim::RunRecord& record, std::span<const InstrumentedRun> runs);

/// Of each kind of skipped steps how many there were, and the first: what a smaller scale cures, what none
/// cures, what the scaler decided by a rule of its own. A paragraph; empty without skipped steps.
std::string skips_paragraph(std::span<const InstrumentedRun> runs);

/// Which tensor sits lowest against 2^-25 at the first measured step, which is what S = 1 has to hold; none of
/// rounding noise, nor one without a gradient. Empty where that leaves nothing.
std::string weakest_layer_sentence(const InstrumentedRun& run);

/// Why a run ended before its last step.
std::string abort_sentence(std::string_view strategy, std::uint64_t seed, std::size_t steps,
                           std::string_view reason);

/// The mean under `key` and, of several values, <key>_std, <key>_lower and <key>_upper into the summary.
void write_estimate(sim::RunRecord& record, const std::string& key, const Estimate& value);

/// {"peak_tensor_bytes", all}, {"peak_tensor_bytes_weights", ...} for each role.
std::vector<std::pair<std::string, std::size_t>> peak_tensor_bytes(const sim::MemoryAccount& memory);

}  // namespace experiments
