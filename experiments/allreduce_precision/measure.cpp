#include <algorithm>
#include <cmath>
#include <iterator>
#include <set>
#include <utility>

#include "experiments/allreduce_precision/findings.h"
#include "experiments/frame/parallel.h"
#include "experiments/training/counted_gradients.h"
#include "sim/precision/precision_policy.h"
#include "sim/tensor/tensor.h"

namespace experiments::allreduce_precision {
namespace {

sim::Tensor tensor_of(std::span<const double> values) {
  sim::Tensor tensor({values.size()}, fp16::binary64);
  std::ranges::copy(values, tensor.elements<double>().begin());
  return tensor;
}

/// What all kinds of all-reduce have in common.
struct Reference {
  sim::Tensor exact;
  double relative_error_of_one_rounding;
  std::uint64_t inputs;
  std::uint64_t nonzero_inputs = 0;
  std::uint64_t nonfinite_inputs = 0;

  explicit Reference(std::span<const std::span<const float>> workers)
      : exact(tensor_of(sim::exact_mean(workers))),
        relative_error_of_one_rounding(
            sim::compare(sim::rounded(exact, fp16::binary16), 1, exact, {}).relative_error()),
        inputs(workers.size() * exact.size()) {
    for (const std::span<const float> worker : workers) {
      for (const float value : worker) {
        nonzero_inputs += value != 0;
        nonfinite_inputs += !std::isfinite(value);
      }
    }
  }
};

std::vector<sim::AllReduce> all_kinds() {
  std::vector<sim::AllReduce> kinds;
  for (const sim::AllReduceAlgorithm algorithm : measured_algorithms) {
    for (const sim::AllReducePrecision precision : measured_precisions) {
      for (const sim::AllReduceDivision division : sim::all_reduce_divisions)
        kinds.push_back({.algorithm = algorithm, .precision = precision, .division = division});
    }
  }
  return kinds;
}

std::vector<sim::AllReduce> swept_kinds() {
  std::vector<sim::AllReduce> kinds;
  for (const sim::AllReduceDivision division : sim::all_reduce_divisions)
    kinds.push_back({.algorithm = usual.algorithm, .precision = usual.precision, .division = division});
  return kinds;
}

/// Measures on numbers of workers and kinds, each combination one tick.
struct Campaign {
  const GradientPool& pool;
  std::vector<std::size_t> workers;
  std::vector<sim::AllReduce> kinds;
  int threads;

  std::size_t size() const { return workers.size() * kinds.size(); }

  void run(Source source, int scale_log2, std::vector<Measured>& results, Progress& progress) const {
    const WorkerGradients gradients = pool.gradients(source, scale_log2);
    for (const std::size_t count : workers) {
      std::vector<Measured> measured =
          measure(gradients, {.source = source, .scale_log2 = scale_log2, .workers = count}, kinds, threads);
      std::ranges::move(measured, std::back_inserter(results));
      progress.tick(kinds.size());
    }
  }
};

}  // namespace

std::vector<Measured> measure(const WorkerGradients& gradients, const Setting& setting,
                              std::span<const sim::AllReduce> kinds, int threads) {
  const auto workers = std::span(gradients.workers).first(setting.workers);
  const Reference reference(workers);
  std::vector<Measured> results(kinds.size());
  parallel_for_each(kinds.size(), threads, [&](std::size_t i) {
    const sim::AllReducedMean mean = sim::all_reduce_mean(workers, kinds[i]);
    results[i] = {
        .setting = setting,
        .how = kinds[i],
        .loss = sim::compare(sim::Tensor::from({mean.values.size()}, mean.values), 1, reference.exact, {}),
        .fraction_inputs_flushed = share_of(reference.nonzero_inputs, mean.predivision.flushed),
        .fraction_inputs_overflow = share_of(reference.inputs, reference.nonfinite_inputs),
        .relative_error_of_one_rounding = reference.relative_error_of_one_rounding};
  });
  return results;
}

const Measured* find(std::span<const Measured> all, const Setting& setting, const sim::AllReduce& how) {
  const auto found = std::ranges::find_if(
      all, [&](const Measured& measured) { return measured.setting == setting && measured.how == how; });
  return found == all.end() ? nullptr : &*found;
}

std::optional<std::size_t> first_overflow(std::span<const Measured> all, Source source, int scale_log2,
                                          const sim::AllReduce& how) {
  std::optional<std::size_t> first;
  for (const Measured& measured : all) {
    if (measured.setting.source != source || measured.setting.scale_log2 != scale_log2 || measured.how != how)
      continue;
    if (!measured.overflows() || measured.fraction_inputs_overflow > 0) continue;
    first = std::min(first.value_or(measured.setting.workers), measured.setting.workers);
  }
  return first;
}

std::optional<Window> usable_scales(std::span<const Measured> scales, Source source, std::size_t workers,
                                    sim::AllReduceDivision division) {
  constexpr double allowed_excess = 1.25;
  std::vector<const Measured*> finite;
  for (const Measured& measured : scales) {
    const Setting& setting = measured.setting;
    if (setting.source == source && setting.workers == workers && measured.how.division == division &&
        !measured.overflows())
      finite.push_back(&measured);
  }
  if (finite.empty()) return std::nullopt;
  const auto error = [](const Measured* measured) { return measured->loss.relative_error(); };
  const auto scale = [&](std::size_t index) { return finite[index]->setting.scale_log2; };
  const std::size_t best = std::ranges::min_element(finite, {}, error) - finite.begin();
  const auto is_as_good = [&](std::size_t index) {
    return error(finite[index]) <= allowed_excess * error(finite[best]);
  };
  std::size_t lowest = best, highest = best;
  while (lowest > 0 && scale(lowest - 1) + 1 == scale(lowest) && is_as_good(lowest - 1)) --lowest;
  while (highest + 1 < finite.size() && scale(highest) + 1 == scale(highest + 1) && is_as_good(highest + 1))
    ++highest;
  return Window{.lowest = scale(lowest), .highest = scale(highest)};
}

std::optional<int> first_input_overflow(std::span<const Measured> scales, Source source,
                                        std::size_t workers) {
  std::optional<int> first;
  for (const Measured& measured : scales) {
    const auto& [its_source, scale_log2, its_workers] = measured.setting;
    if (its_source == source && its_workers == workers && measured.fraction_inputs_overflow > 0)
      first = std::min(first.value_or(scale_log2), scale_log2);
  }
  return first;
}

std::vector<std::size_t> measured_workers(int max_workers_log2) {
  std::vector<std::size_t> workers;
  for (int log2 = 1; log2 <= max_workers_log2; ++log2) workers.push_back(std::size_t{1} << log2);
  return workers;
}

std::vector<std::size_t> shown_workers(int max_workers_log2) {
  std::set<std::size_t> workers;
  for (int third = 1; third <= 3; ++third)
    workers.insert(std::size_t{1} << std::max(max_workers_log2 * third / 3, 1));
  return {workers.begin(), workers.end()};
}

Findings measure(const TrainingSetup& setup, sim::Trainer& trainer, const Options& options, Run& run) {
  const sim::PrecisionPolicy policy = policy_from_option(options.policy);
  Progress training = run.progress("training", static_cast<std::size_t>(setup.steps()));
  train(trainer, setup.steps(), training);
  const GradientPool pool(setup, trainer, policy,
                          {.micro_batches = static_cast<std::size_t>(options.pool),
                           .examples = static_cast<std::size_t>(*options.training.batch),
                           .elements = static_cast<std::size_t>(options.elements),
                           .workers = std::size_t{1} << options.max_workers_log2,
                           .seed = options.training.seed,
                           .threads = run.threads()});
  constexpr int beyond_overflow =
      4;  // octaves from the recommended scale to where workers' own gradients overflow
  const int recommended = std::max(recommended_scale_log2(pool.exponents()).value_or(0), 0);
  Findings found{.scale_log2 = options.scale_log2.value_or(recommended),
                 .max_scale_log2 = options.max_scale_log2.value_or(recommended + beyond_overflow),
                 .elements = pool.elements(),
                 .all_reduces = {},
                 .scales = {},
                 .nonfinite_clause = nonfinite_clause(pool.exponents()),
                 .evaluation = sim::evaluate(setup.model(), setup.dataset(), trainer.state())};
  const std::vector<std::size_t> workers = measured_workers(options.max_workers_log2);
  const Campaign all{.pool = pool, .workers = workers, .kinds = all_kinds(), .threads = run.threads()};
  const Campaign swept{.pool = pool, .workers = workers, .kinds = swept_kinds(), .threads = run.threads()};
  const std::set<int> compared{0, found.scale_log2};
  const auto scales = static_cast<std::size_t>(found.max_scale_log2) + 1;
  Progress progress =
      run.progress("all-reduce", sources.size() * (compared.size() * all.size() + scales * swept.size()));
  for (const Source source : sources) {
    for (const int scale_log2 : compared) all.run(source, scale_log2, found.all_reduces, progress);
    for (int scale_log2 = 0; scale_log2 <= found.max_scale_log2; ++scale_log2)
      swept.run(source, scale_log2, found.scales, progress);
  }
  return found;
}

}  // namespace experiments::allreduce_precision
