#include "experiments/common/training_setup.h"

#include <fmt/format.h>

#include <cmath>
#include <filesystem>

#include "sim/data/registry.h"
#include "sim/optimizers/registry.h"
#include "sim/schedules/registry.h"

namespace experiments {
namespace {

/// That of the model, where the optimizer is of the kind that it was chosen for.
double default_learning_rate(const sim::ModelRow& model, std::string_view optimizer) {
  const std::string own = sim::parse_spec(std::string(model.optimizer)).name;
  const bool suits =
      sim::find_optimizer(own).normalises_gradients == sim::find_optimizer(optimizer).normalises_gradients;
  return suits ? model.learning_rate : sim::make_optimizer(optimizer)->learning_rate();
}

}  // namespace

void TrainingOptions::bind(CommandLine& command_line, int quick_steps) {
  command_line.add_model(model);
  bind_without_model(command_line, quick_steps);
}

void TrainingOptions::bind_without_model(CommandLine& command_line, int quick_steps) {
  command_line.add_data(data);
  command_line.add_optimizer(optimizer);
  command_line.add_schedule(schedule);
  command_line.add_learning_rate(learning_rate);
  command_line.add_batch(batch);
  command_line.add_steps(steps, quick_steps);
  command_line.add("--context", context, "tokens in a window of text", {.minimum = 2, .maximum = 65536});
  command_line.add_seed(seed);
}

TrainingSetup::TrainingSetup(TrainingOptions& options)
    : options_(options),
      model_spec_(sim::parse_spec(options.model)),
      row_(sim::find_model(model_spec_.name)) {
  const sim::GivenOptions model_options = numeric_options(model_spec_);
  row_.options(model_options);  // rejects them before data are loaded
  dataset_ = sim::load_dataset(options.data,
                               {.kind = row_.data, .context = static_cast<std::size_t>(options.context)});
  model_ = row_.make(*dataset_, model_options);
  if (options.optimizer.empty()) options.optimizer = row_.optimizer;
  if (options.schedule.empty()) options.schedule = row_.schedule;
  const auto [optimizer, optimizer_options] = sim::parse_numeric_spec(options.optimizer);
  if (const auto given = optimizer_options.find("learning_rate"); given != optimizer_options.end()) {
    options.learning_rate = given->second;
  } else if (!options.learning_rate) {
    options.learning_rate = default_learning_rate(row_, optimizer);
  }
  if (!options.batch) options.batch = row_.batch;
  if (!options.steps) options.steps = row_.steps;
}

sim::Trainer TrainingSetup::trainer(const RunChoice& choice) const {
  const sim::PrecisionPolicy policy = sim::make_precision_policy(choice.policy);
  const auto [scaler, scaler_options] = sim::parse_numeric_spec(choice.scaler);
  auto [optimizer, optimizer_options] = sim::parse_numeric_spec(options_.optimizer);
  optimizer_options.try_emplace("learning_rate", *options_.learning_rate);
  const auto [schedule, schedule_options] = sim::parse_numeric_spec(options_.schedule);
  return sim::Trainer(*model_, *dataset_, policy, sim::make_any_scaler(scaler, scaler_options),
                      sim::make_optimizer(optimizer, optimizer_options,
                                          policy.update_arithmetic(choice.seed, choice.threads)),
                      sim::make_schedule(schedule, schedule_options),
                      {.batch = static_cast<std::size_t>(*options_.batch),
                       .accumulation_steps = choice.accumulation_steps,
                       .steps = static_cast<std::uint64_t>(*options_.steps),
                       .seed = choice.seed,
                       .twin_every = choice.twin_every,
                       .statistics_every = choice.statistics_every,
                       .record_skips = choice.record_skips,
                       .clipping = choice.clipping,
                       .clip_before_unscale = choice.clip_before_unscale,
                       .threads = choice.threads});
}

std::string TrainingSetup::description() const {
  // Of a folder the last part of its path says enough, and is the same on every machine.
  const std::string data =
      std::filesystem::path(std::string(dataset_->name()) + "/").parent_path().filename().string();
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
