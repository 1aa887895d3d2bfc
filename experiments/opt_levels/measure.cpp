#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "experiments/frame/parallel.h"
#include "experiments/frame/printable.h"
#include "experiments/opt_levels/findings.h"
#include "experiments/training/cells.h"
#include "sim/tensor/log2.h"
#include "sim/trainer/model_state.h"

namespace experiments::opt_levels {
namespace {

constexpr int largest_possible_batch = 65536;  // that --batch allows

sim::Trainer trainer_of(const Findings& found, const RunGroup& group, std::uint64_t seed) {
  const Recipe& recipe = found.recipes[group.recipe];
  const bool measured = group.budget.batch == found.setup.budget().batch;
  const sim::DataParallel parallel = found.options.parallel.choice();
  return found.setup.trainer(
      {.seed = seed,
       .twin_every = measured ? static_cast<std::size_t>(found.options.twin_every) : 0,
       .record_skips = true,
       .parallel = group.is_control || group.recipe == 0 ? all_reduced_in_fp32(parallel) : parallel,
       .keep_in = fmt::format("{}{}-batch{}-steps{}-{}", in_file_name(recipe.name),
                              group.is_control ? "-fp32_allreduce" : "", group.budget.batch,
                              group.budget.steps, seed)},
      recipe.policy, recipe.make_scaler(), group.budget);
}

/// From 1; 0 where all are finite.
std::size_t first_nonfinite_step(std::span<const sim::StepRecord> steps) {
  const auto first =
      std::ranges::find_if(steps, [](const sim::StepRecord& step) { return !std::isfinite(step.loss); });
  return first == steps.end() ? 0 : first->step + 1;
}

CellResult result_of(const TrainingSetup& setup, const sim::Trainer& trainer,
                     std::span<const sim::StepRecord> steps) {
  const sim::Evaluation evaluation = sim::evaluate(setup.model(), setup.dataset(), trainer.state());
  TwinSums twins;
  sim::UpdateCounts updates;
  for (const sim::StepRecord& step : steps) {
    twins.add(step);
    updates += step.updates;
  }
  CellResult result{.abort_reason = trainer.abort_reason()};
  result.values = {{"final_loss", evaluation.loss}};
  if (setup.model().is_classifier()) result.values.emplace_back("final_accuracy", evaluation.accuracy);
  result.values.emplace_back("steps", steps.size());
  result.values.emplace_back("skipped_steps", std::ranges::count_if(steps, &sim::StepRecord::skipped));
  result.values.emplace_back("first_nonfinite_step", first_nonfinite_step(steps));
  result.values.emplace_back("final_scale_log2", sim::log2_of(trainer.scale()));
  result.values.emplace_back("fraction_swallowed", fraction_swallowed(updates));
  for (const auto& mean : twins.means()) result.values.push_back(mean);
  result.values.emplace_back("held_bytes", held_bytes(trainer.memory()));
  for (const auto& peak : peak_tensor_bytes(trainer.memory())) result.values.push_back(peak);
  return result;
}

void train(const Findings& found, RunGroup& group, std::size_t index, Progress& progress) {
  TrainingRun& run = group.runs[index];
  sim::Trainer trainer = trainer_of(found, group, run.seed);
  for (int step = 0; step < group.budget.steps; ++step) {
    run.steps.push_back(trainer.step());
    progress.tick();
    if (run.steps.back().decision == sim::Decision::abort) break;
  }
  progress.tick(static_cast<std::size_t>(group.budget.steps) - run.steps.size());
  run.sites = trainer.sites();
  run.parameters = trainer.state().specs;
  group.group.results[index] = result_of(found.setup, trainer, run.steps);
}

/// That of the recipe with the batch, planned if it is not yet.
std::size_t group_of(Findings& found, std::size_t recipe, int batch) {
  const auto known = std::ranges::find_if(found.groups, [&](const RunGroup& group) {
    return group.recipe == recipe && group.budget.batch == batch;
  });
  if (known != found.groups.end()) return static_cast<std::size_t>(known - found.groups.begin());
  RunGroup group{.recipe = recipe, .budget = with_batch(found.setup.budget(), batch, found.options)};
  group.group.policy = found.recipes[recipe].name;
  group.group.scaler = found.recipes[recipe].scaler;
  group.group.results.resize(static_cast<std::size_t>(found.options.seeds));
  for (int i = 0; i < found.options.seeds; ++i)
    group.runs.push_back({.seed = found.options.training.seed + static_cast<std::uint64_t>(i)});
  found.groups.push_back(std::move(group));
  return found.groups.size() - 1;
}

void plan_runs(Findings& found) {
  const int batch = found.setup.budget().batch;
  for (std::size_t i = 0; i < found.recipes.size(); ++i) group_of(found, i, batch);
  for (std::size_t i = 0; i < found.recipes.size(); ++i) {
    EqualBytes& equal = found.equal_bytes[i];
    if (equal.batch.batch == 0) continue;
    equal.runs = group_of(found, i, equal.batch.batch);
    equal.reference = group_of(found, 0, equal.batch.batch);
  }
}

/// The groups at the batch of the options once more without what rounds in an all-reduce.
void plan_controls(Findings& found) {
  if (!rounds_in_all_reduce(found.options.parallel.choice())) return;
  for (std::size_t recipe = 1; recipe < found.recipes.size(); ++recipe) {
    found.controls.push_back(found.groups[recipe]);
    found.controls.back().is_control = true;
  }
}

std::vector<RunGroup*> all_groups(Findings& found) {
  std::vector<RunGroup*> all;
  for (RunGroup& group : found.groups) all.push_back(&group);
  for (RunGroup& group : found.controls) all.push_back(&group);
  return all;
}

/// What does not fit into memory is said before hours of what does.
void reject_impossible(const Findings& found, std::size_t runs, int threads) {
  const SideBySide bodies(runs_at_one_time(runs, threads));
  for (const RunGroup& group : found.groups) trainer_of(found, group, found.options.training.seed);
}

/// Finds for each recipe its formats and the batch that fits.
void look_at_recipes(Findings& found, int threads) {
  found.operations.resize(found.recipes.size());
  found.equal_bytes.resize(found.recipes.size());
  const sim::DataParallel parallel = found.options.parallel.choice();
  const auto ranks = static_cast<int>(parallel.ranks);
  found.budget_bytes =
      measured_bytes(found.setup, found.recipes.front(), found.setup.budget().batch, parallel);
  parallel_for_each(found.recipes.size(), threads, [&](std::size_t i) {
    const Recipe& recipe = found.recipes[i];
    found.operations[i] = operation_uses(found.setup, recipe, found.options.training.seed);
    BatchBytes& largest = found.equal_bytes[i].batch;
    largest = largest_batch(found.budget_bytes, largest_possible_batch / ranks, [&](int of_a_rank) {
      return measured_bytes(found.setup, recipe, of_a_rank * ranks, parallel);
    });
    largest.batch *= ranks;
  });
}

}  // namespace

Estimate Findings::difference(const SeedGroup& group, const SeedGroup& other) const {
  return estimate_difference(other.values(quality()), group.values(quality()));
}

std::vector<AllReduceCost> Findings::all_reduce_costs() const {
  std::vector<AllReduceCost> costs;
  for (const RunGroup& control : controls)
    costs.push_back({recipes[control.recipe].name, at_default(control.recipe), control.group});
  return costs;
}

std::string Findings::setting() const {
  return fmt::format(
      "{}; {}, {}, twin every {} steps.", setup.description({.parallel = options.parallel.choice()}),
      counted(setup.steps(), "step"), seeds_text(options.training.seed, options.seeds), options.twin_every);
}

std::string Findings::equal_bytes_rule() const {
  return fmt::format("for {}, the learning rate {}",
                     options.equal_steps ? "as many steps" : "as many examples",
                     options.keep_learning_rate ? "kept" : "in proportion");
}

TrainingBudget with_batch(const TrainingBudget& given, int batch, const Options& options) {
  const double ratio = static_cast<double>(batch) / given.batch;
  TrainingBudget budget = given;
  budget.batch = batch;
  if (!options.equal_steps) budget.steps = std::max(1, static_cast<int>(std::lround(given.steps / ratio)));
  budget.schedule_stretch = static_cast<double>(budget.steps) / given.steps;
  if (!options.keep_learning_rate) budget.learning_rate = given.learning_rate * ratio;
  return budget;
}

double earliest_nonfinite_step(const SeedGroup& group) {
  double earliest = 0;
  for (const double step : group.values("first_nonfinite_step")) {
    if (step > 0 && (earliest == 0 || step < earliest)) earliest = step;
  }
  return earliest;
}

std::vector<InstrumentedRun> instrumented(const Findings& found, std::span<const RunGroup> groups) {
  std::vector<InstrumentedRun> runs;
  for (const RunGroup& group : groups) {
    for (const TrainingRun& run : group.runs) {
      runs.push_back({.strategy = found.recipes[group.recipe].name,
                      .seed = run.seed,
                      .steps = run.steps,
                      .sites = run.sites,
                      .parameters = run.parameters});
    }
  }
  return runs;
}

Findings measure(const TrainingSetup& setup, const Options& options, Run& run) {
  Findings found{.setup = setup, .options = options, .recipes = parse_recipes(options.recipes)};
  look_at_recipes(found, run.threads());
  plan_runs(found);
  plan_controls(found);
  const std::vector<RunGroup*> groups = all_groups(found);
  const auto seeds = static_cast<std::size_t>(options.seeds);
  reject_impossible(found, groups.size() * seeds, run.threads());
  std::size_t steps = 0;
  for (const RunGroup* group : groups) steps += seeds * static_cast<std::size_t>(group->budget.steps);
  Progress progress = run.progress("training", steps);
  parallel_for_each(groups.size() * seeds, run.threads(),
                    [&](std::size_t i) { train(found, *groups[i / seeds], i % seeds, progress); });
  return found;
}

}  // namespace experiments::opt_levels
