#include <cmath>
#include <span>
#include <utility>

#include "experiments/frame/parallel.h"
#include "experiments/training/counted_gradients.h"
#include "experiments/underflow_sweep/findings.h"
#include "sim/loss_scaling/current_scaling.h"
#include "sim/precision/precision_policy.h"
#include "sim/tape/gradients.h"

namespace experiments::underflow_sweep {
namespace {

/// One batch on the tape with its twin; every scale is measured on it.
struct Probe {
  sim::RecordedStep step;
  sim::SiteGradients twin;
};

/// Makes the probes, whose tapes refer to it.
struct Recorder {
  const sim::Model& model;
  sim::PrecisionPolicy policy;
  std::uint64_t seed;
  /// The scaler of casts to FP8. A rule with a memory would have nothing to remember at a single batch, and could
  /// not be asked for several scales of the loss at once.
  sim::CurrentScaling cast_scaler{};

  Probe record(sim::Trainer& trainer) {
    Probe probe{
        .step = sim::record_step(model, trainer.state(), trainer.next_batch(), policy,
                                 {.seed = seed, .step = trainer.steps_done(), .tensor_scaler = &cast_scaler}),
        .twin = {}};
    probe.twin = probe.step.tape.backward(probe.step.forward.loss, {.loss_scale = 1, .twin = fp16::binary32});
    return probe;
  }
};

/// One at each of the next steps.
std::vector<Probe> make_probes(sim::Trainer& trainer, Recorder& recorder, int count, Progress& progress) {
  std::vector<Probe> probes;
  for (int i = 0; i < count; ++i) {
    probes.push_back(recorder.record(trainer));
    train(trainer, 1, progress);
  }
  return probes;
}

ScaleResult measure_scale(const std::vector<Probe>& probes, float scale) {
  ScaleResult result;
  for (const Probe& probe : probes) {
    const sim::SiteGradients run =
        probe.step.tape.backward(probe.step.forward.loss, {.loss_scale = scale, .count_rounding = true});
    const std::vector<sim::TwinComparison> sites =
        sim::compare_sites(probe.step.tape.sites(), run, probe.twin);
    result.sites.resize(sites.size());
    result.lost_upstream.resize(sites.size());
    for (std::size_t i = 0; i < sites.size(); ++i) {
      result.sites[i] += sites[i];
      result.lost_upstream[i] += count_lost_upstream(run.gradients[i], probe.twin.gradients[i], scale);
    }
    const sim::TwinComparison total = sim::total_of(sites);
    result.relative_error += total.relative_error() / static_cast<double>(probes.size());
    result.cosine += total.cosine() / static_cast<double>(probes.size());
  }
  return result;
}

std::optional<BestScales> find_best_scales(const std::vector<ScaleResult>& results) {
  std::optional<std::size_t> best;
  for (std::size_t m = 0; m < results.size(); ++m) {
    if (results[m].overflows()) continue;
    if (!best || results[m].relative_error < results[*best].relative_error) best = m;
  }
  if (!best) return std::nullopt;
  const auto is_as_good = [&](std::size_t m) {
    return !results[m].overflows() && results[m].relative_error <= 1.01 * results[*best].relative_error;
  };
  BestScales found{.best = *best, .lowest = *best, .highest = *best};
  while (found.lowest > 0 && is_as_good(found.lowest - 1)) --found.lowest;
  while (found.highest + 1 < results.size() && is_as_good(found.highest + 1)) ++found.highest;
  return found;
}

fp16::ExponentHistogram count_twins(const std::vector<Probe>& probes, const ScaleResult& result) {
  fp16::ExponentHistogram exponents;
  for (const Probe& probe : probes) {
    for (std::size_t i = 0; i < result.sites.size(); ++i) {
      if (!result.sites[i].is_rounding_noise) sim::add_exponents(exponents, probe.twin.gradients[i]);
    }
  }
  return exponents;
}

}  // namespace

double ScaleResult::fraction_lost_upstream(std::size_t site) const {
  return share_of(sites[site].nonzero, lost_upstream[site]);
}

double ScaleResult::fraction_lost_upstream() const {
  std::uint64_t lost = 0;
  for (std::size_t i = 0; i < sites.size(); ++i) lost += sites[i].is_rounding_noise ? 0 : lost_upstream[i];
  return share_of(total().nonzero, lost);
}

std::uint64_t count_lost_upstream(const sim::Tensor& run, const sim::Tensor& twin, float scale) {
  constexpr double largest_flushed = 0x1p-25;  // nearest-even takes the tie to zero
  std::vector<double> run_values(run.size()), twin_values(twin.size());
  const double* const a = read(run, 0, run.size(), std::span(run_values));
  const double* const b = read(twin, 0, twin.size(), std::span(twin_values));
  std::uint64_t count = 0;
  for (std::size_t i = 0; i < run.size(); ++i)
    count += a[i] == 0 && std::fabs(b[i] * scale) > largest_flushed;
  return count;
}

Findings measure(const TrainingSetup& setup, sim::Trainer& trainer, const Options& options, Run& run) {
  Recorder recorder{
      .model = setup.model(), .policy = policy_from_option(options.policy), .seed = options.training.seed};
  const std::size_t scales = static_cast<std::size_t>(options.max_scale_log2) + 1;
  Progress progress = run.progress("sweep", static_cast<std::size_t>(setup.steps() + options.pool) + scales);
  train(trainer, setup.steps(), progress);
  const std::vector<Probe> probes = make_probes(trainer, recorder, options.pool, progress);
  std::vector<ScaleResult> results(scales);
  parallel_for_each(scales, run.threads(), [&](std::size_t m) {
    results[m] = measure_scale(probes, std::ldexp(1.0f, static_cast<int>(m)));
    progress.tick();
  });
  const fp16::ExponentHistogram twins = count_twins(probes, results.front());
  const std::optional<BestScales> best_scales =
      twins.nonzero_finite() > 0 ? find_best_scales(results) : std::nullopt;
  return {.results = std::move(results),
          .sites = probes.front().step.tape.sites(),
          .twin_exponents = twins,
          .best_scales = best_scales,
          .recommended_scale_log2 = recommended_scale_log2(twins),
          .evaluation = sim::evaluate(setup.model(), setup.dataset(), trainer.state()),
          .policy = options.policy,
          .is_fp16 = recorder.policy.lower_precision == fp16::binary16};
}

}  // namespace experiments::underflow_sweep
