/// Which loss-scaling strategy brings FP16 training to where FP32 gets?
///
/// The same network, seeds and batches under every strategy, side by side with an FP32 run (the trajectory).
/// Every n-th step is also measured against its backward twin: the same forward values, differentiated in
/// FP32. In other regimes than calm training, runs are disturbed and the strategies ranked.

#include <vector>

#include "experiments/frame/columns.h"
#include "experiments/scaler_comparison/findings.h"
#include "experiments/scaler_comparison/ranking.h"
#include "experiments/training/laboratory.h"
#include "experiments/training/options.h"
#include "experiments/training/training_setup.h"

namespace experiments::scaler_comparison {
namespace {

void run(Run& run, Options& options) {
  const std::vector<Regime> regimes = parse_regimes(options.regimes);
  const TrainingSetup setup(options.training);
  const RegimeSetups setups(setup, options.training, regimes, options.disturbances);
  const std::vector<TrainingRun> runs = trained_runs(setups, regimes, options, run);
  if (regimes == std::vector{Regime::calm})
    return report_calm(run,
                       {.setup = setup, .options = options, .runs = runs, .strategies = by_strategy(runs)});
  const RankingFindings found{
      .setup = setup,
      .options = options,
      .regimes = by_regime(runs, static_cast<std::size_t>(setup.steps()), options.disturbances)};
  write_settings(
      run.record(),
      {.setup = setup, .options = options, .runs = runs, .strategies = found.regimes.front().strategies});
  report_ranking(run, found);
}

void bind(CommandLine& command_line, Options& options) {
  options.training.bind(command_line, 20);
  add_policy(command_line, options.policy);
  add_scalers(command_line, options.scalers);
  command_line.add_seeds(options.seeds);
  add_twin_every(command_line, options.twin_every, 5);
  command_line.add("--statistics-every", options.statistics_every,
                   "steps from one histogram of every gradient to the next; 0: never",
                   {.minimum = 0, .maximum = 1'000'000});
  command_line.add("--growth-interval", options.growth_interval,
                   "of every scaler that has one and is not given its own; the originals' 1000 or 2000 would "
                   "not move in so short a run",
                   {.minimum = 1});
  command_line.add(
      "--regimes", options.regimes,
      "what disturbs the runs: calm (nothing), spiky (outliers among the batches), drifting (the learning "
      "rate falls in the middle of the run), poisoned (losses that are NaN); all but calm alone rank the "
      "scalers",
      "A,B|all");
  command_line.add("--disturb-every", options.disturbances.every,
                   "steps, the last of which is an outlier or poisoned; more than half of a run: once",
                   {.minimum = 1, .maximum = 1'000'000, .quick = 7});
  command_line.add(
      "--outlier-factor", options.disturbances.outlier_factor,
      "by which an outlier's loss counts more; the default takes any S near its ceiling beyond it",
      {.minimum = 1, .maximum = 1e9, .minimum_excluded = true});
  command_line.add("--drift-factor", options.disturbances.drift_factor,
                   "of the learning rate in the second half of drifting runs",
                   {.minimum = 0, .maximum = 1, .minimum_excluded = true});
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
