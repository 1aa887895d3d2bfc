#include "tools/halflab/replay/replay.h"

#include <algorithm>
#include <string>
#include <vector>

#include "experiments/frame/parallel.h"
#include "experiments/training/options.h"
#include "sim/loss_scaling/registry.h"
#include "tools/halflab/command.h"
#include "tools/halflab/replay/findings.h"

namespace halflab::replay {
namespace {

struct Options {
  std::vector<std::string> paths;
  std::vector<std::string> scalers{"dynamic", "megatron", "adaptive"};
};

/// Those that hold a scale of the whole loss; of `all`, which names every scaler, the others are left out.
std::vector<std::string> global_scalers(const std::vector<std::string>& asked) {
  if (!std::ranges::equal(asked, sim::scalers(), {}, {}, &sim::ScalerRow::name)) return asked;
  std::vector<std::string> global;
  for (const sim::ScalerRow& row : sim::scalers()) {
    if (row.kind == sim::ScalerKind::global) global.emplace_back(row.name);
  }
  return global;
}

Findings replay_all(const Options& options, experiments::Run& run) {
  Findings found{.record = read_record(options.paths.front()), .replays = {}};
  std::vector<std::string> scalers = global_scalers(options.scalers);
  const bool names_its_own = !found.record.scaler.empty() &&
                             sim::make_any_scaler(names::parse_spec(found.record.scaler).name).index() == 0;
  if (names_its_own && std::ranges::find(scalers, found.record.scaler) == scalers.end())
    scalers.insert(scalers.begin(), found.record.scaler);
  found.replays.resize(scalers.size());
  experiments::from_option("--scalers", [&] {
    experiments::parallel_for_each(scalers.size(), run.threads(), [&](std::size_t i) {
      found.replays[i] = replay(found.record, scalers[i]);
    });
  });
  return found;
}

}  // namespace

int run(int argc, const char* const* argv, experiments::Streams streams) {
  Options options;
  return run_command(
      argc, argv,
      {.program = {.name = "halflab replay",
                   .question = "What would other loss scalers have done on this run?",
                   .example = "halflab replay results/training/run/record --scalers "
                              "dynamic,megatron,adaptive:growth_interval=10",
                   .outputs = outputs(),
                   .details =
                       "RECORD is a folder that --record of a training program wrote; a CSV file with "
                       "the columns step and max_abs (the "
                       "largest gradient, S divided out) and perhaps scale and found_inf (a step whose "
                       "max_abs is inf or nan was not finite, without a scale at any S); or a log of "
                       "Apex, DeepSpeed or fairseq, which gives bounds "
                       "alone. The weights go the way that the run went: a scaler that skips other "
                       "steps would have led elsewhere."},
       .options =
           [&](experiments::CommandLine& command_line) {
             command_line.add_words("RECORD", options.paths, "a record's folder, a CSV file or a log", 1);
             experiments::add_scalers(command_line, options.scalers);
           },
       .body =
           [&](experiments::Run& run) {
             if (options.paths.size() > 1)
               throw experiments::UsageError("RECORD: several are given; must be one");
             if (const auto bounds = read_log(options.paths.front())) return report(run, *bounds);
             report(run, replay_all(options, run));
           }},
      streams);
}

}  // namespace halflab::replay
