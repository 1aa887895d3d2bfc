#pragma once
/// Small trainings of every model, for tests.

#include <algorithm>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "fp16/names.h"
#include "sim/data/digits.h"
#include "sim/data/generated_text.h"
#include "sim/data/scenes.h"
#include "sim/loss_scaling/registry.h"
#include "sim/models/registry.h"
#include "sim/optimizers/registry.h"
#include "sim/schedules/registry.h"
#include "sim/trainer/trainer.h"
#include "tests/sim/ops/evaluation.h"

namespace training_runs {

/// The built-in data of a kind, less of them than a real run has; drawn once.
inline const sim::Dataset& data_of(sim::DataKind kind) {
  static const sim::ImageDataset digits = sim::draw_digits({.training_size = 1000, .test_size = 300});
  static const sim::TextDataset text = sim::generate_text({.context = 16, .size = 20'000});
  static const sim::SceneDataset scenes = sim::draw_scenes({.training_size = 60, .test_size = 10});
  switch (kind) {
    case sim::DataKind::images:
      return digits;
    case sim::DataKind::text:
      return text;
    case sim::DataKind::scenes:
      return scenes;
  }
  throw std::logic_error("no such kind of data");
}

/// A model with options, small enough to train within a blink.
inline std::string small_spec(std::string_view model) {
  static const std::map<std::string, std::string, std::less<>> specs{
      {"mlp", "mlp:hidden1=48:hidden2=32"},
      {"autoencoder", "autoencoder:width=32"},
      {"cnn", "cnn:channels=2"},
      {"ssd", "ssd:channels=2"},
      {"transformer", "transformer:layers=1:width=16:heads=2"},
      {"lstm", "lstm:layers=2:width=16"},
  };
  const auto found = specs.find(model);
  return found == specs.end() ? std::string(model) : found->second;
}

inline std::unique_ptr<sim::Model> make_model(const std::string& text) {
  const auto [name, options] = names::parse_numeric_spec(text);
  const sim::ModelRow& row = sim::find_model(name);
  return row.make(data_of(row.data), options);
}

/// All as specs (fp16/names.h); an empty optimizer or schedule is the model's own.
struct Setup {
  std::string model = small_spec("mlp");
  std::string policy = "amp";
  std::string scaler = "dynamic";
  std::string optimizer;
  std::string schedule;
  sim::TrainerOptions options = {.batch = 16, .seed = 3};
};

struct Run {
  std::unique_ptr<sim::Model> model;
  const sim::Dataset& data;
  sim::Trainer trainer;
  std::vector<sim::StepRecord> steps;

  void train(int count) {
    for (int step = 0; step < count; ++step) steps.push_back(trainer.step());
  }
};

/// A run with a scaler that no registry has.
inline Run start(const Setup& setup, sim::AnyScaler scaler) {
  const auto [name, model_options] = names::parse_numeric_spec(setup.model);
  const sim::ModelRow& row = sim::find_model(name);
  const sim::Dataset& data = data_of(row.data);
  const sim::PrecisionPolicy policy = sim::make_precision_policy(setup.policy);
  const bool own_optimizer = setup.optimizer.empty();
  auto [optimizer, optimizer_options] =
      names::parse_numeric_spec(own_optimizer ? row.optimizer : std::string_view(setup.optimizer));
  if (own_optimizer) optimizer_options.try_emplace("learning_rate", row.learning_rate);
  const auto [schedule, schedule_options] =
      names::parse_numeric_spec(setup.schedule.empty() ? row.schedule : std::string_view(setup.schedule));
  std::unique_ptr<sim::Model> model = row.make(data, model_options);
  const sim::Model& borrowed = *model;
  return {.model = std::move(model),
          .data = data,
          .trainer = sim::Trainer(
              borrowed, data, policy, std::move(scaler),
              sim::make_optimizer(optimizer, optimizer_options,
                                  policy.update_arithmetic(setup.options.seed, setup.options.threads)),
              sim::make_schedule(schedule, schedule_options), setup.options)};
}

inline Run start(const Setup& setup) {
  const auto [scaler, options] = names::parse_numeric_spec(setup.scaler);
  return start(setup, sim::make_any_scaler(scaler, options));
}

inline Run run(const Setup& setup, int steps) {
  Run result = start(setup);
  result.train(steps);
  return result;
}

/// Weights and buffers equal in every byte.
inline bool same_state(const sim::ModelState& a, const sim::ModelState& b) {
  const auto same_buffer = [](const auto& one, const auto& other) {
    return one.first == other.first && same_bytes(one.second, other.second);
  };
  return std::ranges::equal(a.weights, b.weights, same_bytes) &&
         std::ranges::equal(a.buffers, b.buffers, same_buffer);
}

}  // namespace training_runs
