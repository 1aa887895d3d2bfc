#pragma once
/// What every training experiment lets its user choose: data, network, optimizer, budget and seed.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "experiments/common/command_line.h"
#include "experiments/common/progress.h"
#include "sim/data/dataset.h"
#include "sim/models/registry.h"
#include "sim/optimizers/optimizer.h"
#include "sim/record.h"
#include "sim/trainer.h"

namespace experiments {

/// Left empty, optimizer, learning rate and batch are what the model trains well with; TrainingSetup fills
/// them in.
struct TrainingOptions {
  std::string data = "builtin";
  std::string model = {};
  std::string optimizer = {};
  std::optional<double> learning_rate = {};
  std::optional<int> batch = {};
  int steps = 500;
  std::uint64_t seed = 0;

  /// Adds --data, --model, --optimizer, --lr, --batch, --steps and --seed.
  void bind(CommandLine& command_line, int quick_steps);
};

/// Data and network of a run. Built once; every trainer made from it starts from the same weights and sees
/// the same batches for the same seed.
class TrainingSetup {
 public:
  /// The options must outlive the setup. Throws std::invalid_argument or std::runtime_error, one line, for
  /// data that cannot be read or does not suit the model.
  explicit TrainingSetup(TrainingOptions& options);

  const sim::Dataset& dataset() const { return dataset_; }
  const sim::Model& model() const { return *model_; }
  std::string_view model_name() const { return row_.name; }

  sim::Trainer trainer(std::string_view policy, std::unique_ptr<sim::LossScaler> scaler, std::uint64_t seed,
                       std::size_t twin_every = 0) const;

  /// "mlp on digits, momentum, learning rate 0.05, batch 128".
  std::string description() const;
  /// "test accuracy 96.2 %" for a classifier, else "test loss 0.0431".
  std::string quality(const sim::Evaluation& evaluation) const;

 private:
  const sim::ModelRow& row_;
  sim::Dataset dataset_;
  std::unique_ptr<sim::Model> model_;
  const TrainingOptions& options_;
};

/// Advances the trainer by `steps` steps, each a tick of the progress.
void train(sim::Trainer& trainer, int steps, Progress& progress);

/// Writes the options in force to the manifest's settings, as "scaler.dynamic.growth_interval".
void record_settings(sim::RunRecord& record, std::string_view kind, std::string_view name,
                     const sim::NamedValues& options);

/// "the largest gradient of hidden2 is 2^-9.8, 15.2 octaves above the 2^-25 where nearest-even rounding
/// reaches zero".
std::string octaves_alive_clause(std::string_view tensor, double octaves_alive);

/// "12.3 %", with more digits for small shares: "0.012 %"; "0 %" only for an exact
/// zero; "-" for what is not finite.
std::string percent(double share);

}  // namespace experiments
