#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <utility>

#include "experiments/frame/parallel.h"
#include "experiments/master_weights/findings.h"
#include "experiments/training/counted_gradients.h"
#include "sim/optimizers/registry.h"
#include "sim/tape/gradients.h"
#include "sim/trainer/model_state.h"

namespace experiments::master_weights {
namespace {

/// The gradients of the trainer's next step, as its optimizer will be given them.
sim::Gradients next_gradients(sim::Trainer& trainer, const sim::Model& model,
                              const sim::PrecisionPolicy& policy, std::uint64_t seed) {
  const sim::RecordedStep step = sim::record_step(model, trainer.state(), trainer.next_batch(), policy,
                                                  {.seed = seed, .step = trainer.steps_done()});
  return sim::unscale(
      {.sites = step.tape.sites(),
       .values = step.tape.backward(step.forward.loss, {.loss_scale = static_cast<float>(trainer.scale())})},
      {.format = policy.unscaled_gradients});
}

/// The trainer's optimizer with the state that it has now, but computing in binary64.
std::unique_ptr<sim::Optimizer> exact_optimizer(sim::Trainer& trainer) {
  const sim::Optimizer& original = trainer.optimizer();
  const names::NamedValues options = original.options();
  auto optimizer = sim::make_optimizer(original.name(), {options.begin(), options.end()},
                                       {.operations = fp16::binary64, .state = original.arithmetic().state});
  const sim::ModelState& state = trainer.state();
  for (std::size_t i = 0; i < state.weights.size(); ++i) optimizer->allocate(i, state.weights[i].size());
  const sim::TrainerState saved = trainer.save();
  std::vector<sim::StateBlock> blocks;
  // The optimizer's arrays come last.
  for (std::size_t i = state.weights.size() + state.buffers.size(); i < saved.arrays.size(); ++i)
    blocks.push_back({saved.arrays[i].name, std::as_bytes(std::span(saved.arrays[i].bytes))});
  optimizer->restore(blocks);
  return optimizer;
}

template <class Value>
std::vector<double> values_of(std::span<const TrainingRun> runs, Value value) {
  std::vector<double> values;
  for (const TrainingRun& run : runs) values.push_back(value(run));
  return values;
}

}  // namespace

double norm_ratio(const sim::TwinComparison& changes) {
  return changes.run_norm() / changes.twin_norm();
}

double progress_share(const sim::TwinComparison& changes) {
  return changes.product / changes.twin_square;
}

double fraction_below_smallest_subnormal(const fp16::ExponentHistogram& changes) {
  constexpr int smallest_subnormal_log2 = -24;
  std::uint64_t below = 0;
  for (int e = fp16::ExponentHistogram::min_exponent; e < smallest_subnormal_log2; ++e)
    below += changes.octave(e).total;
  return share_of_nonzero(changes, below);
}

MeasuredUpdates& MeasuredUpdates::operator+=(const MeasuredUpdates& other) {
  changes += other.changes;
  exact_exponents += other.exact_exponents;
  ratios += other.ratios;
  return *this;
}

MeasuredUpdates measure_updates(const ParameterStep& step) {
  const std::size_t size = step.before.size();
  const double smallest_normal = step.before.format().min_normal();
  sim::Tensor stored(step.before.shape(), fp16::binary64), exact(step.before.shape(), fp16::binary64);
  const std::span<double> stored_changes = stored.elements<double>(),
                          exact_changes = exact.elements<double>();
  std::vector<double> before_buffer(size), after_buffer(size), exact_buffer(size);
  const double* const before = read(step.before, 0, size, std::span(before_buffer));
  const double* const after = read(step.after, 0, size, std::span(after_buffer));
  const double* const target = read(step.exact, 0, size, std::span(exact_buffer));
  MeasuredUpdates updates;
  for (std::size_t i = 0; i < size; ++i) {
    stored_changes[i] = after[i] - before[i];
    exact_changes[i] = target[i] - before[i];
    if (exact_changes[i] != 0 && std::fabs(before[i]) >= smallest_normal)
      updates.ratios.add(before[i], exact_changes[i], stored_changes[i] == 0);
  }
  updates.changes = sim::compare(stored, 1, exact, {});
  sim::add_exponents(updates.exact_exponents, exact);
  return updates;
}

MeasuredStep measured_step(sim::Trainer& trainer, const sim::Model& model, const sim::PrecisionPolicy& policy,
                           std::uint64_t seed) {
  const std::vector<sim::Tensor> before = trainer.state().weights;
  const sim::Gradients gradients = next_gradients(trainer, model, policy, seed);
  const std::unique_ptr<sim::Optimizer> optimizer = exact_optimizer(trainer);
  MeasuredStep step{.record = trainer.step(), .updates = {}};
  if (step.record.skipped()) return step;
  step.updates.emplace();
  optimizer->begin_step(step.record.learning_rate);
  for (std::size_t i = 0; i < before.size(); ++i) {
    sim::Tensor exact = rounded(before[i], fp16::binary64);
    optimizer->update(i, exact, gradients.parameters[i]);
    *step.updates +=
        measure_updates({.before = before[i], .after = trainer.state().weights[i], .exact = exact});
  }
  return step;
}

sim::Trainer trainer_of(const TrainingSetup& setup, const RunSettings& settings) {
  const double scale = std::ldexp(1.0, settings.storage.fp16_model ? settings.loss_scale_log2 : 0);
  return setup.trainer(
      {.scaler = "static:scale=" + names::number_text(scale),
       .seed = settings.seed,
       .keep_in = fmt::format("{}-S{}-{}", settings.storage.name, names::number_text(scale), settings.seed)},
      policy_of(settings.storage));
}

TrainingRun train(const TrainingSetup& setup, const RunSettings& settings, Progress& progress) {
  const sim::PrecisionPolicy policy = policy_of(settings.storage);
  sim::Trainer trainer = trainer_of(setup, settings);
  TrainingRun run;
  for (int first = 0; first < setup.steps(); first += settings.measure_every) {
    const int last = std::min(first + settings.measure_every, setup.steps());
    const MeasuredStep measured = measured_step(trainer, setup.model(), policy, settings.seed);
    Period period{.step = static_cast<std::size_t>(first),
                  .learning_rate = measured.record.learning_rate,
                  .training_loss = measured.record.loss,
                  .updates = measured.record.updates};
    if (measured.updates) {
      period.changes = measured.updates->changes;
      run.exact_exponents += measured.updates->exact_exponents;
      run.ratios += measured.updates->ratios;
    }
    for (int step = first + 1; step < last; ++step) {
      const sim::StepRecord record = trainer.step();
      period.training_loss += record.loss;
      period.updates += record.updates;
    }
    period.training_loss /= last - first;
    run.periods.push_back(std::move(period));
    progress.tick(static_cast<std::size_t>(last - first));
  }
  run.evaluation = sim::evaluate(setup.model(), setup.dataset(), trainer.state());
  return run;
}

Outcome outcome_of(std::span<const TrainingRun> runs, std::span<const TrainingRun> with_masters, int steps) {
  const auto loss = [](const TrainingRun& run) { return run.evaluation.loss; };
  const auto accuracy = [](const TrainingRun& run) { return run.evaluation.accuracy; };
  const std::vector<double> losses = values_of(runs, loss), accuracies = values_of(runs, accuracy),
                            losses_with_masters = values_of(with_masters, loss);
  Outcome outcome{.test_loss = estimate(losses),
                  .test_accuracy = estimate(accuracies),
                  .loss_difference = estimate_difference(losses_with_masters, losses),
                  .relative_loss = estimate_relative_difference(losses_with_masters, losses),
                  .accuracy_difference = estimate_difference(values_of(with_masters, accuracy), accuracies)};
  outcome.diverges_alone =
      !std::isfinite(outcome.test_loss.mean) && std::isfinite(estimate(losses_with_masters).mean);
  double measured = 0;
  for (const TrainingRun& run : runs) {
    outcome.exact_exponents += run.exact_exponents;
    outcome.ratios += run.ratios;
    for (const Period& period : run.periods) {
      outcome.updates += period.updates;
      const bool is_last = &period == &run.periods.back();
      if (is_last || 10 * period.step >= 9 * static_cast<std::size_t>(steps))
        outcome.late_updates += period.updates;
      if (!period.changes || period.changes->nonzero == 0) continue;
      outcome.progress += progress_share(*period.changes);
      outcome.norm_ratio += norm_ratio(*period.changes);
      outcome.cosine += period.changes->cosine();
      ++measured;
    }
  }
  for (double* sum : {&outcome.progress, &outcome.norm_ratio, &outcome.cosine}) *sum /= measured;
  return outcome;
}

double ConditionFindings::relative_loss_increase(std::size_t storage) const {
  if (outcomes[storage].diverges_alone) return std::numeric_limits<double>::infinity();
  return outcomes[storage].relative_loss.mean;
}

double ConditionFindings::relative_accuracy_loss(std::size_t storage) const {
  return 1 - outcomes[storage].test_accuracy.mean / outcomes[masters].test_accuracy.mean;
}

std::vector<ConditionFindings> measure(const std::vector<std::unique_ptr<Condition>>& conditions,
                                       const Options& options, Run& run) {
  const auto seeds = static_cast<std::size_t>(options.seeds);
  const std::size_t runs_of_condition = storages.size() * seeds;
  const std::size_t count = conditions.size() * runs_of_condition;
  const auto steps = static_cast<std::size_t>(conditions.front()->setup().steps());
  std::vector<ConditionFindings> findings;
  for (const auto& condition : conditions) {
    findings.push_back({.condition = condition.get(),
                        .runs = std::vector(storages.size(), std::vector<TrainingRun>(seeds)),
                        .outcomes = {}});
  }
  const auto settings_of = [&](std::size_t storage, std::size_t seed) {
    return RunSettings{.storage = storages[storage],
                       .seed = options.training.seed + seed,
                       .loss_scale_log2 = options.loss_scale_log2,
                       .measure_every = options.measure_every};
  };
  {
    // What does not fit into memory is said before hours of what does.
    const SideBySide bodies(runs_at_one_time(count, run.threads()));
    for (const auto& condition : conditions) {
      for (std::size_t storage = 0; storage < storages.size(); ++storage)
        trainer_of(condition->setup(), settings_of(storage, 0));
    }
  }
  {
    Progress progress = run.progress("training", count * steps);
    parallel_for_each(count, run.threads(), [&](std::size_t i) {
      ConditionFindings& found = findings[i / runs_of_condition];
      const std::size_t storage = i % runs_of_condition / seeds, seed = i % seeds;
      found.runs[storage][seed] = train(found.condition->setup(), settings_of(storage, seed), progress);
    });
  }
  for (ConditionFindings& found : findings) {
    for (const std::vector<TrainingRun>& runs : found.runs)
      found.outcomes.push_back(outcome_of(runs, found.runs[masters], static_cast<int>(steps)));
  }
  return findings;
}

}  // namespace experiments::master_weights
