#include "sim/models/model.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "sim/ops/batch_norm.h"
#include "sim/ops/layer_norm.h"
#include "sim/ops/linear.h"
#include "sim/ops/scale.h"
#include "sim/tensor/random.h"

namespace sim {
namespace {

std::string weight_of(std::string_view layer) {
  return std::string(layer) + ".weight";
}
std::string bias_of(std::string_view layer) {
  return std::string(layer) + ".bias";
}
std::string running_mean_of(std::string_view layer) {
  return std::string(layer) + ".running_mean";
}
std::string running_variance_of(std::string_view layer) {
  return std::string(layer) + ".running_variance";
}

Initialisation weights_for(WeightInitialisation rule, const Shape& weight) {
  const float fan_in = static_cast<float>(element_count(weight) / weight.front());
  switch (rule) {
    case WeightInitialisation::torch_default:
      return Initialisation::uniform(std::sqrt(1.0f / fan_in));
    case WeightInitialisation::he_uniform:
      return Initialisation::uniform(std::sqrt(6.0f / fan_in));
    case WeightInitialisation::he_normal:
      return Initialisation::normal(std::sqrt(2.0f / fan_in));
  }
  throw std::logic_error("initialisation without a rule");
}

float initial_value(const Initialisation& initialisation, const RandomStream& random, std::uint64_t index) {
  switch (initialisation.kind) {
    case Initialisation::Kind::constant:
      return initialisation.value;
    case Initialisation::Kind::uniform:
      return (2 * random.uniform(index) - 1) * initialisation.value;
    case Initialisation::Kind::normal:
      return random.normal(index) * initialisation.value;
  }
  return 0;
}

}  // namespace

fp16::Format model_format(const PrecisionPolicy& policy, const ParameterSpec& spec) {
  return policy.keep_batchnorm_fp32 && spec.of_batch_norm ? fp16::binary32 : policy.model;
}

fp16::Format kept_format(const PrecisionPolicy& policy, const ParameterSpec& spec) {
  const fp16::Format seen = model_format(policy, spec);
  return fp16::contains(seen, policy.weights) ? seen : policy.weights;
}

std::vector<Tensor> initial_values(std::span<const ParameterSpec> specs, std::uint64_t seed) {
  std::vector<Tensor> values;
  for (const ParameterSpec& spec : specs) {
    const RandomStream random(seed, "weights " + spec.name);
    Tensor& tensor = values.emplace_back(spec.shape, fp16::binary32);
    std::uint64_t index = 0;
    for (float& w : tensor.elements<float>()) w = initial_value(spec.initialisation, random, index++);
  }
  return values;
}

void ParameterList::add(std::string name, Shape shape, Initialisation initialisation) {
  specs_.push_back({.name = std::move(name), .shape = std::move(shape), .initialisation = initialisation});
}

void ParameterList::add_layer(std::string_view layer, Shape weight, WeightInitialisation rule) {
  const Initialisation initialisation = weights_for(rule, weight);
  const std::size_t outputs = weight.front();
  add(weight_of(layer), std::move(weight), initialisation);
  add(bias_of(layer), {outputs},
      rule == WeightInitialisation::torch_default ? initialisation : Initialisation::constant(0));
}

void ParameterList::add_layer(std::string_view layer, Shape weight, Initialisation initialisation) {
  const std::size_t outputs = weight.front();
  add(weight_of(layer), std::move(weight), initialisation);
  add(bias_of(layer), {outputs}, Initialisation::constant(0));
}

void ParameterList::add_layer_without_bias(std::string_view layer, Shape weight, WeightInitialisation rule) {
  const Initialisation initialisation = weights_for(rule, weight);
  add(weight_of(layer), std::move(weight), initialisation);
}

void ParameterList::add_layer_norm(std::string_view layer, std::size_t features) {
  add(weight_of(layer), {features}, Initialisation::constant(1));
  add(bias_of(layer), {features}, Initialisation::constant(0));
}

void ParameterList::add_batch_norm(std::string_view layer, std::size_t channels) {
  add_layer_norm(layer, channels);
  for (ParameterSpec& spec : std::span(specs_).last(2)) spec.of_batch_norm = true;
}

void add_running_statistics(std::vector<ParameterSpec>& buffers, std::string_view layer,
                            std::size_t channels) {
  buffers.push_back({running_mean_of(layer), {channels}, Initialisation::constant(0)});
  buffers.push_back({running_variance_of(layer), {channels}, Initialisation::constant(1)});
}

ForwardContext::ForwardContext(Tape& tape, std::span<const ParameterSpec> specs,
                               std::span<const Tensor* const> weights, Buffers& buffers, const Batch& batch)
    : tape_(tape), buffers_(buffers), batch_(batch) {
  for (std::size_t i = 0; i < specs.size(); ++i)
    parameters_.emplace(specs[i].name, tape.parameter(specs[i].name, *weights[i]));
}

Variable ForwardContext::parameter(std::string_view name) const {
  const auto found = parameters_.find(name);
  if (found == parameters_.end()) throw std::logic_error("no parameter '" + std::string(name) + "'");
  return found->second;
}

Variable ForwardContext::inputs(Shape shape) {
  return constant(Tensor::from(std::move(shape), batch_.inputs));
}

Variable ForwardContext::constant(Tensor values) {
  const fp16::Format format = tape_.policy().model;
  return tape_.constant(format == fp16::binary32 ? std::move(values) : rounded(values, format));
}

Variable ForwardContext::apply(const Operation& operation, std::vector<Variable> inputs,
                               OperationOptions options) {
  return tape_.apply(operation, std::move(inputs), {}, std::move(options));
}

Variable ForwardContext::gain(Variable x, double forward, double backward) {
  if (tape_.has_unit_scaling()) return x;
  return apply(scale, {x}, ScaleOptions{.forward_factor = forward, .backward_factor = backward});
}

Variable ForwardContext::residual(Variable x, const std::function<Variable(Variable)>& branch) {
  return tape_.residual(x, branch);
}

Variable ForwardContext::linear(std::string_view layer, Variable x) {
  std::vector<Variable> inputs{x, parameter(weight_of(layer))};
  if (parameters_.contains(bias_of(layer))) inputs.push_back(parameter(bias_of(layer)));
  return tape_.apply(sim::linear, std::move(inputs), layer);
}

Variable ForwardContext::conv2d(std::string_view layer, Variable x, const Conv2dOptions& options) {
  std::vector<Variable> inputs{x, parameter(weight_of(layer))};
  if (parameters_.contains(bias_of(layer))) inputs.push_back(parameter(bias_of(layer)));
  return tape_.apply(sim::conv2d, std::move(inputs), layer, options);
}

Variable ForwardContext::layer_norm(std::string_view layer, Variable x) {
  return tape_.apply(sim::layer_norm, {x, parameter(weight_of(layer)), parameter(bias_of(layer))});
}

Variable ForwardContext::batch_norm(std::string_view layer, Variable x) {
  return tape_.apply(sim::batch_norm, {x, parameter(weight_of(layer)), parameter(bias_of(layer))}, {},
                     BatchNormOptions{.running_mean = &buffers_.at(running_mean_of(layer)),
                                      .running_variance = &buffers_.at(running_variance_of(layer))});
}

Score Model::score(const Tape& tape, const ForwardPass& pass, const Batch& batch) const {
  return is_classifier() ? score_rows(tape.value(pass.outputs.front()), batch.labels) : Score{};
}

Score score_rows(const Tensor& logits, std::span<const std::int32_t> labels) {
  const std::size_t classes = logits.size() / labels.size();
  std::vector<double> buffer(classes);
  Score score;
  for (std::size_t row = 0; row < labels.size(); ++row) {
    if (labels[row] < 0) continue;
    const double* first = read(logits, row * classes, classes, buffer);
    score.correct += std::max_element(first, first + classes) - first == labels[row];
    ++score.predictions;
  }
  return score;
}

}  // namespace sim
