#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "sim/loss_scaling/registry.h"
#include "tools/halflab/replay/findings.h"

namespace halflab::replay {
namespace {

using experiments::GradientRecord;
using experiments::log2_of_power;
using experiments::StepGradients;
using fp16::ExponentHistogram;

constexpr double overflows_from = 65520;  // of binary16, to nearest

bool is_known(double value) {
  return !std::isnan(value);
}

/// Whether the step overflows at a scale; nothing where the record cannot tell.
std::optional<bool> overflows(const StepGradients& step, double scale) {
  if (is_known(step.scale) && scale == step.scale) return step.found_nonfinite;
  if (!step.found_nonfinite) {
    if (is_known(step.max_abs_all)) return scale * step.max_abs_all >= overflows_from;
    if (is_known(step.max_abs)) return scale * step.max_abs >= overflows_from;
    if (is_known(step.scale) && scale < step.scale) return false;
    return std::nullopt;
  }
  if (is_known(step.scale) && scale > step.scale) return true;
  if (std::isinf(step.max_abs)) return true;  // of a table without S: not finite though S is divided out
  // A largest gradient that explains the overflow is the one that overflowed; a smaller one is the largest beside it.
  if (is_known(step.scale) && step.scale * step.max_abs >= overflows_from)
    return scale * step.max_abs >= overflows_from;
  if (is_known(step.twin_max_abs_all) && std::isfinite(step.twin_max_abs_all))
    return scale * step.twin_max_abs_all >= overflows_from;
  return std::nullopt;
}

/// What the scaler is told of a step at its scale.
struct Summary {
  sim::GradientSummary summary;
  std::optional<ExponentHistogram> exponents;
  sim::TwinSummary twin;
};

void fill(Summary& known, const StepGradients& step, double scale, bool does_overflow) {
  known.summary.found_nonfinite = does_overflow;
  const double largest = is_known(step.max_abs) ? step.max_abs : 0;
  known.summary.max_abs = static_cast<float>(std::min(largest * scale, 65504.0));
  if (const auto log2 = log2_of_power(scale); step.exponents && log2) {
    known.exponents = fp16::scaled(*step.exponents, *log2);
    known.summary.exponents = &*known.exponents;
  }
}

/// The share that a cast at the scale makes zero.
std::optional<double> flushed_share(const StepGradients& step, double scale) {
  const auto log2 = log2_of_power(scale);
  if (!step.twin_exponents || !log2 || step.twin_exponents->nonzero_finite() == 0) return std::nullopt;
  return static_cast<double>(step.twin_exponents->flushed_at_scale(*log2)) /
         static_cast<double>(step.twin_exponents->nonzero_finite());
}

ReplayedStep replay_step(const StepGradients& step, sim::LossScaler& scaler) {
  ReplayedStep replayed{.scale = scaler.scale()};
  const std::optional<bool> told = overflows(step, replayed.scale);
  if (!told) replayed.untold = Untold::overflow;
  Summary known;
  fill(known, step, replayed.scale, told.value_or(false));
  replayed.flushed_share = flushed_share(step, replayed.scale);
  if (scaler.needs_exponents() && known.summary.exponents == nullptr) {
    replayed.untold = Untold::exponents;
    return replayed;
  }
  if (scaler.wants_twin(known.summary)) {
    if (!step.twin_exponents) {
      replayed.untold = Untold::twin;
      return replayed;
    }
    known.twin = {.finite = step.twin_exponents->infinite() + step.twin_exponents->nan() == 0,
                  .exponents = &*step.twin_exponents};
    known.summary.twin = &known.twin;
  }
  replayed.decision = scaler.update(known.summary);
  return replayed;
}

}  // namespace

std::size_t Replay::skipped() const {
  return static_cast<std::size_t>(std::ranges::count_if(
      steps, [](const ReplayedStep& step) { return step.decision != sim::Decision::apply; }));
}

std::size_t Replay::untold() const {
  return static_cast<std::size_t>(
      std::ranges::count_if(steps, [](const ReplayedStep& step) { return step.untold != Untold::no; }));
}

std::optional<double> Replay::mean_flushed_share() const {
  double sum = 0;
  std::size_t count = 0;
  for (const ReplayedStep& step : steps) {
    if (!step.flushed_share) continue;
    sum += *step.flushed_share;
    ++count;
  }
  return count == 0 ? std::nullopt : std::optional(sum / static_cast<double>(count));
}

bool Replay::is_told() const {
  return untold() < steps.size();
}

bool Findings::has_scales() const {
  return std::ranges::any_of(record.steps, is_known, &StepGradients::scale);
}

bool Findings::equals_record(const Replay& replay) const {
  return replay.is_told() && replay.steps.size() == record.steps.size() &&
         std::ranges::equal(replay.steps, record.steps, {}, &ReplayedStep::scale, &StepGradients::scale);
}

Replay replay(const GradientRecord& record, const std::string& spec) {
  const auto [name, options] = names::parse_numeric_spec(spec);
  const std::unique_ptr<sim::LossScaler> scaler = sim::make_scaler(name, options);
  Replay replay{.scaler = spec};
  for (const StepGradients& step : record.steps) {
    replay.steps.push_back(replay_step(step, *scaler));
    if (replay.steps.back().decision != sim::Decision::abort) continue;
    replay.abort_reason = scaler->abort_reason();
    break;
  }
  return replay;
}

}  // namespace halflab::replay
