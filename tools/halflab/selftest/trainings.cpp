#include <fmt/format.h>

#include <array>
#include <string_view>

#include "experiments/training/training_setup.h"
#include "tools/halflab/selftest/fnv1a.h"
#include "tools/halflab/selftest/groups.h"

namespace halflab::selftest {
namespace {

/// A run on generated data: everything in FP32; autocast where scales are too large at first; and pure FP16.
struct Training {
  std::string_view model, policy, scaler;
  int steps;
};

constexpr std::array trainings{Training{"mlp", "fp32", "none", 40},
                               Training{"cnn", "amp", "dynamic:init_scale=1e9:growth_interval=4", 20},
                               Training{"lstm", "fp16", "adaptive", 20}};

void add(Fnv1a& hash, const sim::StepRecord& step) {
  hash.add(std::array{step.loss, step.scale});
  hash.add(static_cast<std::uint64_t>(step.decision), 8);
}

/// Loss, scale and decision of each step; then weights, buffers and optimizer's state, by name.
std::uint64_t hash_of(const Training& training) {
  experiments::TrainingOptions options;
  options.model = training.model;
  const experiments::TrainingSetup setup(options);
  sim::Trainer trainer =
      setup.trainer({.policy = std::string(training.policy), .scaler = std::string(training.scaler)});
  Fnv1a hash;
  for (int step = 0; step < training.steps; ++step) add(hash, trainer.step());
  for (const sim::TrainerState::Array& array : trainer.save().arrays) {
    hash.add(array.name);
    hash.add(std::span<const std::uint8_t>(array.bytes));
  }
  return hash.value();
}

}  // namespace

std::vector<Row> training_rows() {
  std::vector<Row> rows;
  for (const Training& training : trainings)
    rows.push_back(
        {fmt::format("{} {} {}, {} steps", training.model, training.policy, training.scaler, training.steps),
         [&] { return hash_of(training); }});
  return rows;
}

}  // namespace halflab::selftest
