/// How does a network train under a precision policy and a loss scaler, and is the difference to FP32 more
/// than chance?
///
/// Every run has a directory of its own, goes on from its checkpoints after a kill and ends with the same
/// bytes. A sweep makes the runs of a grid side by side and compares them with FP32 in pairs of the same
/// seed.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>

#include "experiments/frame/build_information.h"
#include "experiments/frame/code_identity.h"
#include "experiments/frame/curve_table.h"
#include "experiments/frame/interrupt.h"
#include "experiments/frame/parallel.h"
#include "experiments/training/all_reduce_cost.h"
#include "experiments/training/comparison.h"
#include "experiments/training/data_parallel_options.h"
#include "experiments/training/laboratory.h"
#include "experiments/training/mpi/job.h"
#include "experiments/training/network.h"
#include "experiments/training/shards.h"
#include "experiments/training/sweep.h"
#include "fp16/formats.h"

namespace {

namespace fs = std::filesystem;
using experiments::Network;
using experiments::Networks;

struct Options {
  experiments::TrainingOptions training{};
  std::vector<std::string> models{"mlp"};
  std::vector<std::string> policies{"amp"};
  std::string accumulation;
  std::vector<std::string> scalers{};
  int seeds = 1;
  bool sweep = false;
  std::string shard;
  bool cells = false;
  bool merge = false;
  std::vector<std::string> merged{};
  int accumulation_steps = 1;
  std::optional<double> clip_norm;
  std::optional<double> clip_value;
  bool clip_before_unscale = false;
  experiments::DataParallelOptions parallel = {};
  int twin_every = 50;
  std::string twin_format = "fp32";
  int checkpoint_every = 100;
};

fp16::Format twin_format_of(const Options& options) {
  if (options.twin_format == "fp32") return fp16::binary32;
  if (options.twin_format == "fp64") return fp16::binary64;
  throw experiments::UsageError(
      fmt::format("--twin-format: '{}' is given; must be fp32 or fp64", options.twin_format));
}

void reject_contradictions_of_jobs(const Options& options) {
  if (!options.sweep && (options.merge || options.cells || !options.shard.empty()))
    throw experiments::UsageError(
        fmt::format("{}: there is one run alone; must come with --sweep",
                    options.merge ? "--merge" : (options.cells ? "--cells" : "--shard")));
  if (options.cells && options.merge)
    throw experiments::UsageError("--cells: is given with --merge; must be one of them");
  if (options.merge && !options.shard.empty())
    throw experiments::UsageError("--shard: is given with --merge; must be one of them");
  if (options.merge && options.merged.empty())
    throw experiments::UsageError(
        "--merge: no folder is given; must be those of the shards: --merge DIR DIR");
  if (!options.merge && !options.merged.empty())
    throw experiments::UsageError(
        fmt::format("'{}' is given; folders must come with --merge", options.merged.front()));
  if (!options.shard.empty()) experiments::parse_shard(options.shard);
}

void reject_contradictions(const Options& options) {
  if (options.clip_before_unscale && !options.clip_norm && !options.clip_value) {
    throw experiments::UsageError(
        "--clip-before-unscale: there is no limit to clip at; must come with --clip-norm or --clip-value");
  }
  twin_format_of(options);
  options.parallel.choice();
  reject_contradictions_of_jobs(options);
  if (options.sweep && options.parallel.processes)
    throw experiments::UsageError("--mpi: is given with --sweep; must be for one run, whose ranks it starts");
  if (options.sweep) return;
  const auto require_one = [](std::string_view option, std::size_t count) {
    if (count <= 1) return;
    throw experiments::UsageError(
        fmt::format("{}: {} are given; must be one, or --sweep be given as well", option, count));
  };
  require_one("--model", options.models.size());
  require_one("--policy", options.policies.size());
  require_one("--scalers", options.scalers.size());
  require_one("--seeds", static_cast<std::size_t>(options.seeds));
}

/// The FP32 that a sweep compares with is FP32 throughout.
sim::DataParallel parallel_of(const experiments::Cell& cell, const Options& options) {
  const bool compares = options.sweep && (options.policies.size() > 1 || options.scalers.size() > 1);
  const sim::DataParallel parallel = options.parallel.choice();
  return compares && cell.policy == "fp32" ? experiments::all_reduced_in_fp32(parallel) : parallel;
}

experiments::RunChoice choice_of(const experiments::Cell& cell, const Options& options, int threads) {
  return {.policy = cell.policy,
          .scaler = cell.scaler,
          .seed = cell.seed,
          .twin_every = static_cast<std::size_t>(options.twin_every),
          .twin_format = twin_format_of(options),
          .record_skips = true,
          .accumulation_steps = static_cast<std::size_t>(options.accumulation_steps),
          .clipping = {.max_norm = options.clip_norm, .max_value = options.clip_value},
          .clip_before_unscale = options.clip_before_unscale,
          .threads = threads,
          .parallel = parallel_of(cell, options),
          .exchange = options.parallel.exchange(),
          .keep_in = options.parallel.keeps_files() ? std::optional(cell.directory) : std::nullopt};
}

experiments::RunIdentity identity_of(const experiments::Cell& cell, const Network& network,
                                     const Options& options) {
  const experiments::TrainingOptions& training = network.options;
  const experiments::RunChoice choice = choice_of(cell, options, 1);
  const auto limit = [](std::optional<double> value) { return value ? fmt::format("{}", *value) : "none"; };
  experiments::RunIdentity identity{
      {"halflab",
       fmt::format("{} {}", experiments::build_information().version, experiments::code_identity())},
      {"model", cell.model},
      {"policy", cell.policy},
      {"scaler", cell.scaler},
      {"data", fmt::format("{}, checksum {:08x}", training.data, network.data_checksum)},
      {"context", fmt::format("{}", training.context)},
      {"optimizer", training.optimizer},
      {"learning rate", fmt::format("{}", *training.learning_rate)},
      {"schedule", training.schedule},
      {"batch", fmt::format("{}", *training.batch)},
      {"accumulation steps", fmt::format("{}", options.accumulation_steps)},
      {"norm limit", limit(options.clip_norm)},
      {"value limit", limit(options.clip_value)},
      {"clipping before unscaling", fmt::format("{}", options.clip_before_unscale)},
      {"twin every", fmt::format("{}", choice.twin_every)},
      {"twin format", options.twin_format},
      {"steps", fmt::format("{}", *training.steps)},
      {"seed", fmt::format("{}", cell.seed)}};
  // Only where asked for: a run without them is the run that it was.
  if (training.record) identity.emplace_back("record every", fmt::format("{}", training.record_every));
  if (!training.dump_tensors.empty()) identity.emplace_back("dumped tensors", training.dump_tensors);
  options.parallel.add_to(identity, choice.parallel);
  return identity;
}

/// What must be the same before each of several processes.
experiments::RunIdentity run_of_all_ranks(const experiments::Cell& cell, const Network& network,
                                          const Options& options, const fs::path& out) {
  experiments::RunIdentity run = identity_of(cell, network, options);
  run.emplace_back("checkpoint every", fmt::format("{}", options.checkpoint_every));
  run.emplace_back("out", out.string());
  return run;
}

std::vector<experiments::Cell> cells_of(const Options& options, const fs::path& out) {
  std::vector<experiments::Cell> cells = experiments::cells_of({.models = options.models,
                                                                .policies = options.policies,
                                                                .scalers = options.scalers,
                                                                .first_seed = options.training.seed,
                                                                .seeds = options.seeds,
                                                                .directory = out / "cells"});
  if (!options.sweep) cells.front().directory = out / "run";
  return cells;
}

/// What cannot be is said before hours of what can be.
void reject_impossible(const std::vector<experiments::Cell>& cells, const Networks& networks,
                       const Options& options, int threads) {
  const experiments::SideBySide runs(
      std::max(experiments::runs_at_one_time(cells.size(), threads), options.parallel.on_this_host()));
  for (const experiments::Cell& cell : cells) {
    if (cell.seed == options.training.seed)
      network_of(cell, networks).setup.trainer(choice_of(cell, options, 1));
  }
}

void train(experiments::Run& run, const std::vector<experiments::Cell>& cells, const Networks& networks,
           const Options& options) {
  std::size_t steps = 0;
  for (const experiments::Cell& cell : cells)
    steps += static_cast<std::size_t>(network_of(cell, networks).setup.steps());
  experiments::Progress progress = run.progress("training", steps);
  const std::size_t runs = std::max({cells.size(), options.parallel.on_this_host(), std::size_t{1}});
  const int threads_each = std::max(1, run.threads() / static_cast<int>(runs));
  const auto make = [&](const experiments::Cell& cell, const std::function<void()>& require_claim) {
    const Network& network = network_of(cell, networks);
    experiments::run_cell({.cell = cell,
                           .setup = network.setup,
                           .choice = choice_of(cell, options, threads_each),
                           .identity = identity_of(cell, network, options),
                           .checkpoint_every = options.checkpoint_every,
                           .require_claim = require_claim,
                           .ranks = options.parallel.processes,
                           .with_other_ranks = options.parallel.with_other_ranks,
                           .replaces_others = !options.sweep},
                          run, progress);
  };
  if (options.sweep)
    experiments::make_claimed(
        cells, run.out() / "claims", run.threads(), [&](const std::string& line) { run.warn(line); }, make);
  else
    make(cells.front(), {});
}

void merge(const std::vector<experiments::Cell>& cells, const Networks& networks, const Options& options,
           const fs::path& out) {
  std::vector<experiments::CellToMerge> wanted;
  for (const experiments::Cell& cell : cells)
    wanted.push_back({cell, identity_of(cell, network_of(cell, networks), options)});
  experiments::merge_cells(wanted, options.merged, out);
}

/// One a line.
void report_cells(experiments::RunRecord& record, const std::vector<experiments::Cell>& cells) {
  std::string names;
  for (const experiments::Cell& cell : cells) {
    if (!names.empty()) names += '\n';
    names += cell.directory.filename().string();
  }
  record.verdict(names);
}

/// What a job says that has made cells for others to put together.
void report_shard(experiments::RunRecord& record, const Options& options, std::size_t own, std::size_t all) {
  record.verdict(
      fmt::format("Shard {} is done: {} of the sweep's {} cells. Once all shards are, the same command with "
                  "--merge and their "
                  "folders in the place of --shard makes the tables.",
                  options.shard, own, all));
}

void draw(experiments::Run& run, const experiments::Comparison& comparison, std::string_view suffix) {
  run.figure(experiments::loss_figure(run.record(), comparison, fmt::format("loss{}", suffix)));
  if (comparison.groups().size() == 1) return;
  experiments::Figure differences = experiments::comparison_figure(comparison);
  differences.name += suffix;
  run.figure(differences);
}

void make_and_report(experiments::Run& run, Options& options) {
  reject_contradictions(options);
  options.parallel.read_order();
  if (!options.accumulation.empty()) {
    for (std::string& policy : options.policies) {
      const bool is_reference = policy == "fp32" && options.policies.size() > 1;
      if (!is_reference) policy += ":accumulation=" + options.accumulation;
    }
  }
  experiments::RunRecord& record = run.record();
  const std::vector<experiments::Cell> cells = cells_of(options, run.out());
  Networks networks;
  for (const std::string& model : options.models)
    networks.push_back(std::make_unique<Network>(options.training, model));
  for (const auto& network : networks) options.parallel.require_order_of(network->weights());
  if (options.cells || !options.shard.empty()) {
    const std::vector<experiments::Cell> own =
        options.shard.empty() ? cells : experiments::cells_of(experiments::parse_shard(options.shard), cells);
    reject_impossible(cells, networks, options, run.threads());
    if (options.cells) return report_cells(record, own);
    if (!own.empty()) train(run, own, networks, options);
    return report_shard(record, options, own.size(), cells.size());
  }
  if (options.merge) {
    merge(cells, networks, options, run.out());
    record.setting("merged", fmt::format("{}", fmt::join(options.merged, ", ")));
  } else {
    reject_impossible(cells, networks, options, run.threads());
    options.parallel.meet(run_of_all_ranks(cells.front(), *networks.front(), options, run.out()),
                          networks.front()->weights());
    train(run, cells, networks, options);
    if (!options.parallel.keeps_files()) return;
    options.parallel.describe(record);
  }

  std::vector<experiments::Comparison> comparisons;
  experiments::RunChoice common = choice_of(cells.front(), options, 1);
  common.parallel = options.parallel.choice();
  for (const auto& network : networks) comparisons.emplace_back(network->spec, network->setup, cells, common);
  experiments::write_cells(record, cells);
  experiments::write_comparisons(record, comparisons);
  experiments::write_summary(record, comparisons, !options.sweep);
  for (const experiments::Comparison& comparison : comparisons) {
    experiments::write_verdict(record, comparison);
    record.setting(fmt::format("{}.setup", comparison.model()), comparison.description());
    const std::string suffix =
        networks.size() == 1 ? "" : fmt::format("-{}", experiments::in_file_name(comparison.model()));
    draw(run, comparison, suffix);
  }
  if (networks.size() == 1)
    options.training = networks.front()->options;  // the model's own, where none were given
}

void run(experiments::Run& run, Options& options) {
  const experiments::CheckpointGuard checkpoint_guard;
  try {
    make_and_report(run, options);
  } catch (const experiments::Interrupted&) {
    const auto has_left_something = [](const experiments::Cell& cell) { return fs::exists(cell.directory); };
    if (std::ranges::none_of(cells_of(options, run.out()), has_left_something)) throw;
    throw experiments::Interrupted(
        fmt::format("interrupted; the same command goes on from what '{}' holds", run.out().string()));
  }
}

experiments::Program program() {
  return {.name = "training",
          .question =
              "How does a network train under a precision policy and a loss scaler, and does it differ from "
              "FP32?",
          .example = "training --sweep --model mlp,cnn --policy fp32,amp,O2 --seeds 5 --out results/sweep",
          .outputs = experiments::outputs_of(experiments::comparison_outputs(),
                                             experiments::CurveTable::note("loss"))};
}

void bind(experiments::CommandLine& command_line, Options& options) {
  command_line.add_choices("--model", options.models, "models",
                           "network to train, with options as mlp:hidden1=64; several with --sweep");
  command_line.add_choices("--policy", options.policies, "policies",
                           "precision policy, with overrides as O2:keep_batchnorm_fp32=false; several "
                           "with --sweep");
  command_line.add_choice("--accumulation", options.accumulation, "accumulations",
                          "how products add up, in the place of each policy's own");
  command_line.add_choices("--scalers", options.scalers, "scalers",
                           "loss scaler, with options as dynamic:growth_interval=20; several with "
                           "--sweep; default: of each policy its recipe's");
  options.training.bind_without_model(command_line, 20);
  command_line.add_seeds(options.seeds);
  command_line.add_flag("--sweep", options.sweep,
                        "all combinations of the models, policies, scalers and seeds, one a core; those "
                        "that DIR/cells holds already are not made again");
  command_line.add(
      "--shard", options.shard,
      "of a sweep the cells of one of several jobs, such as 2/4; others may work in the same DIR", "I/N");
  command_line.add_flag("--cells", options.cells,
                        "print the cells of a sweep, or of its shard, and make none");
  command_line.add_flag("--merge", options.merge,
                        "put together what the shards of a sweep have made in the folders that are named");
  command_line.add_words("FOLDER", options.merged, "with --merge: --out of the shards", 0);
  command_line.add("--accumulation-steps", options.accumulation_steps,
                   "micro-batches of a step, of --batch examples each on all ranks together",
                   {.minimum = 1, .maximum = 65536});
  command_line.add("--clip-norm", options.clip_norm, "largest norm of all gradients together",
                   {.minimum = 0, .minimum_excluded = true, .in_binary32 = true});
  command_line.add("--clip-value", options.clip_value, "largest magnitude of a gradient",
                   {.minimum = 0, .minimum_excluded = true, .in_binary32 = true});
  command_line.add_flag("--clip-before-unscale", options.clip_before_unscale,
                        "clip while S is still on the gradients: the well-known mistake");
  options.parallel.bind(command_line);
  options.parallel.bind_mpi(command_line);
  command_line.add("--twin-every", options.twin_every,
                   "steps from one comparison with the FP32 twin to the next; 0 = never",
                   {.minimum = 0, .maximum = 1'000'000, .quick = 5});
  command_line.add("--twin-format", options.twin_format,
                   "fp32 or fp64: what the twin is differentiated in; of policy fp64 always fp64", "FORMAT");
  command_line.add_checkpoint_every(options.checkpoint_every);
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  const experiments::Experiment experiment{
      .program = program(),
      .options = [&](experiments::CommandLine& command_line) { bind(command_line, options); },
      .body = [&](experiments::Run& r) { run(r, options); },
      .has_record =
          [&] { return options.shard.empty() && !options.cells && options.parallel.keeps_files(); }};
  return experiments::run_on_ranks("training", argc, argv,
                                   [&](auto* processes, experiments::Streams streams) {
                                     options.parallel.compute_on(processes);
                                     return experiments::run(argc, argv, experiment, streams);
                                   });
}
