#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <map>
#include <memory>
#include <span>
#include <utility>

#include "experiments/common/training_setup.h"
#include "sim/random.h"
#include "sim/statistics/cast_counts.h"
#include "sim/statistics/exponent_histogram.h"
#include "tests/bench/case.h"
#include "tests/bench/model_products.h"

namespace bench {
namespace {

/// Magnitudes log-uniform from 2^-34 to 2^0, of either sign, but for the share of zeros at random places.
std::vector<float> values_with_zeros(std::size_t count, float zeros) {
  const sim::RandomStream exponents(2, "histogram"), fates(2, "histogram zeros");
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) {
    const float magnitude = std::exp2(-34 * exponents.uniform(i));
    values[i] = fates.uniform(i) < zeros ? 0 : fates.bits(i) & 1 ? magnitude : -magnitude;
  }
  return values;
}

/// The histogram of an array too large for the caches, and from it what a cast to FP16 does at one scale.
void add_histogram(std::vector<Case>& cases) {
  constexpr std::size_t size = std::size_t{1} << 24;
  constexpr int log2_scale = 5;
  for (const auto& [name, zeros] :
       {std::pair{"exponent_histogram", 0.0f}, std::pair{"exponent_histogram_sparse", 0.67f}}) {
    const auto values = std::make_shared<std::vector<float>>(values_with_zeros(size, zeros));
    const auto count = [values] {
      sim::ExponentHistogram histogram;
      histogram.add(std::span<const float>(*values));
      return sim::CastCounts{.total = histogram.total(),
                             .zero_before = histogram.zero(),
                             .flushed = histogram.flushed_at_scale(log2_scale),
                             .subnormal = histogram.subnormal_at_scale(log2_scale),
                             .overflowed = histogram.overflowed_at_scale(log2_scale),
                             .nonfinite_before = histogram.infinite() + histogram.nan()};
    };
    require(count() == sim::count_casts(*values, log2_scale), name);
    cases.push_back({name, size, [count] { benchmark::DoNotOptimize(count()); }});
  }
}

std::string step_name(std::string_view model, std::string_view policy) {
  return fmt::format("step_{}_{}", model, policy);
}

/// Whole training steps, without twin or statistics.
void add_step(std::vector<Case>& cases, std::string_view model, std::string_view policy, int threads = 1) {
  auto options = std::make_shared<experiments::TrainingOptions>();
  options->model = model;
  const auto setup = std::make_shared<experiments::TrainingSetup>(*options);
  const auto trainer = std::make_shared<sim::Trainer>(
      setup->trainer({.policy = std::string(policy), .scaler = "dynamic", .threads = threads}));
  cases.push_back({.name = step_name(model, policy) +
                           (threads == 1 ? std::string() : fmt::format("_{}_threads", threads)),
                   .items = 1,
                   .work = [options, setup, trainer] { trainer->step(); },
                   .threads = threads});
}

constexpr std::array compared_policies{"fp32", "amp", "fp16"};

/// Every model under the policies that are compared, the first one under all.
void add_steps(std::vector<Case>& cases) {
  for (const sim::ModelRow& model : sim::models()) {
    for (const std::string_view policy : compared_policies) {
      add_step(cases, model.name, policy);
      if (products_of_step(model.name) > 0) add_step(cases, model.name, policy, 2);
    }
  }
  for (const sim::PrecisionPolicy& policy : sim::precision_policies()) {
    if (std::ranges::find(compared_policies, policy.name) == compared_policies.end())
      add_step(cases, sim::models().front().name, policy.name);
  }
}

/// Seconds that PyTorch needs for a step of each model on one core; empty where python3 has no torch.
std::map<std::string, double> pytorch_steps() {
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(
      popen("python3 '" HALFLAB_BENCH_DIR "/pytorch_steps.py' 2>/dev/null", "r"), pclose);
  std::map<std::string, double> seconds;
  char model[64];
  double value;
  while (pipe && std::fscanf(pipe.get(), "%63s %lf", model, &value) == 2) seconds[model] = value;
  return seconds;
}

}  // namespace

void add_training_cases(std::vector<Case>& cases) {
  add_histogram(cases);
  add_steps(cases);
}

std::vector<Derived> derive_from_steps(const Rates& rates) {
  std::vector<Derived> figures;
  const std::map<std::string, double> pytorch = pytorch_steps();
  for (const sim::ModelRow& model : sim::models()) {
    const double products = products_of_step(model.name);
    for (const std::string_view policy : compared_policies) {
      const std::string name = step_name(model.name, policy);
      const double rate = rates.at(name);
      if (products > 0) {
        const double product_rate = rates.at(policy == "fp16" ? "gemm_fp16_fma" : "gemm_fp32_chain");
        figures.push_back({"overhead." + name, product_rate / (products * rate),
                           model.name == "mlp" ? "at most 1.6" : "at most 2.5"});
      }
      if (policy != "fp32") {
        figures.push_back({"slowdown." + name, rates.at(step_name(model.name, "fp32")) / rate,
                           policy == "amp" ? "at most 2.5" : "at most 8"});
      }
    }
    const auto peer = pytorch.find(std::string(model.name));
    if (peer != pytorch.end()) {
      figures.push_back({fmt::format("ratio.step_{}_fp32_pytorch", model.name),
                         peer->second * rates.at(step_name(model.name, "fp32")), "at least 0.67"});
    }
  }
  return figures;
}

}  // namespace bench
