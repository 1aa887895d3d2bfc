#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <memory>

#include "experiments/common/training_setup.h"
#include "sim/loss_scaling/registry.h"
#include "sim/statistics/exponent_histogram.h"
#include "tests/bench/case.h"

namespace bench {
namespace {

void add_histogram(std::vector<Case>& cases) {
  static const std::vector<float> values = gradient_like_values(array_size, "histogram");
  sim::ExponentHistogram check;
  check.add(values);
  require(check.total() == array_size, "exponent_histogram");
  cases.push_back({"exponent_histogram", array_size, [] {
                     sim::ExponentHistogram histogram;
                     histogram.add(values);
                     benchmark::DoNotOptimize(histogram.max_abs());
                   }});
}

/// Whole training steps of each model under each policy, without twin or statistics.
void add_steps(std::vector<Case>& cases) {
  for (const sim::ModelRow& model : sim::models()) {
    for (const sim::PrecisionPolicy& policy : sim::precision_policies()) {
      auto options = std::make_shared<experiments::TrainingOptions>();
      options->model = model.name;
      auto setup = std::make_shared<experiments::TrainingSetup>(*options);
      auto trainer =
          std::make_shared<sim::Trainer>(setup->trainer(policy.name, sim::make_scaler("dynamic"), 0));
      cases.push_back({fmt::format("step_{}_{}", model.name, policy.name), 1,
                       [options, setup, trainer] { trainer->step(); }});
    }
  }
}

}  // namespace

void add_training_cases(std::vector<Case>& cases) {
  add_histogram(cases);
  add_steps(cases);
}

}  // namespace bench
