#include "experiments/common/training_setup.h"

#include <fmt/format.h>

#include "sim/data/registry.h"
#include "sim/optimizers/registry.h"

namespace experiments {

void TrainingOptions::bind(CommandLine& command_line, int quick_steps) {
  command_line.add_data(data);
  command_line.add_model(model);
  command_line.add_optimizer(optimizer);
  command_line.add("--lr", learning_rate, "learning rate; default: the model's own",
                   {.minimum = 0, .minimum_excluded = true});
  command_line.add("--batch", batch, "images per step; default: the model's own",
                   {.minimum = 1, .maximum = 1 << 16});
  command_line.add_steps(steps, quick_steps);
  command_line.add_seed(seed);
}

TrainingSetup::TrainingSetup(const TrainingOptions& options)
    : row_(sim::find_model(options.model)),
      dataset_(sim::load_dataset(options.data)),
      model_(row_.make(dataset_)),
      optimizer_(options.optimizer.empty() ? row_.optimizer : options.optimizer),
      learning_rate_(options.learning_rate.value_or(row_.learning_rate)),
      batch_(static_cast<std::size_t>(options.batch.value_or(row_.batch))) {}

sim::Trainer TrainingSetup::trainer(std::string_view policy, std::unique_ptr<sim::LossScaler> scaler,
                                    std::uint64_t seed, std::size_t twin_every) const {
  return sim::Trainer(*model_, dataset_, sim::find_precision_policy(policy), std::move(scaler),
                      sim::make_optimizer(optimizer_, {{"learning_rate", learning_rate_}}),
                      {.batch = batch_, .seed = seed, .twin_every = twin_every});
}

std::string TrainingSetup::description() const {
  return fmt::format("{} on {}, {}, learning rate {}, batch {}", row_.name, dataset_.name(), optimizer_,
                     learning_rate_, batch_);
}

std::string TrainingSetup::quality(const sim::Evaluation& evaluation) const {
  return model_->is_classifier() ? fmt::format("test accuracy {:.1f} %", 100 * evaluation.accuracy)
                                 : fmt::format("test loss {:.4f}", evaluation.loss);
}

std::string percent(double share) {
  const double value = 100 * share;
  if (value == 0) return "0 %";
  if (value < 0.001) return fmt::format("{:.0e} %", value);
  return fmt::format("{:.{}f} %", value, value < 0.1 ? 3 : value < 1 ? 2 : 1);
}

}  // namespace experiments
