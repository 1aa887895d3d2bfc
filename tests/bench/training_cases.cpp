#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "experiments/frame/columns.h"
#include "experiments/training/training_setup.h"
#include "tests/bench/case.h"
#include "tests/bench/model_products.h"

namespace bench {
namespace {

std::string step_name(std::string_view model, std::string_view policy, std::string_view variant = {}) {
  return fmt::format("step_{}_{}{}", model, policy, variant);
}

/// Models whose steps have targets of their overhead.
constexpr std::array<std::pair<std::string_view, double>, 5> step_targets{
    {{"mlp", 1.6}, {"cnn", 1.7}, {"transformer", 2.5}, {"lstm", 2.2}, {"ssd", 1.5}}};

/// Models whose steps are timed on two threads and with instruments too.
constexpr std::array<std::string_view, 3> models_looked_into{"mlp", "cnn", "transformer"};

bool is_looked_into(std::string_view model) {
  return std::ranges::find(models_looked_into, model) != models_looked_into.end();
}

std::optional<double> find_target(std::string_view model) {
  const auto found = std::ranges::find(step_targets, model, &std::pair<std::string_view, double>::first);
  return found == step_targets.end() ? std::nullopt : std::optional(found->second);
}

/// The case of the products that a policy's linear maps consist of.
std::string_view product_case(std::string_view policy) {
  return policy == "fp16" ? "gemm_fp16_fma" : "gemm_fp32_chain";
}

constexpr std::string_view with_statistics = "_statistics", with_twin = "_twin",
                           with_flight_recorder = "_flight_recorder", on_two_threads = "_2_threads";

/// A model at its own size and batch, and data for it.
struct Workload {
  explicit Workload(std::string_view model) : options{.model = std::string(model)} {}

  experiments::TrainingOptions options;
  experiments::TrainingSetup setup{options};
  double products = products_of_step(setup.model(), setup.trainer({}).next_batch());
};

Case step_case(const std::shared_ptr<Workload>& workload, const experiments::RunChoice& choice,
               std::string_view variant = {}) {
  const auto trainer = std::make_shared<sim::Trainer>(workload->setup.trainer(choice));
  const std::string_view model = workload->setup.model_name();
  return {.name = step_name(model, choice.policy, variant),
          .items = 1,
          .work = [workload, trainer] { trainer->step(); },
          .threads = choice.threads,
          .products = workload->products,
          .is_instrumented = choice.statistics_every + choice.twin_every > 0 || choice.record_skips,
          .needs = {step_name(model, "fp32"), step_name(model, "amp"), std::string(product_case("fp32")),
                    std::string(product_case(choice.policy))}};
}

constexpr std::array compared_policies{"fp32", "amp", "fp16"};

/// Whole training steps, without twin or statistics.
void add_plain_steps(std::vector<Case>& cases, const std::shared_ptr<Workload>& workload) {
  const std::string_view model = workload->setup.model_name();
  for (const std::string policy : compared_policies) {
    cases.push_back(step_case(workload, {.policy = policy, .scaler = "dynamic"}));
    if (!is_looked_into(model)) continue;
    cases.push_back(
        step_case(workload, {.policy = policy, .scaler = "dynamic", .threads = 2}, on_two_threads));
  }
  if (model != sim::models().front().name) return;
  for (const sim::PrecisionPolicy& policy : sim::precision_policies()) {
    if (std::ranges::find(compared_policies, policy.name) == compared_policies.end())
      cases.push_back(step_case(workload, {.policy = std::string(policy.name), .scaler = "dynamic"}));
  }
}

/// Steps every one of which is looked at.
void add_instrumented_steps(std::vector<Case>& cases, const std::shared_ptr<Workload>& workload) {
  cases.push_back(
      step_case(workload, {.policy = "amp", .scaler = "dynamic", .statistics_every = 1}, with_statistics));
  cases.push_back(step_case(workload, {.policy = "amp", .scaler = "dynamic", .twin_every = 1}, with_twin));
  cases.push_back(step_case(workload, {.policy = "amp", .scaler = "dynamic", .record_skips = true},
                            with_flight_recorder));
}

/// Models whose FP32 steps pytorch_steps.py has too.
constexpr std::array<std::string_view, 4> models_in_pytorch{"mlp", "cnn", "ssd", "transformer"};

/// Seconds that PyTorch needs for a step of each model on one core, or why there are none.
struct PyTorchSteps {
  std::map<std::string, double, std::less<>> seconds;
  std::string absence;
};

/// By the Python that HALFLAB_TORCH_PYTHON names, or the first on the PATH. The last line that it prints besides
/// the times says why some are missing.
PyTorchSteps time_pytorch() {
  const char* named = std::getenv("HALFLAB_TORCH_PYTHON");
  const std::string python = named != nullptr && *named != '\0' ? named : "python3";
  const std::string command = fmt::format("'{}' '" HALFLAB_BENCH_DIR "/pytorch_steps.py' 2>&1", python);
  FILE* pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) return {.absence = "no process could be started"};
  PyTorchSteps steps;
  std::string last_line = "nothing was printed";
  std::array<char, 1024> line;
  while (std::fgets(line.data(), static_cast<int>(line.size()), pipe) != nullptr) {
    std::array<char, 64> model;
    std::array<char, 2> rest;
    double seconds;
    if (std::sscanf(line.data(), "%63s %lf %1s", model.data(), &seconds, rest.data()) == 2) {
      steps.seconds[model.data()] = seconds;
    } else {
      last_line = line.data();
    }
  }
  pclose(pipe);
  last_line.erase(last_line.find_last_not_of(" \n") + 1);
  steps.absence = fmt::format("{}: {} (HALFLAB_TORCH_PYTHON names another Python)", python, last_line);
  return steps;
}

/// What a step costs on average where only every n-th is looked at.
std::string on_average(double overhead, int every, std::string_view program) {
  return fmt::format("{:.2f} every {} ({})", 1 + (overhead - 1) / every, every, program);
}

using experiments::filled;
using experiments::SummaryKey;

const SummaryKey step_overhead{"overhead.step_<model>_<policy>",
                               "time of a step over that of its products alone, at the rate of the policy's "
                               "matrix product of 512^3 in this run; lower is better"};
const SummaryKey step_slowdown{"slowdown.step_<model>_<policy>", "over the step in fp32"};
const SummaryKey slowdown_over_amp{"slowdown.step_<model>_<policy>_over_amp",
                                   "over the step under amp, for policies with products in FP8 and FP4"};
const SummaryKey pytorch_ratio{
    "ratio.step_<model>_fp32_pytorch",
    "PyTorch's time of the same step on one core over ours, by the Python that HALFLAB_TORCH_PYTHON names "
    "(python3); \"not run\" where it imports no torch"};
const SummaryKey statistics_overhead{
    "overhead.statistics_<model>",
    "time of a step under amp with statistics of every tensor over one without"};
const SummaryKey twin_overhead{"overhead.twin_<model>",
                               "of one that is compared with the FP32 twin, over one that is not"};
const SummaryKey flight_recorder_overhead{
    "overhead.flight_recorder_<model>", "of one that is looked into if it is skipped, over one that is not"};

void add_slowdowns_over_amp(std::vector<Derived>& figures, std::string_view model, const Rates& rates) {
  for (const sim::PrecisionPolicy& policy : sim::precision_policies()) {
    const auto rate = rates.find(step_name(model, policy.name));
    if (!policy.operands.narrows() || rate == rates.end()) continue;
    figures.push_back({.key = filled(slowdown_over_amp.name, {model, policy.name}),
                       .value = rates.at(step_name(model, "amp")) / rate->second,
                       .limit = policy.operands.narrows_per_tensor() ? "at most 1.15" : "at most 1.2"});
  }
}

}  // namespace

std::vector<SummaryKey> derived_keys() {
  return {step_overhead,       step_slowdown, slowdown_over_amp,       pytorch_ratio,
          statistics_overhead, twin_overhead, flight_recorder_overhead};
}

void add_training_cases(std::vector<Case>& cases) {
  for (const sim::ModelRow& model : sim::models()) {
    const auto workload = std::make_shared<Workload>(model.name);
    add_plain_steps(cases, workload);
    if (is_looked_into(model.name)) add_instrumented_steps(cases, workload);
  }
}

std::vector<Derived> derive_from_steps(const std::vector<Case>& cases, const Rates& rates) {
  std::vector<Derived> figures;
  for (const sim::ModelRow& model : sim::models()) {
    const std::optional<double> target = find_target(model.name);
    for (const std::string_view policy : compared_policies) {
      const std::string name = step_name(model.name, policy);
      if (!rates.contains(name)) continue;
      const double rate = rates.at(name), products = std::ranges::find(cases, name, &Case::name)->products;
      figures.push_back({.key = filled(step_overhead.name, {model.name, policy}),
                         .value = rates.at(std::string(product_case(policy))) / (products * rate),
                         .limit = target ? fmt::format("at most {}", *target) : std::string()});
      if (policy == "fp32") continue;
      figures.push_back({.key = filled(step_slowdown.name, {model.name, policy}),
                         .value = rates.at(step_name(model.name, "fp32")) / rate,
                         .limit = policy == "amp" ? "at most 2.5" : "at most 8"});
    }
    add_slowdowns_over_amp(figures, model.name, rates);
  }
  return figures;
}

std::vector<Derived> derive_from_pytorch(const Rates& rates) {
  const PyTorchSteps peer = time_pytorch();
  std::vector<Derived> figures;
  for (const std::string_view model : models_in_pytorch) {
    Derived& figure =
        figures.emplace_back(Derived{.key = filled(pytorch_ratio.name, {model}), .limit = "at least 0.67"});
    const auto seconds = peer.seconds.find(model);
    if (seconds != peer.seconds.end()) {
      figure.value = seconds->second * rates.at(step_name(model, "fp32"));
    } else {
      figure.why_not_run = peer.absence;
    }
  }
  return figures;
}

std::vector<Derived> derive_from_instruments(const Rates& rates) {
  std::vector<Derived> figures;
  for (const std::string_view model : models_looked_into) {
    const auto add = [&](const SummaryKey& key, std::string_view instrument) -> Derived* {
      const auto rate = rates.find(step_name(model, "amp", instrument));
      if (rate == rates.end()) return nullptr;
      return &figures.emplace_back(Derived{.key = filled(key.name, {model}),
                                           .value = rates.at(step_name(model, "amp")) / rate->second});
    };
    if (Derived* figure = add(statistics_overhead, with_statistics)) figure->limit = "at most 1.2";
    if (Derived* figure = add(twin_overhead, with_twin))
      figure->note = fmt::format("{}, {}", on_average(*figure->value, 10, "scaler_comparison"),
                                 on_average(*figure->value, 50, "training"));
    if (Derived* figure = add(flight_recorder_overhead, with_flight_recorder))
      figure->note = "of steps that are applied";
  }
  return figures;
}

}  // namespace bench
