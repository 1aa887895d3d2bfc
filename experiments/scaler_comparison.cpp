/// Which loss-scaling strategy brings FP16 training to where FP32 gets?
///
/// The same network, seeds and batches under every strategy, side by side with an FP32 run (the trajectory).
/// Every n-th step is also measured against its backward twin: the same forward values, differentiated in
/// FP32.

#include <vector>

#include "experiments/common/experiment.h"
#include "experiments/common/training_setup.h"
#include "experiments/scaler_comparison/figures.h"
#include "experiments/scaler_comparison/record.h"
#include "experiments/scaler_comparison/strategies.h"

namespace experiments::scaler_comparison {
namespace {

void run(Run& run, Options& options) {
  const TrainingSetup setup(options.training);
  const std::vector<TrainingRun> runs = trained_runs(setup, options, run);
  const Findings found{.setup = setup, .options = options, .runs = runs, .strategies = by_strategy(runs)};
  write_settings(run.record(), found);
  write_tables(run.record(), found);
  write_summary(run.record(), found);
  draw_figures(run, found);
  write_verdict(run.record(), found);
}

Program program() {
  return {.name = "scaler_comparison",
          .question = "Which loss-scaling strategy brings FP16 training to where FP32 gets?",
          .example = "scaler_comparison --model mlp --scalers none,dynamic --steps 300 --out results/mlp",
          .summary_keys = {
              {"<strategy>.final_loss", "mean over the test set after the last step, in FP32"},
              {"<strategy>.final_accuracy", "likewise, classifiers only"},
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
               "of the means over several seeds: sample standard deviation, 95 % t-interval"}}};
}

void bind(CommandLine& command_line, Options& options) {
  options.training.bind(command_line, 20);
  command_line.add_policy(options.policy);
  command_line.add_scalers(options.scalers);
  command_line.add_seeds(options.seeds);
  command_line.add_twin_every(options.twin_every, 5);
  command_line.add("--statistics-every", options.statistics_every,
                   "steps from one histogram of every gradient to the next; 0: never",
                   {.minimum = 0, .maximum = 1'000'000});
  command_line.add("--growth-interval", options.growth_interval,
                   "of every scaler that has one and is not given its own; the originals' 1000 or 2000 would "
                   "not move in so short a run",
                   {.minimum = 1});
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
