/// Which loss-scaling strategy brings FP16 training to where FP32 gets?
///
/// The same network, seeds and batches under every strategy, side by side with an FP32 run (the trajectory).
/// Every n-th step is also measured against its backward twin: the same forward values, differentiated in
/// FP32. In other regimes than calm training, runs are disturbed and the strategies ranked.

#include <vector>

#include "experiments/scaler_comparison/figures.h"
#include "experiments/scaler_comparison/ranking_record.h"
#include "experiments/scaler_comparison/record.h"
#include "experiments/scaler_comparison/regimes.h"
#include "experiments/scaler_comparison/strategies.h"
#include "experiments/training/laboratory.h"
#include "experiments/training/options.h"
#include "experiments/training/training_setup.h"

namespace experiments::scaler_comparison {
namespace {

void report_calm(Run& run, const Findings& found) {
  write_settings(run.record(), found);
  write_tables(run.record(), found);
  write_summary(run.record(), found);
  draw_figures(run, found);
  write_verdict(run.record(), found);
}

void report_ranking(Run& run, const RankingFindings& found) {
  write_ranking_tables(run.record(), found);
  write_ranking_summary(run.record(), found);
  draw_ranking(run, found);
  write_ranking_verdict(run.record(), found);
}

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

Program program() {
  return {.name = "scaler_comparison",
          .question = "Which loss-scaling strategy brings FP16 training to where FP32 gets?",
          .example = "scaler_comparison --model mlp --scalers none,dynamic --steps 300 --out results/mlp",
          .summary_keys = {
              {"<strategy>.final_loss", "mean over the test set after the last step, in FP32"},
              {"<strategy>.final_accuracy", "likewise, classifiers only"},
              {"<strategy>.loss_excess",
               "final_loss less that of fp32 in pairs of the same seed, mean over the mean of fp32"},
              {"<strategy>.steps", "made; fewer than asked for where the scaler ended the run"},
              {"<strategy>.skipped_steps", "of these, steps whose update was left out"},
              {"<strategy>.scaler_twins", "twins that the scaler asked for, a backward pass each"},
              {"<strategy>.final_scale_log2", "log2 S after the last step"},
              {"<strategy>.mean_fraction_flushed",
               "twin non-zero and run zero, over the twin's non-zero; mean over measured, applied steps, nan "
               "without any"},
              {"<strategy>.mean_norm_share_flushed", "norm of these over the twin's, likewise"},
              {"<strategy>.mean_relative_error", "||run/S - twin|| / ||twin||, likewise"},
              {"<strategy>.aborted_runs", "runs that their scaler ended"},
              {"<strategy>.peak_tensor_bytes", "the most that tensors took at one time, without twins"},
              {"<strategy>.peak_tensor_bytes_<role>",
               "likewise of weights, master_weights, optimizer_state, activations, gradients, buffers, "
               "temporaries"},
              {"<key>_std, _lower, _upper",
               "of the means over several seeds: sample standard deviation, 95 % t-interval"},
              {"--regimes other than calm", "these keys only:"},
              {"<regime>.fp32.final_loss", "as above, of the runs of that regime"},
              {"<regime>.<strategy>.rank", "by mean_of_ranks, ties shared"},
              {"<regime>.<strategy>.mean_of_ranks",
               "of relative_error, lost_steps, recovery_steps and final_loss, as far as they apply"},
              {"<regime>.<strategy>.relative_error",
               "as mean_relative_error; inf without a finite final loss, as are the next three"},
              {"<regime>.<strategy>.lost_steps",
               "skipped, but not those that no scale saves, and those after the scaler ended the run"},
              {"<regime>.<strategy>.recovery_steps",
               "mean over disturbances and skips: steps after it with S an octave or more lower; nan for a "
               "strategy without one S"},
              {"<regime>.<strategy>.final_loss", "mean over the test set after the last step, in FP32"},
              {"<regime>.<strategy>.excess_loss", "final_loss less that of FP32, in pairs of the same seed"},
              {"<regime>.<strategy>.unfinished_recoveries", "recoveries a run that its end cut off"},
              {"<regime>.<strategy>.aborted_runs, diverged_runs",
               "that their scaler ended, that left no finite loss"}}};
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
  return run(argc, argv,
             {.program = scaler_comparison::program(),
              .options = [&](CommandLine& command_line) { scaler_comparison::bind(command_line, options); },
              .body = [&](Run& r) { scaler_comparison::run(r, options); }});
}
