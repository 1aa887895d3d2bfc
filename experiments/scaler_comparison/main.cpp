/// Which loss-scaling strategy brings FP16 training to where FP32 gets?
///
/// Trains one network on the same seeds and batches under every strategy, beside an FP32 run (the trajectory).
/// Every n-th step is also measured against its backward twin: the same forward values, differentiated in
/// FP32. In other regimes than calm training, runs are disturbed and the strategies ranked.

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <vector>

#include "experiments/frame/columns.h"
#include "experiments/scaler_comparison/findings.h"
#include "experiments/scaler_comparison/options.h"
#include "experiments/scaler_comparison/ranking.h"
#include "experiments/training/laboratory.h"
#include "experiments/training/options.h"
#include "experiments/training/training_setup.h"

namespace experiments::scaler_comparison {
namespace {

/// What would have no effect is a mistake.
void reject_without_effect(const Options& options, const std::vector<Regime>& regimes) {
  const Disturbances usual;
  const auto require = [&](std::string_view option, bool is_given, Regime regime) {
    if (is_given && std::ranges::find(regimes, regime) == regimes.end())
      throw UsageError(fmt::format("{}: is given without {} runs; must come with --regimes {}", option,
                                   name_of(regime), name_of(regime)));
  };
  require("--outlier-factor", options.disturbances.outlier_factor != usual.outlier_factor, Regime::spiky);
  require("--drift-factor", options.disturbances.drift_factor != usual.drift_factor, Regime::drifting);
  if (options.statistics_every != 0 && regimes != std::vector{Regime::calm})
    throw UsageError("--statistics-every: is given with --regimes; must be of calm runs alone");
  reject_loss_scale(options.policy);
}

void run(Run& run, Options& options) {
  const std::vector<Regime> regimes = parse_regimes(options.regimes);
  reject_without_effect(options, regimes);
  options.training.directory = run.record().staging();
  const TrainingSetup setup(options.training);
  const RegimeSetups setups(setup, options.training, regimes, options.disturbances);
  const std::vector<TrainingRun> runs = trained_runs(setups, regimes, options, run);
  if (regimes == std::vector{Regime::calm}) {
    const auto first_control = std::ranges::find(runs, true, &TrainingRun::is_control);
    return report_calm(run, {.setup = setup,
                             .options = options,
                             .runs = runs,
                             .strategies = by_strategy({runs.begin(), first_control}),
                             .controls = by_strategy({first_control, runs.end()})});
  }
  const RankingFindings found{
      .setup = setup, .options = options, .regimes = by_regime(runs, setup, options.disturbances)};
  write_settings(
      run.record(),
      {.setup = setup, .options = options, .runs = runs, .strategies = found.regimes.front().strategies});
  report_ranking(run, found);
}

}  // namespace
}  // namespace experiments::scaler_comparison

int main(int argc, char** argv) {
  using namespace experiments;
  scaler_comparison::Options options;
  return run(
      argc, argv,
      {.program = {.name = "scaler_comparison",
                   .question = "Which loss-scaling strategy brings FP16 training to where FP32 gets?",
                   .example =
                       "scaler_comparison --model mlp --scalers none,dynamic --steps 300 --out results/mlp",
                   .outputs =
                       outputs_of(scaler_comparison::calm_outputs(), scaler_comparison::ranking_outputs())},
       .options = [&](CommandLine& command_line) { scaler_comparison::bind(command_line, options); },
       .body = [&](Run& r) { scaler_comparison::run(r, options); }});
}
