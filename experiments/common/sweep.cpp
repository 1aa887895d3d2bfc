#include "experiments/common/sweep.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>

#include "experiments/common/instruments.h"
#include "experiments/common/interrupt.h"
#include "sim/record.h"
#include "sim/statistics/log2.h"

namespace experiments {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

constexpr const char* abort_key = "abort_reason";

double share(std::uint64_t part, std::uint64_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

/// Sums over the steps of a run.
struct Totals {
  double steps = 0;
  double skipped = 0;
  double updates = 0;
  double swallowed = 0;
  double measured = 0;  ///< applied steps that were compared with their twin; the sums below are over these
  double fraction_flushed = 0;
  double norm_share_flushed = 0;
  double relative_error = 0;

  static void visit(auto& self, auto&& field) {
    field("steps", self.steps);
    field("skipped", self.skipped);
    field("updates", self.updates);
    field("swallowed", self.swallowed);
    field("measured", self.measured);
    field("fraction_flushed", self.fraction_flushed);
    field("norm_share_flushed", self.norm_share_flushed);
    field("relative_error", self.relative_error);
  }

  void add(const sim::StepRecord& step) {
    ++steps;
    skipped += step.skipped();
    updates += static_cast<double>(step.updates.updates);
    swallowed += static_cast<double>(step.updates.swallowed);
    if (step.twin.empty() || step.skipped()) return;
    const sim::TwinComparison twin = sim::total_of(step.twin);
    ++measured;
    fraction_flushed += twin.fraction_flushed();
    norm_share_flushed += twin.norm_share_flushed();
    relative_error += twin.relative_error();
  }
};

/// Those of the losses after the first, "8 16".
std::string further_scales_of(const sim::StepRecord& step) {
  std::vector<double> log2_scales;
  for (const float scale : step.further_scales) log2_scales.push_back(sim::log2_of(scale));
  return fmt::format("{}", fmt::join(log2_scales, " "));
}

/// A row of steps.csv, with its line end. What a step has not is NaN or empty.
std::string row_of(const sim::StepRecord& step, const sim::Clipping& clipping) {
  constexpr double undefined = std::numeric_limits<double>::quiet_NaN();
  const bool measured = !step.twin.empty();
  const sim::TwinComparison twin = sim::total_of(step.twin);
  const bool clipped = clipping.max_norm.has_value() && !step.skipped();
  const auto if_clipped = [&](double value) { return clipped ? value : undefined; };
  const auto if_measured = [&](double value) { return measured ? value : undefined; };
  std::vector<sim::Value> cells{step.step,
                                step.loss,
                                sim::log2_of(step.scale),
                                further_scales_of(step),
                                sim::name_of(step.decision),
                                step.learning_rate,
                                if_clipped(step.clipping.norm.norm),
                                if_clipped(step.clipping.norm.coefficient),
                                step.clipping.clipped_values,
                                share(step.updates.swallowed, step.updates.updates),
                                if_measured(twin.fraction_flushed()),
                                if_measured(twin.norm_share_flushed()),
                                if_measured(twin.fraction_overflow()),
                                if_measured(twin.relative_error()),
                                if_measured(twin.cosine())};
  if (step.skip) {
    const sim::SkipRecord& skip = *step.skip;
    cells.insert(cells.end(), {sim::name_of(skip.place), skip.operation, skip.layer, skip.consumer,
                               skip.element, skip.value, skip.twin_exponent(), int{skip.twin_finite}});
  }
  std::string row;
  for (std::size_t i = 0; i < step_columns().size(); ++i) {
    if (i > 0) row += ',';
    if (i < cells.size()) row += cells[i].text();
  }
  return row + '\n';
}

/// A run while it is trained.
struct Training {
  sim::Trainer trainer;
  Totals totals = {};
  std::string rows = {};
  sim::NamedValues earlier_peaks = {};  ///< of the memory, before the run was resumed
  std::string abort_reason = {};

  /// Over the whole run.
  sim::NamedValues peaks() const {
    sim::NamedValues peaks;
    for (const auto& [key, bytes] : peak_tensor_bytes(trainer.memory()))
      peaks.emplace_back(key, static_cast<double>(bytes));
    for (std::size_t i = 0; i < earlier_peaks.size(); ++i)
      peaks[i].second = std::max(peaks[i].second, earlier_peaks[i].second);
    return peaks;
  }
};

sim::Checkpoint checkpoint_of(Training& training, const CellRun& plan) {
  sim::Checkpoint checkpoint{.run = plan.identity,
                             .trainer = training.trainer.save(),
                             .totals = training.peaks(),
                             .rows = training.rows};
  Totals::visit(training.totals,
                [&](const char* name, double value) { checkpoint.totals.emplace_back(name, value); });
  return checkpoint;
}

void resume(Training& training, const CellRun& plan, Run& run) {
  const auto warn = [&run](const std::string& problem) { run.warn(problem); };
  std::optional<sim::Checkpoint> saved =
      sim::CheckpointDirectory(plan.cell.directory).latest(plan.identity, warn);
  if (!saved) return;
  training.trainer.restore(saved->trainer);
  training.rows = std::move(saved->rows);
  std::size_t next = training.peaks().size();
  Totals::visit(training.totals,
                [&](const char*, double& value) { value = saved->totals.at(next++).second; });
  saved->totals.resize(training.peaks().size());
  training.earlier_peaks = std::move(saved->totals);
}

void train(Training& training, const CellRun& plan, Progress& progress) {
  const sim::CheckpointDirectory checkpoints(plan.cell.directory);
  const auto steps = static_cast<std::uint64_t>(plan.setup.steps());
  const auto every = static_cast<std::uint64_t>(plan.checkpoint_every);
  while (training.trainer.steps_done() < steps) {
    const sim::StepRecord step = training.trainer.step();
    training.totals.add(step);
    training.rows += row_of(step, plan.choice.clipping);
    if (step.decision == sim::Decision::abort) {
      training.abort_reason = training.trainer.abort_reason();
      progress.tick(1 + steps - training.trainer.steps_done());
      return;
    }
    if (every != 0 && training.trainer.steps_done() % every == 0)
      checkpoints.write(checkpoint_of(training, plan));
    progress.tick();
  }
}

void write_results(sim::RunRecord& record, const Training& training, const CellRun& plan) {
  const sim::Evaluation evaluation =
      sim::evaluate(plan.setup.model(), plan.setup.dataset(), training.trainer.state(), plan.choice.threads);
  const Totals& totals = training.totals;
  sim::write_file(record.staging() / "steps.csv",
                  fmt::format("{}\n{}", fmt::join(step_columns(), ","), training.rows));
  record.summary("final_loss", evaluation.loss);
  if (plan.setup.model().is_classifier()) record.summary("final_accuracy", evaluation.accuracy);
  record.summary("steps", totals.steps);
  record.summary("skipped_steps", totals.skipped);
  record.summary("final_scale_log2", sim::log2_of(training.trainer.scale()));
  record.summary("fraction_swallowed", totals.updates == 0 ? 0 : totals.swallowed / totals.updates);
  if (plan.choice.twin_every != 0) {
    const auto mean = [&](double sum) { return sum / totals.measured; };
    record.summary("mean_fraction_flushed", mean(totals.fraction_flushed));
    record.summary("mean_norm_share_flushed", mean(totals.norm_share_flushed));
    record.summary("mean_relative_error", mean(totals.relative_error));
  }
  for (const auto& [key, bytes] : training.peaks()) record.summary(key, bytes);
  record.summary(abort_key, training.abort_reason);
  record.verdict(fmt::format("{}, policy {}, scaler {}, seed {}: {}.", plan.setup.description(),
                             plan.choice.policy, plan.choice.scaler, plan.choice.seed,
                             plan.setup.quality(evaluation)));
  for (const auto& [kind, options] : {std::pair("optimizer", training.trainer.optimizer().options()),
                                      std::pair("scaler", training.trainer.scaler_options())}) {
    for (const auto& [option, value] : options) record.setting(fmt::format("{}.{}", kind, option), value);
  }
}

ordered_json options_of(const sim::RunIdentity& identity) {
  ordered_json options = ordered_json::object();
  for (const auto& [name, value] : identity) options[name] = value;
  return options;
}

/// A JSON file; null where there is none.
ordered_json read_json(const fs::path& file) {
  std::ifstream stream(file);
  ordered_json content = ordered_json::parse(stream, nullptr, /*allow_exceptions=*/false);
  return content.is_discarded() ? ordered_json() : content;
}

/// The manifest comes last into a directory, and is the first to leave it.
bool is_finished(const CellRun& plan) {
  const ordered_json manifest = read_json(plan.cell.directory / "manifest.json");
  return manifest.is_object() && manifest.value("options", ordered_json()) == options_of(plan.identity) &&
         fs::exists(plan.cell.directory / "summary.json") && fs::exists(plan.cell.directory / "steps.csv");
}

}  // namespace

std::string in_file_name(std::string spec) {
  std::ranges::replace(spec, ':', '+');
  return spec;
}

std::vector<Cell> cells_of(const Grid& grid) {
  std::vector<Cell> cells;
  for (const std::string& model : grid.models) {
    for (const std::string& policy : grid.policies) {
      std::vector<std::string> scalers = grid.scalers;
      if (scalers.empty()) scalers.push_back(sim::make_precision_policy(policy).scaler_spec());
      for (const std::string& scaler : scalers) {
        const std::string name =
            fmt::format("{}-{}-{}", in_file_name(model), in_file_name(policy), in_file_name(scaler));
        for (int i = 0; i < grid.seeds; ++i) {
          const std::uint64_t seed = grid.first_seed + static_cast<std::uint64_t>(i);
          cells.push_back({model, policy, scaler, seed, grid.directory / fmt::format("{}-{}", name, seed)});
        }
      }
    }
  }
  return cells;
}

void run_cell(const CellRun& plan, Run& run, Progress& progress) {
  const sim::CheckpointDirectory checkpoints(plan.cell.directory);
  if (is_finished(plan)) {
    checkpoints.clear();
    return progress.tick(static_cast<std::size_t>(plan.setup.steps()));
  }
  Training training{.trainer = plan.setup.trainer(plan.choice)};
  resume(training, plan, run);
  const std::uint64_t resumed_at = training.trainer.steps_done();
  sim::RunRecord record(plan.cell.directory);
  progress.tick(resumed_at);
  train(training, plan, progress);
  write_results(record, training, plan);
  record.setting("resumed_at_step", resumed_at);
  throw_if_interrupted();
  record.commit({{"experiment", "training"},
                 {"question", "One run of a sweep."},
                 {"options", options_of(plan.identity)},
                 {"seed", plan.choice.seed},
                 {"threads", plan.choice.threads}});
  checkpoints.clear();
}

bool CellResult::has(std::string_view key) const {
  return std::ranges::find(values, key, &std::pair<std::string, double>::first) != values.end();
}

double CellResult::value(std::string_view key) const {
  const auto found = std::ranges::find(values, key, &std::pair<std::string, double>::first);
  if (found == values.end()) throw std::out_of_range(fmt::format("a cell has no '{}'", key));
  return found->second;
}

CellResult read_cell(const fs::path& directory) {
  CellResult result;
  const ordered_json summary = read_json(directory / "summary.json");
  for (const auto& [key, value] : summary.items()) {
    if (key == abort_key) {
      result.abort_reason = value;
    } else if (value.is_string()) {  // nan, inf or -inf
      result.values.emplace_back(key, std::strtod(value.get_ref<const std::string&>().c_str(), nullptr));
    } else {
      result.values.emplace_back(key, value);
    }
  }
  return result;
}

const std::vector<std::string>& step_columns() {
  static const std::vector<std::string> columns{"step",
                                                "loss",
                                                "scale_log2",
                                                "further_scales_log2",
                                                "decision",
                                                "learning_rate",
                                                "gradient_norm",
                                                "clip_coefficient",
                                                "clipped_values",
                                                "fraction_swallowed",
                                                "fraction_flushed",
                                                "norm_share_flushed",
                                                "fraction_overflow",
                                                "relative_error",
                                                "cosine",
                                                "skip_place",
                                                "skip_operation",
                                                "skip_layer",
                                                "skip_consumer",
                                                "skip_element",
                                                "skip_value",
                                                "skip_twin_exponent",
                                                "skip_twin_finite"};
  return columns;
}

}  // namespace experiments
