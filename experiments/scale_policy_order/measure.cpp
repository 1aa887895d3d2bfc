#include <algorithm>
#include <cassert>
#include <cmath>
#include <functional>
#include <memory>
#include <utility>

#include "experiments/frame/parallel.h"
#include "experiments/scale_policy_order/findings.h"
#include "fp16/names.h"
#include "sim/optimizers/registry.h"
#include "sim/trainer/model_state.h"

namespace experiments::scale_policy_order {
namespace {

constexpr double undefined = std::numeric_limits<double>::quiet_NaN();

double dot(std::span<const double> a, std::span<const double> b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

std::vector<double> values_of(const sim::ModelState& state) {
  std::vector<double> values;
  for (const sim::Tensor& weight : state.weights) {
    const auto elements = weight.elements<double>();
    values.insert(values.end(), elements.begin(), elements.end());
  }
  return values;
}

/// A session that is set to another's weights before each step.
class Shadow {
 public:
  Shadow(const TrainingSetup& setup, const Recipe& recipe, Setting setting)
      : session_(setup, recipe, in_binary64(std::move(setting))) {}

  void step(const Session& teacher) {
    session_.follow(teacher);
    const std::vector<double> before = values_of(session_.state());
    outcome_ = session_.step();
    update_ = values_of(session_.state());
    for (std::size_t i = 0; i < update_.size(); ++i) update_[i] -= before[i];
  }

  const StepOutcome& outcome() const { return outcome_; }
  const std::vector<double>& update() const { return update_; }
  const sim::Optimizer& optimizer() const { return session_.optimizer(); }

 private:
  static Setting in_binary64(Setting setting) {
    setting.updates = fp16::binary64;
    return setting;
  }

  Session session_;
  StepOutcome outcome_;
  std::vector<double> update_;
};

double option_or_0(const sim::Optimizer& optimizer, std::string_view name) {
  for (const auto& [option, value] : optimizer.options()) {
    if (option == name) return value;
  }
  return 0;
}

/// What the prediction of one recipe's step may know.
StepFacts facts_of(const Shadow& shadow, const Shadow& right, const Session& teacher, const Setting& setting,
                   double cosine) {
  const sim::Optimizer& optimizer = shadow.optimizer();
  return {.scales = shadow.outcome().scales,
          .divisor = shadow.outcome().divisor,
          .micro_batches = setting.micro_batches,
          .norm = right.outcome().norm,
          .max_norm = setting.max_norm,
          .cosine = cosine,
          .applied = teacher.applied(),
          .skipped = teacher.skipped(),
          .warmup_steps = setting.warmup_steps,
          .total_steps = setting.steps,
          .normalises = sim::find_optimizer(optimizer.name()).normalises_gradients,
          .beta1 = option_or_0(optimizer, "beta1"),
          .beta2 = option_or_0(optimizer, "beta2")};
}

StepMeasurement compare(const Shadow& shadow, const Shadow& right, const Recipe& recipe,
                        const std::function<StepFacts(double cosine)>& facts) {
  StepMeasurement measured{.step = 0,
                           .scale = shadow.outcome().scales.front(),
                           .predicted = undefined,
                           .factor = undefined,
                           .cosine = undefined,
                           .predicted_loss_ratio = undefined,
                           .loss_ratio = undefined,
                           .right_applied = right.outcome().updates > 0,
                           .applied = shadow.outcome().updates > 0,
                           .unseen = shadow.outcome().unseen > 0};
  if (!measured.right_applied) return measured;
  const Projection projection = project(shadow.update(), right.update());
  measured.factor = projection.factor;
  measured.cosine = projection.cosine;
  if (recipe.predicted && measured.applied) measured.predicted = recipe.predicted(facts(measured.cosine));
  return measured;
}

}  // namespace

Projection project(std::span<const double> update, std::span<const double> right) {
  const double along = dot(update, right), square = dot(right, right);
  return {.factor = along / square, .cosine = along / std::sqrt(square * dot(update, update))};
}

TwoFactors project(std::span<const double> update, std::span<const double> first,
                   std::span<const double> second) {
  const double a = dot(first, first), b = dot(first, second), c = dot(second, second);
  const double x = dot(update, first), y = dot(update, second);
  const double determinant = a * c - b * b;
  if (!(determinant > 0)) return {undefined, undefined};
  return {.first = (c * x - b * y) / determinant, .second = (a * y - b * x) / determinant};
}

Spread spread(std::vector<double> values) {
  std::erase_if(values, [](double value) { return !std::isfinite(value); });
  if (values.empty()) return {};
  std::ranges::sort(values);
  const std::size_t middle = values.size() / 2;
  const double median = values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
  return {.lowest = values.front(), .median = median, .highest = values.back()};
}

Spread spread(const Result& result, double StepMeasurement::*column) {
  std::vector<double> values;
  for (const StepMeasurement& step : result.steps) values.push_back(step.*column);
  return spread(std::move(values));
}

Spread agreement_of(const Result& result) {
  std::vector<double> ratios;
  for (const StepMeasurement& step : result.steps) ratios.push_back(step.factor / step.predicted);
  return spread(std::move(ratios));
}

bool RunResult::diverged() const {
  return !std::isfinite(loss);
}

std::vector<double> Result::losses() const {
  std::vector<double> losses;
  for (const RunResult& run : runs) losses.push_back(run.loss);
  return losses;
}

std::vector<double> Result::accuracies() const {
  std::vector<double> accuracies;
  for (const RunResult& run : runs) accuracies.push_back(run.accuracy);
  return accuracies;
}

std::size_t Result::diverged_runs() const {
  return static_cast<std::size_t>(std::ranges::count_if(runs, &RunResult::diverged));
}

const Result& Findings::of(std::string_view recipe, std::string_view optimizer) const {
  const auto found = std::ranges::find_if(results, [&](const Result& result) {
    return result.recipe->name == recipe && result.optimizer == optimizer;
  });
  assert(found != results.end());
  return *found;
}

Estimate Findings::difference(const Result& result) const {
  return estimate_difference(of(result.recipe->right, result.optimizer).losses(), result.losses());
}

std::vector<std::vector<StepMeasurement>> trace(const TrainingSetup& setup, const Recipe& right,
                                                std::span<const Recipe* const> recipes,
                                                const Setting& setting, Progress& progress) {
  Session teacher(setup, right, setting);
  Shadow reference(setup, right, setting);
  std::vector<Shadow> shadows, alone;
  for (const Recipe* recipe : recipes) shadows.emplace_back(setup, *recipe, setting);
  for (std::size_t loss = 0; right.two_losses && loss < 2; ++loss)
    alone.emplace_back(setup, one_loss_alone(loss), setting);
  std::vector<std::vector<StepMeasurement>> traces(recipes.size());
  for (std::uint64_t step = 0; step < setting.steps; ++step) {
    reference.step(teacher);
    for (Shadow& shadow : alone) shadow.step(teacher);
    for (std::size_t i = 0; i < recipes.size(); ++i) {
      Shadow& shadow = shadows[i];
      shadow.step(teacher);
      StepMeasurement measured = compare(shadow, reference, *recipes[i], [&](double cosine) {
        return facts_of(shadow, reference, teacher, setting, cosine);
      });
      measured.step = step;
      const bool is_linear = !sim::find_optimizer(shadow.optimizer().name()).normalises_gradients;
      if (right.two_losses && is_linear && measured.right_applied && measured.applied) {
        const TwoFactors factors = project(shadow.update(), alone[0].update(), alone[1].update());
        measured.loss_ratio = factors.second / factors.first;
        measured.predicted_loss_ratio = predicted_loss_ratio(*recipes[i], shadow.outcome().scales);
      }
      traces[i].push_back(measured);
    }
    teacher.step();
    progress.tick(recipes.size());
  }
  return traces;
}

RunResult train(const TrainingSetup& setup, const Recipe& recipe, const Setting& setting,
                Progress& progress) {
  Session session(setup, recipe, setting);
  std::uint64_t unseen = 0;
  bool diverged = false;
  for (std::uint64_t step = 0; step < setting.steps; ++step) {
    progress.tick();
    if (diverged) continue;
    unseen += static_cast<std::uint64_t>(session.step().unseen);
    diverged = session.has_diverged();
  }
  const sim::Evaluation evaluation = diverged
                                         ? sim::Evaluation{.loss = undefined, .accuracy = undefined}
                                         : sim::evaluate(setup.model(), setup.dataset(), session.state());
  return {.seed = setting.seed,
          .loss = evaluation.loss,
          .accuracy = evaluation.accuracy,
          .applied = session.applied(),
          .skipped = session.skipped(),
          .unseen = unseen,
          .final_scale = static_cast<double>(session.scale())};
}

Setting setting_of(const Recipe& recipe, const std::string& optimizer, const Options& options) {
  constexpr int octaves_too_high = 16;
  constexpr std::uint64_t warmups_in_a_run = 10;
  const TrainingOptions& training = recipe.two_losses ? options.detector : options.training;
  const auto steps = static_cast<std::uint64_t>(*training.steps);
  return {.optimizer = optimizer,
          .max_norm = options.max_norm,
          .max_value = options.max_value,
          .micro_batches = static_cast<std::size_t>(options.micro_batches),
          .batch = static_cast<std::size_t>(*training.batch),
          .scale_log2 = options.scale_log2,
          .too_high_scale_log2 = options.scale_log2 + octaves_too_high,
          .growth_interval = options.growth_interval,
          .steps = steps,
          .warmup_steps = steps / warmups_in_a_run,
          .seed = training.seed};
}

Findings measure(const TrainingSetup& setup, const TrainingSetup& detector, const Options& options,
                 Run& run) {
  Findings found;
  for (const Recipe& recipe : recipes()) {
    for (const std::string& optimizer : options.optimizers)
      found.results.push_back({.recipe = &recipe,
                               .optimizer = optimizer,
                               .steps = {},
                               .runs = std::vector<RunResult>(static_cast<std::size_t>(options.seeds))});
  }
  std::vector<std::function<void(Progress&)>> jobs;
  std::size_t steps = 0;
  for (Result& result : found.results) {
    const Recipe& recipe = *result.recipe;
    const TrainingSetup& its_setup = recipe.two_losses ? detector : setup;
    const Setting setting = setting_of(recipe, result.optimizer, options);
    for (std::size_t seed = 0; seed < result.runs.size(); ++seed) {
      Setting seeded = setting;
      seeded.seed += seed;
      jobs.push_back([&, seeded, seed](Progress& progress) {
        result.runs[seed] = train(its_setup, recipe, seeded, progress);
      });
    }
    steps += setting.steps * (result.runs.size() + 1);
    if (!recipe.is_reference()) continue;
    jobs.push_back([&, setting](Progress& progress) {
      std::vector<Result*> followers;
      std::vector<const Recipe*> followed;
      for (Result& other : found.results) {
        if (other.recipe->right != recipe.name || other.optimizer != result.optimizer) continue;
        followers.push_back(&other);
        followed.push_back(other.recipe);
      }
      auto traces = trace(its_setup, recipe, followed, setting, progress);
      for (std::size_t i = 0; i < followers.size(); ++i) followers[i]->steps = std::move(traces[i]);
    });
  }
  Progress progress = run.progress("recipes", steps);
  parallel_for_each(jobs.size(), run.threads(), [&](std::size_t job) { jobs[job](progress); });
  return found;
}

}  // namespace experiments::scale_policy_order
