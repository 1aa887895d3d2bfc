#include "experiments/training/sweep.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>

#include "experiments/frame/files.h"
#include "experiments/frame/interrupt.h"
#include "experiments/frame/record.h"
#include "experiments/training/counted_gradients.h"
#include "experiments/training/laboratory.h"
#include "experiments/training/memory_need.h"
#include "experiments/training/step_tables.h"
#include "sim/tensor/log2.h"

namespace experiments {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view abort_key = "abort_reason";

/// The summary's key of what the first step of a kind was skipped for.
std::string first_key(const SkipKind& kind) {
  return fmt::format("first_{}", kind.key);
}

/// What is added up over the steps of a run.
struct Totals {
  double steps = 0;
  double skipped = 0;
  sim::UpdateCounts updates = {};
  double scaler_twins = 0;
  TwinSums twins = {};
  std::vector<sim::UpdateCounts> parameters;
  SkipTally skips = {};

  /// All its numbers.
  static void visit(auto& self, auto&& field) {
    field("steps", self.steps);
    field("skipped", self.skipped);
    field("updates", self.updates.updates);
    field("swallowed", self.updates.swallowed);
    field("scaler_twins", self.scaler_twins);
    field("measured", self.twins.steps);
    field("fraction_flushed", self.twins.fraction_flushed);
    field("norm_share_flushed", self.twins.norm_share_flushed);
    field("relative_error", self.twins.relative_error);
    for (auto& parameter : self.parameters) {
      field("parameter_updates", parameter.updates);
      field("parameter_swallowed", parameter.swallowed);
    }
    for (auto& kind : self.skips.kinds) field("skips", kind.count);
  }

  void add(const sim::StepRecord& step) {
    ++steps;
    skipped += step.skipped();
    updates += step.updates;
    scaler_twins += step.scaler_twins;
    twins.add(step);
    add_updates(parameters, step);
    skips.add(step);
  }
};

/// Those of the losses after the first, "8 16".
std::string further_scales_of(const sim::StepRecord& step) {
  std::vector<double> log2_scales;
  for (const float scale : step.further_scales) log2_scales.push_back(sim::log2_of(scale));
  return fmt::format("{}", fmt::join(log2_scales, " "));
}

/// A CSV line of numbers and names, which need no quotes.
std::string line_of(const std::vector<Value>& cells) {
  std::vector<std::string> texts;
  for (const Value& cell : cells) texts.push_back(cell.text());
  return fmt::format("{}\n", fmt::join(texts, ","));
}

std::string line_of(const std::vector<std::string>& header) {
  return fmt::format("{}\n", fmt::join(header, ","));
}

struct CellStep {
  const Cell& cell;
  const sim::StepRecord& step;
  const sim::Clipping& clipping;
  sim::TwinComparison twin = sim::total_of(step.twin);
};

constexpr double undefined = std::numeric_limits<double>::quiet_NaN();

template <class Quantity>
auto if_clipped(Quantity quantity) {
  return [quantity](const CellStep& r) -> double {
    const bool clipped = r.clipping.max_norm.has_value() && !r.step.skipped();
    return clipped ? r.step.clipping.norm.*quantity : undefined;
  };
}

template <class Quantity>
auto if_measured(Quantity quantity) {
  return [quantity](const CellStep& r) { return r.step.twin.empty() ? undefined : (r.twin.*quantity)(); };
}

/// Empty of a step with an update.
template <class Quantity>
auto if_skipped(Quantity quantity) {
  return [quantity](const CellStep& r) { return r.step.skip ? Value(quantity(*r.step.skip)) : Value(""); };
}

const TableOf<CellStep> cell_steps_table{
    .name = "steps",
    .rows = "each step",
    .columns = columns_of_cell<CellStep>(
        {{"step", "steps", [](auto& r) { return r.step.step; }},
         {"loss", "1", [](auto& r) { return r.step.loss; }},
         {"scale_log2", "log2", [](auto& r) { return sim::log2_of(r.step.scale); }},
         {"further_scales_log2", "log2", [](auto& r) { return further_scales_of(r.step); }},
         {"decision", "", [](auto& r) { return sim::name_of(r.step.decision); }},
         {"learning_rate", "1", [](auto& r) { return r.step.learning_rate; }},
         {"gradient_norm", "1", if_clipped(&sim::NormClipping::norm)},
         {"clip_coefficient", "1", if_clipped(&sim::NormClipping::coefficient)},
         {"clipped_values", "values", [](auto& r) { return r.step.clipping.clipped_values; }},
         {"fraction_swallowed", "1", [](auto& r) { return fraction_swallowed(r.step.updates); }},
         {"fraction_flushed", "1", if_measured(&sim::TwinComparison::fraction_flushed)},
         {"norm_share_flushed", "1", if_measured(&sim::TwinComparison::norm_share_flushed)},
         {"fraction_overflow", "1", if_measured(&sim::TwinComparison::fraction_overflow)},
         {"relative_error", "1", if_measured(&sim::TwinComparison::relative_error)},
         {"cosine", "1", if_measured(&sim::TwinComparison::cosine)},
         {"skip_place", "", if_skipped([](const sim::SkipRecord& skip) { return sim::name_of(skip.place); })},
         {"skip_operation", "", if_skipped([](const sim::SkipRecord& skip) { return skip.operation; })},
         {"skip_layer", "", if_skipped([](const sim::SkipRecord& skip) { return skip.layer; })},
         {"skip_consumer", "", if_skipped([](const sim::SkipRecord& skip) { return skip.consumer; })},
         {"skip_element", "", if_skipped([](const sim::SkipRecord& skip) { return skip.element; })},
         {"skip_value", "1", if_skipped([](const sim::SkipRecord& skip) { return skip.value; })},
         {"skip_twin_exponent", "log2", if_skipped([](const sim::SkipRecord& skip) {
            return skip.has_twin_value() ? Value(skip.twin_exponent()) : Value("");
          })},
         {"skip_twin_finite", "0 or 1",
          if_skipped([](const sim::SkipRecord& skip) { return int{skip.twin_finite}; })}})};

const TableOf<CellStep> cell_skips_table{
    .name = "skips",
    .rows = "each step without an update",
    .columns = columns_of_cell(columns_of_part<CellStep, sim::StepRecord>(
        skip_columns(), [](const CellStep& r) -> const sim::StepRecord& { return r.step; }))};

struct CellParameter {
  const Cell& cell;
  std::string name;
  sim::UpdateCounts counts;
};

const TableOf<CellParameter> cell_parameters_table{
    .name = "parameters",
    .rows = "each parameter",
    .columns = columns_of_cell<CellParameter>(
        {{"parameter", "", &CellParameter::name},
         {"updates", "updates", [](auto& r) { return r.counts.updates; }},
         {"swallowed", "updates", [](auto& r) { return r.counts.swallowed; }}})};

constexpr const char* steps_file = "steps.partial.csv";
constexpr const char* skips_file = "skips.partial.csv";

/// What an unfinished run has written down of its steps.
class Journal {
 public:
  /// Goes on from the marks of a checkpoint, or without them begins.
  Journal(const Cell& cell, const std::vector<FileMark>& marks)
      : cell_(cell),
        steps_(begin_or_go_on(cell.directory / steps_file, marks, cell_steps_table)),
        skips_(begin_or_go_on(cell.directory / skips_file, marks, cell_skips_table)) {}

  void add(const sim::StepRecord& step, const sim::Clipping& clipping) {
    const CellStep row{cell_, step, clipping};
    steps_->append(line_of(cell_steps_table.cells(row)));
    if (step.skip) skips_->append(line_of(cell_skips_table.cells(row)));
  }

  std::vector<FileMark> marks() { return {steps_->mark(), skips_->mark()}; }

  void copy_to(const fs::path& directory) {
    steps_->copy_to(directory / "steps.csv");
    skips_->copy_to(directory / "skips.csv");
  }

 private:
  static std::unique_ptr<GrowingFile> begin_or_go_on(const fs::path& file, const std::vector<FileMark>& marks,
                                                     const TableOf<CellStep>& table) {
    const auto mark = std::ranges::find(marks, file.filename().string(), &FileMark::name);
    if (mark != marks.end()) return std::make_unique<GrowingFile>(file, *mark);
    auto begun = std::make_unique<GrowingFile>(file);
    begun->append(line_of(table.header()));
    return begun;
  }

  const Cell& cell_;
  std::unique_ptr<GrowingFile> steps_;
  std::unique_ptr<GrowingFile> skips_;
};

/// Once the run is finished.
void remove_what_it_went_on_from(const fs::path& directory) {
  CheckpointDirectory(directory).clear();
  fs::remove(directory / steps_file);
  fs::remove(directory / skips_file);
}

/// A run while it is trained.
struct Training {
  sim::Trainer trainer;
  Totals totals{.parameters = std::vector<sim::UpdateCounts>(trainer.state().specs.size())};
  names::NamedValues earlier_peaks;  ///< of the memory, before the run was resumed
  std::string abort_reason;

  /// Over the whole run.
  names::NamedValues peaks() const {
    names::NamedValues peaks;
    for (const auto& [key, bytes] : peak_tensor_bytes(trainer.memory()))
      peaks.emplace_back(key, static_cast<double>(bytes));
    for (std::size_t i = 0; i < earlier_peaks.size(); ++i)
      peaks[i].second = std::max(peaks[i].second, earlier_peaks[i].second);
    return peaks;
  }
};

Checkpoint checkpoint_of(Training& training, Journal& journal, const CellRun& plan) {
  Checkpoint checkpoint{.run = plan.identity,
                        .trainer = training.trainer.save(),
                        .totals = training.peaks(),
                        .files = journal.marks()};
  Totals::visit(training.totals, [&](const char* name, auto value) {
    checkpoint.totals.emplace_back(name, static_cast<double>(value));
  });
  for (std::size_t i = 0; i < skip_kinds.size(); ++i)
    checkpoint.notes.emplace_back(first_key(skip_kinds[i]), training.totals.skips.kinds[i].first);
  return checkpoint;
}

/// The marks of the files that go with the checkpoint; none where the run begins.
std::vector<FileMark> resume(Training& training, const CellRun& plan, Run& run) {
  const auto warn = [&run](const std::string& problem) { run.warn(problem); };
  std::optional<Checkpoint> saved = CheckpointDirectory(plan.cell.directory).latest(plan.identity, warn);
  if (!saved) return {};
  training.trainer.restore(saved->trainer);
  std::size_t next = training.peaks().size();
  Totals::visit(training.totals, [&]<class Number>(const char*, Number& value) {
    value = static_cast<Number>(saved->totals.at(next++).second);
  });
  for (std::size_t i = 0; i < skip_kinds.size(); ++i)
    training.totals.skips.kinds[i].first = saved->notes.at(i).second;
  saved->totals.resize(training.peaks().size());
  training.earlier_peaks = std::move(saved->totals);
  return std::move(saved->files);
}

void train(Training& training, Journal& journal, const CellRun& plan, Progress& progress) {
  const CheckpointDirectory checkpoints(plan.cell.directory);
  const auto steps = static_cast<std::uint64_t>(plan.setup.steps());
  const auto every = static_cast<std::uint64_t>(plan.checkpoint_every);
  while (training.trainer.steps_done() < steps) {
    const sim::StepRecord step =
        while_doing(fmt::format("training {} under {}, at step {} of {}", plan.cell.model, plan.cell.policy,
                                training.trainer.steps_done() + 1, steps),
                    [&] { return training.trainer.step(); });
    training.totals.add(step);
    journal.add(step, plan.choice.clipping);
    if (step.decision == sim::Decision::abort) {
      training.abort_reason = training.trainer.abort_reason();
      progress.tick(1 + steps - training.trainer.steps_done());
      return;
    }
    if (every != 0 && training.trainer.steps_done() % every == 0)
      checkpoints.write(checkpoint_of(training, journal, plan));
    progress.tick();
  }
}

void write_parameters(RunRecord& record, const Training& training, const Cell& cell) {
  const auto add = cell_parameters_table.start(record);
  for (std::size_t i = 0; i < training.totals.parameters.size(); ++i)
    add({cell, training.trainer.state().specs[i].name, training.totals.parameters[i]});
}

void write_results(RunRecord& record, const Training& training, const CellRun& plan) {
  const sim::Evaluation evaluation =
      while_doing(fmt::format("evaluating {} after its last step", plan.cell.model), [&] {
        return sim::evaluate(plan.setup.model(), plan.setup.dataset(), training.trainer.state(),
                             plan.choice.threads);
      });
  const Totals& totals = training.totals;
  record.summary("final_loss", evaluation.loss);
  if (plan.setup.model().is_classifier()) record.summary("final_accuracy", evaluation.accuracy);
  record.summary("steps", totals.steps);
  record.summary("skipped_steps", totals.skipped);
  for (std::size_t i = 0; i < skip_kinds.size(); ++i)
    record.summary(std::string(skip_kinds[i].key), totals.skips.kinds[i].count);
  record.summary("final_scale_log2", sim::log2_of(training.trainer.scale()));
  record.summary("fraction_swallowed", fraction_swallowed(totals.updates));
  record.summary("scaler_twins", totals.scaler_twins);
  if (plan.choice.twin_every != 0) {
    for (const auto& [key, mean] : totals.twins.means()) record.summary(key, mean);
  }
  for (const auto& [key, bytes] : training.peaks()) record.summary(key, bytes);
  record.summary(std::string(abort_key), training.abort_reason);
  for (std::size_t i = 0; i < skip_kinds.size(); ++i)
    record.summary(first_key(skip_kinds[i]), totals.skips.kinds[i].first);
  record.verdict(fmt::format("{}, policy {}, scaler {}, seed {}: {}.", plan.setup.description(plan.choice),
                             plan.choice.policy, plan.choice.scaler, plan.choice.seed,
                             plan.setup.quality(evaluation)));
  for (const auto& [kind, options] : {std::pair("optimizer", training.trainer.optimizer().options()),
                                      std::pair("scaler", training.trainer.scaler_options())}) {
    for (const auto& [option, value] : options) record.setting(fmt::format("{}.{}", kind, option), value);
  }
}

Json options_of(const RunIdentity& identity) {
  Json options = Json::object();
  for (const auto& [name, value] : identity) options[name] = value;
  return options;
}

/// Null where the file is missing or no JSON.
Json read_json(const fs::path& file) {
  return Json::from_text(contents_of(file).value_or(""));
}

[[noreturn]] void throw_damaged(const fs::path& summary, std::string_view what) {
  throw std::runtime_error(fmt::format("file '{}' {}; remove it, and the same command makes its run again",
                                       summary.string(), what));
}

/// The manifest comes last into a directory, and is the first to leave it.
bool is_finished(const CellRun& plan, Run& run) {
  const fs::path& directory = plan.cell.directory;
  if (!fs::exists(directory / "manifest.json")) return false;
  const Json manifest = read_json(directory / "manifest.json");
  // Another run's cell is replaced without a word, whole or not.
  if (manifest.is_object() && manifest.value("options") != options_of(plan.identity)) return false;
  const std::vector<std::string> damaged = damaged_files(directory);
  if (damaged.empty()) return true;
  run.warn(fmt::format("file '{}' is missing or not what its run wrote; the run is made again",
                       (directory / damaged.front()).string()));
  return false;
}

}  // namespace

Outputs cell_outputs() {
  return outputs_of(cell_steps_table, cell_skips_table, cell_parameters_table);
}

std::string in_file_name(std::string spec) {
  std::ranges::replace(spec, ':', '+');
  return spec;
}

std::vector<Cell> cells_of(const Grid& grid) {
  std::vector<Cell> cells;
  for (const std::string& model : grid.models) {
    for (const std::string& policy : grid.policies) {
      std::vector<std::string> scalers = grid.scalers;
      if (scalers.empty()) scalers.push_back(policy_from_option(policy).scaler_spec());
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
  if (is_finished(plan, run)) {
    remove_what_it_went_on_from(plan.cell.directory);
    return progress.tick(static_cast<std::size_t>(plan.setup.steps()));
  }
  Training training{.trainer = plan.setup.trainer(plan.choice)};
  const std::vector<FileMark> marks = resume(training, plan, run);
  const std::uint64_t resumed_at = training.trainer.steps_done();
  RunRecord record(plan.cell.directory);
  Journal journal(plan.cell, marks);
  progress.tick(resumed_at);
  train(training, journal, plan, progress);
  journal.copy_to(record.staging());
  write_parameters(record, training, plan.cell);
  write_results(record, training, plan);
  record.setting("resumed_at_step", resumed_at);
  throw_if_interrupted();
  Json settings = Json::object({{"experiment", "training"},
                                {"question", "One run of a sweep."},
                                {"options", options_of(plan.identity)},
                                {"seed", plan.choice.seed},
                                {"threads", plan.choice.threads}});
  settings.update(arithmetic_of_this_process());
  record.commit(settings);
  remove_what_it_went_on_from(plan.cell.directory);
}

bool CellResult::has(std::string_view key) const {
  return std::ranges::find(values, key, &std::pair<std::string, double>::first) != values.end();
}

double CellResult::value(std::string_view key) const {
  const auto found = std::ranges::find(values, key, &std::pair<std::string, double>::first);
  if (found == values.end()) throw_damaged(file, fmt::format("has no '{}'", key));
  return found->second;
}

CellResult read_cell(const fs::path& directory) {
  CellResult result{.file = directory / "summary.json"};
  const Json summary = read_json(result.file);
  if (!summary.is_object()) throw_damaged(result.file, "is no summary of a run, or was cut off");
  std::map<std::string, std::string, std::less<>> texts;
  for (const auto& [key, value] : summary.members()) {
    const std::string text = value.is_string() ? value.string() : "";
    if (value.is_number()) {
      result.values.emplace_back(key, value.number());
    } else if (text == "nan" || text == "inf" || text == "-inf") {
      result.values.emplace_back(key, std::strtod(text.c_str(), nullptr));
    } else if (value.is_string()) {
      texts[key] = text;
    } else {
      throw_damaged(result.file, fmt::format("has neither a number nor a text for '{}'", key));
    }
  }
  result.abort_reason = texts[std::string(abort_key)];
  for (std::size_t i = 0; i < skip_kinds.size(); ++i) {
    result.skips.kinds[i] = {.count = static_cast<std::size_t>(result.value(skip_kinds[i].key)),
                             .first = texts[first_key(skip_kinds[i])]};
  }
  return result;
}

}  // namespace experiments
