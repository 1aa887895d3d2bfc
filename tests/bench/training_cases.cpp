#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "experiments/frame/columns.h"
#include "experiments/training/training_setup.h"
#include "tests/bench/case.h"
#include "tests/bench/model_products.h"
#include "tests/bench/python_peers.h"

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
  std::vector<ProductShape> shapes = product_shapes(setup.model(), setup.trainer({}).next_batch());
  double products = products_of(shapes);
};

std::string products_name(std::string_view model, std::string_view policy) {
  return fmt::format("products_{}_{}", model, policy);
}

/// Operands and result of the largest product of some shapes. Of a policy whose tensors are halves they are codes.
class ProductBuffers {
 public:
  ProductBuffers(const std::vector<ProductShape>& shapes, const sim::PrecisionPolicy& policy)
      : storage_(policy.name == "fp32" ? fp16::binary32 : fp16::binary16) {
    std::size_t first = 0, second = 0, result = 0;
    for (const ProductShape& shape : shapes) {
      first = std::max(first, shape.rows * shape.inner);
      second = std::max(second, shape.inner * shape.columns);
      result = std::max(result, shape.rows * shape.columns);
    }
    first_ = stored(first, "first operand");
    second_ = stored(second, "second operand");
    result_.resize(result);
  }

  void multiply(const ProductShape& shape, fp16::Accumulation accumulation) {
    using enum ProductShape::Transposed;
    const auto matrix = [&](const sim::Tensor& values, std::size_t rows, std::size_t columns,
                            bool transposed) {
      return transposed ? values.matrix(columns, rows).transposed() : values.matrix(rows, columns);
    };
    const fp16::MatrixOperand a = matrix(first_, shape.rows, shape.inner, shape.transposed == first),
                              b = matrix(second_, shape.inner, shape.columns, shape.transposed == second);
    for (std::size_t i = 0; i < shape.times; ++i)
      fp16::gemm(a, b, result_.data(), shape.columns, accumulation);
  }

 private:
  sim::Tensor stored(std::size_t size, std::string_view purpose) const {
    return sim::rounded(sim::Tensor::from({size}, normal_values(size, purpose)), storage_);
  }

  fp16::Format storage_;
  sim::Tensor first_, second_;
  std::vector<float> result_;
};

/// The products of a step at their own shapes, one after the other, and nothing else.
Case products_case(const std::shared_ptr<Workload>& workload, const sim::PrecisionPolicy& policy) {
  const auto buffers = std::make_shared<ProductBuffers>(workload->shapes, policy);
  return {.name = products_name(workload->setup.model_name(), policy.name),
          .items = 1,
          .work =
              [workload, buffers, accumulation = policy.products.chain] {
                for (const ProductShape& shape : workload->shapes) buffers->multiply(shape, accumulation);
              },
          .is_peer = true};
}

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
    cases.push_back(products_case(workload, sim::find_precision_policy(policy)));
    cases.push_back(step_case(workload, {.policy = policy, .scaler = "dynamic"}));
    cases.back().needs.push_back(products_name(model, policy));
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

/// What a step costs on average where only every n-th is looked at.
std::string on_average(double overhead, int every, std::string_view program) {
  return fmt::format("{:.2f} every {} ({})", 1 + (overhead - 1) / every, every, program);
}

using experiments::filled;
using experiments::SummaryKey;

const SummaryKey step_overhead{"overhead.step_<model>_<policy>",
                               "time of a step over that of its products alone, at the rate of the policy's "
                               "matrix product of 512^3 in this run; lower is better"};
const SummaryKey step_overhead_at_own_shapes{"overhead.step_<model>_<policy>_own_shapes",
                                             "time of a step over that of its products alone, one after the "
                                             "other at their own shapes; lower is better"};
const SummaryKey step_slowdown{"slowdown.step_<model>_<policy>", "over the step in fp32"};
const SummaryKey slowdown_over_amp{"slowdown.step_<model>_<policy>_over_amp",
                                   "over the step under amp, for policies with products in FP8 and FP4"};
const SummaryKey pytorch_ratio{
    "ratio.step_<model>_fp32_pytorch",
    "PyTorch's time of the same step on one core over ours, by the Python that HALFLAB_TORCH_PYTHON names "
    "(python3); \"not run\" where it imports no torch"};
const SummaryKey array_peer_ratio{
    "ratio.<case>_<library>",
    "our rate of a cast of float32 numbers over that of a Python library on one core, by the same Python"};
const SummaryKey statistics_overhead{
    "overhead.statistics_<model>",
    "time of a step under amp with statistics of every tensor over one without"};
const SummaryKey twin_overhead{"overhead.twin_<model>",
                               "of one that is compared with the FP32 twin, over one that is not"};
const SummaryKey watch_overhead{"overhead.watch_<model>_every_<n>",
                                "PyTorch's time of a training step in fp32 with halflab.torch.watch(every=n) "
                                "over one without, by the same Python"};
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
  return {
      step_overhead,    step_overhead_at_own_shapes, step_slowdown, slowdown_over_amp,        pytorch_ratio,
      array_peer_ratio, statistics_overhead,         twin_overhead, flight_recorder_overhead, watch_overhead};
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
      figures.push_back({.key = filled(step_overhead_at_own_shapes.name, {model.name, policy}),
                         .value = rates.at(products_name(model.name, policy)) / rate,
                         .limit = target ? "at most 1.35" : ""});
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
  const PythonFigures seconds = run_python("pytorch_steps.py");
  std::vector<Derived> figures;
  for (const sim::ModelRow& model : sim::models()) {
    Derived& figure = figures.emplace_back(
        Derived{.key = filled(pytorch_ratio.name, {model.name}), .limit = "at least 0.67"});
    const auto found = seconds.found.find(model.name);
    if (found != seconds.found.end()) {
      figure.value = found->second.value * rates.at(step_name(model.name, "fp32"));
    } else {
      figure.why_not_run = seconds.absence;
    }
  }
  return figures;
}

std::vector<Derived> derive_from_watch() {
  const PythonFigures overheads = run_python("pytorch_watch.py");
  std::vector<Derived> figures;
  for (const std::string_view model : {"cnn", "transformer"}) {
    for (const auto& [every, limit] : {std::pair{"50", "at most 1.03"}, {"1", "at most 1.25"}}) {
      Derived& figure =
          figures.emplace_back(Derived{.key = filled(watch_overhead.name, {model, every}), .limit = limit});
      const auto found = overheads.found.find(fmt::format("{}_every_{}", model, every));
      if (found == overheads.found.end()) {
        figure.why_not_run = overheads.absence;
        continue;
      }
      figure.value = found->second.value;
      figure.note = found->second.note;
    }
  }
  return figures;
}

std::vector<Derived> derive_from_array_peers(const Rates& rates) {
  const PythonFigures peers = run_python("array_peers.py");
  std::vector<Derived> figures;
  for (const auto& [name, peer] : peers.found) {
    const std::string library = peer.note.substr(0, peer.note.find(' '));
    const std::string timed = name.substr(0, name.size() - library.size() - 1);
    figures.push_back({.key = filled(array_peer_ratio.name, {timed, library}),
                       .value = rates.at(timed) / peer.value,
                       .note = peer.note});
  }
  if (figures.empty())
    figures.push_back(
        {.key = filled(array_peer_ratio.name, {"encode_nvfp4", "torchao"}), .why_not_run = peers.absence});
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
