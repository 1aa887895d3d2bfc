#pragma once
/// What every training experiment lets its user choose: data, network, optimizer, budget and seed.

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "experiments/frame/command_line.h"
#include "experiments/frame/progress.h"
#include "experiments/frame/record.h"
#include "fp16/formats.h"
#include "fp16/names.h"
#include "sim/data/dataset.h"
#include "sim/models/registry.h"
#include "sim/optimizers/optimizer.h"
#include "sim/trainer/memory_forecast.h"
#include "sim/trainer/trainer.h"

namespace experiments {

/// Left empty, what the model trains well with; TrainingSetup fills it in. Model, optimizer and schedule may
/// carry options (fp16/names.h).
struct TrainingOptions {
  std::string data = "builtin";
  std::string model;
  std::string_view model_option = "--model";  ///< that an error in `model` is blamed on
  std::string optimizer;
  std::string schedule;
  std::optional<double> learning_rate;
  std::optional<int> batch;
  std::optional<int> steps;
  int context = 64;
  std::uint64_t seed = 0;
  bool record = false;                   ///< a gradient record of every run
  int record_every = 10;                 ///< steps from one whose exponents it keeps to the next
  std::string dump_tensors;              ///< of these steps of every run; empty: of none
  std::filesystem::path directory = {};  ///< where what is asked for is kept

  /// Adds --data, --model, --optimizer, --schedule, --lr, --batch, --steps, --context, --seed, --record,
  /// --record-every and --dump-tensors.
  void bind(CommandLine& command_line, int quick_steps);
  /// Binds all but --model.
  void bind_without_model(CommandLine& command_line, int quick_steps);
};

/// How one run differs from others of the same setup.
struct RunChoice {
  std::string policy = "fp32";
  std::string scaler = "none";  ///< with its options
  std::uint64_t seed = 0;
  std::size_t twin_every = 0;
  fp16::Format twin_format = fp16::binary32;  ///< or binary64
  std::size_t statistics_every = 0;
  bool record_skips = false;
  std::size_t accumulation_steps = 1;
  sim::Clipping clipping = {};
  bool clip_before_unscale = false;
  int threads = 1;
  sim::DataParallel parallel = {};
  /// With whom the ranks are shared; must outlive the trainer. Null: this process computes all of them.
  sim::Exchange* exchange = nullptr;
  /// The folder of a run's gradient record and dumped tensors, DIR/record and DIR/tensors, within that of the options;
  /// none: a trial that is not kept.
  std::optional<std::filesystem::path> keep_in = {};
};

/// How much a run sees, and how fast it learns from it.
struct TrainingBudget {
  int batch;  ///< examples of a micro-batch, on all ranks together
  int steps;
  double learning_rate;  ///< at the schedule's factor of 1
  /// What the schedule's own numbers of steps (warm-up, period) are multiplied with, and rounded.
  double schedule_stretch = 1;
};

/// What --policy names. Throws std::invalid_argument, one line that names the option.
sim::PrecisionPolicy policy_from_option(const std::string& policy);

/// Throws UsageError where the policy's override loss_scale would have no effect, as --scalers says what scales.
void reject_loss_scale(const std::string& policy);

/// Data and network of a run. Built once; every trainer made from it starts from the same weights and sees
/// the same batches for the same seed.
class TrainingSetup {
 public:
  /// The options must outlive the setup. Throws std::invalid_argument or std::runtime_error, one line, which
  /// names the option where one is wrong: data that cannot be read or do not suit the model, a warm-up that is
  /// asked for and longer than the run.
  explicit TrainingSetup(TrainingOptions& options);

  const sim::Dataset& dataset() const { return *dataset_; }
  const sim::Model& model() const { return *model_; }
  std::string_view model_name() const { return row_.name; }
  int steps() const { return *options_.steps; }

  /// Throws std::invalid_argument as the constructor does, and std::runtime_error, before anything large is
  /// allocated, where as many such runs as there are side by side (parallel.h) would not fit into memory.
  sim::Trainer trainer(const RunChoice& choice) const;
  /// A trainer under a policy that no name stands for; that of the choice is not looked at.
  sim::Trainer trainer(const RunChoice& choice, const sim::PrecisionPolicy& policy) const;
  /// A trainer with a scaler that no name stands for, too, and for another budget than that of the options.
  sim::Trainer trainer(const RunChoice& choice, const sim::PrecisionPolicy& policy, sim::AnyScaler scaler,
                       const TrainingBudget& budget) const;

  /// What the tensors of such a run take at most, by its batch; that of the budget is not looked at.
  sim::MemoryForecast forecast(const RunChoice& choice, const sim::PrecisionPolicy& policy,
                               const sim::AnyScaler& scaler, const TrainingBudget& budget) const;

  /// That of the options.
  TrainingBudget budget() const { return {*options_.batch, *options_.steps, *options_.learning_rate}; }

  /// "mlp on digits, momentum, learning rate 0.05, batch 128", and of these what is not the usual: a schedule
  /// other than constant, a context other than 64, and in `choice` accumulation and clipping: "..., batch 128,
  /// 4 micro-batches a step, norm clipped at 1"; and ranks, if there are several.
  std::string description(const RunChoice& choice = {}) const;
  /// "test accuracy 96.2 %" for a classifier, else "test loss 0.0431".
  std::string quality(const sim::Evaluation& evaluation) const;

 private:
  /// What the options ask to be kept of a run.
  void observe(sim::Trainer& trainer, const RunChoice& choice, const sim::PrecisionPolicy& policy,
               const TrainingBudget& budget) const;
  sim::Trainer unchecked_trainer(const RunChoice& choice, const sim::PrecisionPolicy& policy,
                                 sim::AnyScaler scaler, const TrainingBudget& budget) const;
  void require_memory(const RunChoice& choice, const sim::PrecisionPolicy& policy,
                      const sim::AnyScaler& scaler, const TrainingBudget& budget) const;

  const TrainingOptions& options_;
  names::Spec model_spec_;
  const sim::ModelRow& row_;
  std::unique_ptr<sim::Dataset> dataset_;
  std::unique_ptr<sim::Model> model_;
  mutable std::mutex forecasts_mutex_;
  mutable std::map<std::string, sim::MemoryForecast> forecasts_;  ///< by kinds of runs
};

/// "seeds 0 to 2", "seed 7".
std::string seeds_text(std::uint64_t first, int count);

/// Advances the trainer by `steps` steps, each a tick of the progress.
void train(sim::Trainer& trainer, int steps, Progress& progress);

/// Writes the options in force to the manifest's settings, as "scaler.dynamic.growth_interval".
void record_settings(RunRecord& record, std::string_view kind, std::string_view name,
                     const names::NamedValues& options);

}  // namespace experiments
