#include "experiments/common/training_setup.h"

#include <fmt/format.h>

#include <cmath>
#include <filesystem>

#include "sim/data/registry.h"
#include "sim/optimizers/registry.h"

namespace experiments {

void TrainingOptions::bind(CommandLine& command_line, int quick_steps) {
  command_line.add_data(data);
  command_line.add_model(model);
  command_line.add_optimizer(optimizer);
  command_line.add_learning_rate(learning_rate);
  command_line.add_batch(batch);
  command_line.add_steps(steps, quick_steps);
  command_line.add_seed(seed);
}

TrainingSetup::TrainingSetup(TrainingOptions& options)
    : row_(sim::find_model(options.model)),
      dataset_(sim::load_dataset(options.data)),
      model_(row_.make(dataset_)),
      options_(options) {
  if (options.optimizer.empty()) options.optimizer = row_.optimizer;
  if (!options.learning_rate) options.learning_rate = row_.learning_rate;
  if (!options.batch) options.batch = row_.batch;
}

sim::Trainer TrainingSetup::trainer(std::string_view policy, std::unique_ptr<sim::LossScaler> scaler,
                                    std::uint64_t seed, std::size_t twin_every) const {
  return sim::Trainer(
      *model_, dataset_, sim::find_precision_policy(policy), std::move(scaler),
      sim::make_optimizer(options_.optimizer, {{"learning_rate", *options_.learning_rate}}),
      {.batch = static_cast<std::size_t>(*options_.batch), .seed = seed, .twin_every = twin_every});
}

std::string TrainingSetup::description() const {
  // Of a folder the last part of its path says enough, and is the same on every machine.
  const std::string data =
      std::filesystem::path(std::string(dataset_.name()) + "/").parent_path().filename().string();
  return fmt::format("{} on {}, {}, learning rate {}, batch {}", row_.name, data, options_.optimizer,
                     *options_.learning_rate, *options_.batch);
}

std::string TrainingSetup::quality(const sim::Evaluation& evaluation) const {
  return model_->is_classifier() ? fmt::format("test accuracy {:.1f} %", 100 * evaluation.accuracy)
                                 : fmt::format("test loss {:.4f}", evaluation.loss);
}

void train(sim::Trainer& trainer, int steps, Progress& progress) {
  for (int step = 0; step < steps; ++step) {
    trainer.step();
    progress.tick();
  }
}

void record_settings(sim::RunRecord& record, std::string_view kind, std::string_view name,
                     const sim::NamedValues& options) {
  for (const auto& [option, value] : options)
    record.setting(fmt::format("{}.{}.{}", kind, name, option), value);
}

std::string octaves_alive_clause(std::string_view tensor, double octaves_alive) {
  return fmt::format(
      "the largest gradient of {} is 2^{:.1f}, {:.1f} octaves {} the 2^-25 where nearest-even rounding "
      "reaches zero",
      tensor, octaves_alive - 25, std::abs(octaves_alive), octaves_alive < 0 ? "below" : "above");
}

std::string percent(double share) {
  const double value = 100 * share;
  if (!std::isfinite(value)) return "-";
  if (value == 0) return "0 %";
  if (value < 1e-6) return fmt::format("{:.0e} %", value);
  const int first_digit = static_cast<int>(std::ceil(-std::log10(value)));
  return fmt::format("{:.{}f} %", value, value < 0.001 ? first_digit : value < 0.1 ? 3 : value < 1 ? 2 : 1);
}

}  // namespace experiments
