#include "experiments/training/sweep.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <stdexcept>

#include "experiments/frame/files.h"
#include "experiments/frame/interrupt.h"
#include "experiments/frame/record.h"
#include "experiments/training/cell_tables.h"
#include "experiments/training/counted_gradients.h"
#include "experiments/training/laboratory.h"
#include "experiments/training/memory_need.h"
#include "sim/tensor/log2.h"

namespace experiments {
namespace {

namespace fs = std::filesystem;

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

constexpr const char* former_ranks_entry = "former ranks";

/// Once the run is finished.
void remove_what_it_went_on_from(const fs::path& directory) {
  CheckpointDirectory(directory).clear();
  Journal::remove(directory);
}

/// A run while it is trained.
struct Training {
  sim::Trainer trainer;
  Totals totals{.parameters = std::vector<sim::UpdateCounts>(trainer.state().specs.size())};
  names::NamedValues earlier_peaks;  ///< of the memory, before the run was resumed
  std::string abort_reason;
  std::string former_ranks;  ///< "to step 500 on 4 ranks, ", for each number that it went on from

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
  checkpoint.notes.emplace_back(former_ranks_entry, training.former_ranks);
  return checkpoint;
}

/// What observers of the run write beside its directory's tables.
constexpr std::array kept_folders{"record", "tensors"};

/// So that after a power cut, too, they are as long as the checkpoint says.
void synchronise_kept_folders(const fs::path& directory) {
  for (const char* const kept : kept_folders) {
    if (!fs::exists(directory / kept)) continue;
    for (const auto& entry : fs::recursive_directory_iterator(directory / kept)) synchronise(entry.path());
    synchronise(directory / kept);
  }
}

/// The marks of the files that go with the checkpoint; none where the run begins.
std::vector<FileMark> resume(Training& training, const CellRun& plan, Run& run) {
  const auto warn = [&run](const std::string& problem) { run.warn(problem); };
  std::optional<Checkpoint> saved =
      CheckpointDirectory(plan.cell.directory).latest(plan.identity, warn, plan.with_other_ranks);
  if (plan.ranks) plan.ranks->share(saved ? std::optional(saved->trainer) : std::nullopt);
  if (!saved) return {};
  training.former_ranks = saved->notes.at(skip_kinds.size()).second;
  if (ranks_of(saved->run) != ranks_of(plan.identity)) {
    training.former_ranks +=
        fmt::format("to step {} on {} ranks, ", saved->trainer.steps_done, ranks_of(saved->run));
    run.warn(
        fmt::format("the run goes on from step {} with other ranks; its bits are from there on those of no "
                    "number of ranks alone",
                    saved->trainer.steps_done));
  }
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

sim::StepRecord step_of(sim::Trainer& trainer, Ranks* ranks) {
  return ranks ? ranks->step(trainer) : trainer.step();
}

void save(Training& training, Journal& journal, const CellRun& plan) {
  if (plan.require_claim) plan.require_claim();
  synchronise_kept_folders(plan.cell.directory);
  CheckpointDirectory(plan.cell.directory).write(checkpoint_of(training, journal, plan));
}

/// What this process is asked for.
Interruption interruption_here() {
  if (!is_interrupted()) return Interruption::none;
  return is_checkpoint_asked() ? Interruption::checkpoint : Interruption::end;
}

/// What follows a step, the same on all ranks.
struct AfterStep {
  bool saves;  ///< where it keeps files
  bool is_interrupted;
};

AfterStep after_step(const sim::Trainer& trainer, const sim::StepRecord& step, const CellRun& plan) {
  const std::uint64_t done = trainer.steps_done(), every = static_cast<std::uint64_t>(plan.checkpoint_every);
  const bool is_aborted = step.decision == sim::Decision::abort;
  const bool is_last = is_aborted || done == static_cast<std::uint64_t>(plan.setup.steps());
  const bool is_due = every != 0 && done % every == 0;
  Interruption interruption = interruption_here();
  if (plan.ranks) interruption = plan.ranks->after_step(trainer, interruption, is_due || is_last);
  return {.saves = !is_aborted && (is_due || interruption == Interruption::checkpoint),
          .is_interrupted = interruption != Interruption::none};
}

/// An interruption ends a run after a step, and all ranks after the same one.
void tick(Progress& progress, std::size_t steps) {
  try {
    progress.tick(steps);
  } catch (const Interrupted&) {
  }
}

void train(Training& training, Journal& journal, const CellRun& plan, Progress& progress) {
  const auto steps = static_cast<std::uint64_t>(plan.setup.steps());
  while (training.trainer.steps_done() < steps) {
    const sim::StepRecord step =
        while_doing(fmt::format("training {} under {}, at step {} of {}", plan.cell.model, plan.cell.policy,
                                training.trainer.steps_done() + 1, steps),
                    [&] { return step_of(training.trainer, plan.ranks); });
    training.totals.add(step);
    journal.add(step, plan.choice.clipping);
    const AfterStep next = after_step(training.trainer, step, plan);
    if (next.saves) save(training, journal, plan);
    if (next.is_interrupted) throw Interrupted();
    if (step.decision == sim::Decision::abort) {
      training.abort_reason = training.trainer.abort_reason();
      return tick(progress, 1 + steps - training.trainer.steps_done());
    }
    tick(progress, 1);
  }
}

/// "to step 500 on 4 ranks, then on 3"; empty where it were as many throughout.
std::string all_ranks_of(const Training& training, const CellRun& plan) {
  if (training.former_ranks.empty()) return {};
  return fmt::format("{}then on {}", training.former_ranks, ranks_of(plan.identity));
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
  const std::string former_ranks = all_ranks_of(training, plan);
  if (!former_ranks.empty()) record.summary(std::string(former_ranks_key), former_ranks);
  for (std::size_t i = 0; i < skip_kinds.size(); ++i)
    record.summary(first_key(skip_kinds[i]), totals.skips.kinds[i].first);
  record.verdict(fmt::format("{}, policy {}, scaler {}, seed {}{}: {}.", plan.setup.description(plan.choice),
                             plan.choice.policy, plan.choice.scaler, plan.choice.seed,
                             former_ranks.empty() ? "" : ", " + former_ranks,
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

/// The identity that a finished run's manifest has; empty of what is none.
RunIdentity identity_in(const fs::path& directory) {
  RunIdentity identity;
  const Json manifest = read_json(directory / "manifest.json");
  const Json options = manifest.is_object() ? manifest.value("options") : Json();
  if (!options.is_object()) return identity;
  for (const auto& [name, value] : options.members())
    identity.emplace_back(name, value.is_string() ? value.string() : "");
  return identity;
}

/// That of the run, or where it may go on with other ranks that of one which has.
RunIdentity expected_identity(const CellRun& plan) {
  RunIdentity expected = plan.identity;
  if (!plan.with_other_ranks) return expected;
  for (const auto& [name, value] : identity_in(plan.cell.directory)) {
    if (name == former_ranks_entry) expected.emplace_back(name, value);
  }
  return expected;
}

bool is_finished(const CellRun& plan, Run& run) {
  const CellCheck check = check_cell(plan.cell.directory, expected_identity(plan));
  if (check.state == CellCheck::State::damaged) {
    run.warn(fmt::format("file '{}' is missing or not what its run wrote; the run is made again",
                         (plan.cell.directory / check.what).string()));
  }
  if (check.state == CellCheck::State::of_another_run && !plan.replaces_others)
    throw std::invalid_argument(
        fmt::format("cell '{}' is of another run: {}; allowed: the same options, another directory, or to "
                    "remove the cell",
                    plan.cell.directory.string(), check.what));
  return check.state == CellCheck::State::finished;
}

/// Puts all of a trained run into its directory.
void finish(RunRecord& record, const Training& training, Journal& journal, const CellRun& plan,
            std::uint64_t resumed_at) {
  journal.copy_to(record.staging());
  for (const char* const kept : kept_folders) {
    if (fs::exists(plan.cell.directory / kept))
      fs::copy(plan.cell.directory / kept, record.staging() / kept, fs::copy_options::recursive);
  }
  write_parameters(record, plan.cell, training.trainer.state().specs, training.totals.parameters);
  write_results(record, training, plan);
  record.setting("resumed_at_step", resumed_at);
  throw_if_interrupted();
  RunIdentity identity = plan.identity;
  if (const std::string ranks = all_ranks_of(training, plan); !ranks.empty())
    identity.emplace_back(former_ranks_entry, ranks);
  Json settings = Json::object({{"experiment", "training"},
                                {"question", "One run of a sweep."},
                                {"options", options_of(identity)},
                                {"seed", plan.choice.seed},
                                {"threads", plan.choice.threads}});
  settings.update(arithmetic_of_this_process());
  if (plan.require_claim) plan.require_claim();
  record.commit(settings);
}

/// What ranks other than the first make of a cell that is not finished.
void train_along(const CellRun& plan) {
  sim::Trainer trainer = plan.setup.trainer(plan.choice);
  if (const auto saved = plan.ranks->share(std::optional<sim::TrainerState>())) trainer.restore(*saved);
  while (trainer.steps_done() < static_cast<std::uint64_t>(plan.setup.steps())) {
    const sim::StepRecord step = plan.ranks->step(trainer);
    if (after_step(trainer, step, plan).is_interrupted) throw Interrupted();
    if (step.decision == sim::Decision::abort) return;
  }
}

void follow(const CellRun& plan) {
  if (!plan.ranks->share(false)) train_along(plan);
  plan.ranks->set_trained();
}

}  // namespace

/// The manifest comes last into a directory, and is the first to leave it.
CellCheck check_cell(const fs::path& directory, const RunIdentity& identity) {
  using enum CellCheck::State;
  if (!fs::exists(directory / "manifest.json")) return {unfinished};
  const bool has_manifest = read_json(directory / "manifest.json").is_object();
  if (const auto difference = first_difference(identity, identity_in(directory)); has_manifest && difference)
    return {of_another_run, fmt::format("its {} is {}, and here {}", difference->name, difference->second,
                                        difference->first)};
  const std::vector<std::string> files = damaged_files(directory);
  if (!files.empty()) return {damaged, files.front()};
  return {finished};
}

std::vector<std::string> files_of_cell(const fs::path& directory) {
  const Json checksums = checksums_of_cell(directory);
  std::vector<std::string> files;
  for (const auto& [file, checksum] : checksums.members()) files.push_back(file);
  files.emplace_back("manifest.json");
  return files;
}

Json checksums_of_cell(const fs::path& directory) {
  return read_json(directory / "manifest.json").at("checksums");
}

void run_cell(const CellRun& plan, Run& run, Progress& progress) {
  if (plan.ranks && !plan.ranks->is_first()) return follow(plan);
  const bool was_finished = is_finished(plan, run);
  if (plan.ranks) plan.ranks->share(was_finished);
  if (was_finished) {
    if (plan.ranks) plan.ranks->set_trained();
    remove_what_it_went_on_from(plan.cell.directory);
    return progress.tick(static_cast<std::size_t>(plan.setup.steps()));
  }
  RunRecord record(plan.cell.directory);
  Training training{.trainer = plan.setup.trainer(plan.choice)};
  const std::vector<FileMark> marks = resume(training, plan, run);
  const std::uint64_t resumed_at = training.trainer.steps_done();
  Journal journal(plan.cell, marks);
  if (resumed_at == 0) {  // those of another run that is replaced
    for (const char* const kept : kept_folders) fs::remove_all(plan.cell.directory / kept);
  }
  tick(progress, resumed_at);
  train(training, journal, plan, progress);
  if (plan.ranks) plan.ranks->set_trained();
  finish(record, training, journal, plan, resumed_at);
  remove_what_it_went_on_from(plan.cell.directory);
}

}  // namespace experiments
