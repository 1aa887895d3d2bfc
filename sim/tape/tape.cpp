#include "sim/tape/tape.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <stdexcept>
#include <utility>

#include "sim/ops/add.h"
#include "sim/ops/cast.h"
#include "sim/ops/elementwise.h"
#include "sim/ops/scale.h"
#include "sim/tape/layer_gradient.h"
#include "sim/tape/operation_formats.h"
#include "sim/tensor/extremes.h"

namespace sim {
namespace {

std::vector<fp16::Format> formats_in(const Tape& tape, const std::vector<Variable>& variables) {
  std::vector<fp16::Format> formats;
  for (const Variable variable : variables) formats.push_back(tape.value(variable).format());
  return formats;
}

void multiply_by(double factor, const RoundedOutput& values) {
  with_real(is_binary64(*values.tensor), [&](auto real) {
    using Real = decltype(real);
    map_elements<Real, 1>(values, {values.tensor},
                          [factor](Real x) { return x * static_cast<Real>(factor); });
  });
}

}  // namespace

Tape::Tape(const PrecisionPolicy& policy, const TapeOptions& options)
    : policy_(&policy),
      options_(options),
      arithmetic_{.products = policy.products, .reductions = policy.reductions, .threads = options.threads} {}

Variable Tape::record(Node node) {
  nodes_.push_back(std::move(node));
  return {nodes_.size() - 1};
}

Variable Tape::constant(Tensor value) {
  Node node;
  node.owned = std::move(value);
  node.owned.charge_to(MemoryRole::activations);
  return record(std::move(node));
}

Variable Tape::parameter(std::string name, const Tensor& value) {
  Node node;
  node.borrowed = &value;
  node.needs_gradient = true;
  const Variable variable = record(std::move(node));
  sites_.push_back({std::move(name), GradientSite::Kind::weight, variable});
  return variable;
}

const Tensor& Tape::value(Variable variable) const {
  return nodes_[variable.index].value();
}

std::string Tape::parameter_name(Variable variable) const {
  while (nodes_[variable.index].operation == &cast) variable = nodes_[variable.index].inputs[0];
  if (nodes_[variable.index].borrowed == nullptr) return {};
  return std::ranges::find(sites_, variable.index,
                           [](const GradientSite& site) { return site.variable.index; })
      ->name;
}

ValueName Tape::name_of(Variable variable) const {
  const Node& node = nodes_[variable.index];
  if (node.operation == nullptr) return {node.borrowed ? "parameter" : "input", parameter_name(variable)};
  if (!node.layer.empty()) return {node.operation->name, node.layer};
  if (std::string name = parameter_name(variable); !name.empty()) return {node.operation->name, name};
  for (const Variable input : node.inputs) {
    // "mlp.norm.weight" belongs to the layer "mlp.norm".
    if (const std::string name = parameter_name(input); !name.empty())
      return {node.operation->name, name.substr(0, name.rfind('.'))};
  }
  return {node.operation->name, name_of(node.inputs[0]).layer};
}

std::optional<Variable> Tape::first_nonfinite_value() const {
  for (std::size_t index = 0; index < nodes_.size(); ++index) {
    if (first_nonfinite(nodes_[index].value())) return Variable{index};
  }
  return std::nullopt;
}

Variable Tape::cast_to(Variable variable, fp16::Format format) {
  if (value(variable).format() == format) return variable;
  const Node& node = nodes_[variable.index];
  const bool is_cached = node.borrowed && node.needs_gradient && format == policy_->lower_precision;
  if (is_cached && node.lower_precision_copy) return *node.lower_precision_copy;
  const Variable copy = apply(cast, {variable}, {}, CastOptions{.format = format});
  if (is_cached) nodes_[variable.index].lower_precision_copy = copy;
  return copy;
}

fp16::Format Tape::widest_of(const std::vector<Variable>& inputs) const {
  return sim::widest_of(formats_in(*this, inputs));
}

fp16::Format Tape::cast_inputs(const Operation& operation, std::vector<Variable>& inputs) {
  if (&operation == &cast) return {};  // its options say
  const bool is_banned = policy_->casts != CastList::none && !operation.keeps_first_format &&
                         autocast_class(operation, *policy_) == AutocastClass::banned;
  if (is_banned &&
      (policy_->casts == CastList::torch_autocast || widest_of(inputs) == policy_->lower_precision)) {
    throw std::invalid_argument("operation " + std::string(operation.name) + ": not safe in " +
                                std::string(fp16::name_of(policy_->lower_precision)) + " under policy " +
                                std::string(policy_->name) + "; use " + std::string(operation.replacement));
  }
  const OperationFormats formats = formats_of(operation, *policy_, formats_in(*this, inputs));
  if (formats.inputs) {
    for (Variable& input : inputs) input = cast_to(input, *formats.inputs);
  }
  return formats.output;
}

RandomStream Tape::random_of(std::size_t node, std::string_view purpose) const {
  return RandomStream(options_.seed, std::string(purpose) + " step " + std::to_string(options_.step) +
                                         " node " + std::to_string(node));
}

std::optional<OperandNarrowing> Tape::narrowing_of(std::size_t node, std::string_view layer) const {
  if (!policy_->operands.narrows()) return std::nullopt;
  return OperandNarrowing(policy_->operands, {.scaler = options_.tensor_scaler,
                                              .layer = layer,
                                              .random = random_of(node, "narrowing"),
                                              .threads = options_.threads});
}

Variable Tape::apply(const Operation& operation, std::vector<Variable> inputs, std::string_view layer,
                     OperationOptions options) {
  return options_.unit_scaling ? apply_in_unit_scale(operation, std::move(inputs), layer, std::move(options))
                               : apply_plain(operation, std::move(inputs), layer, std::move(options));
}

Variable Tape::apply_in_unit_scale(const Operation& operation, std::vector<Variable> inputs,
                                   std::string_view layer, OperationOptions options) {
  std::vector<const Tensor*> values;
  for (const Variable input : inputs) values.push_back(&value(input));
  UnitScaledCall call{
      .rule = *options_.unit_scaling, .inputs = values, .layer = layer, .options = std::move(options)};
  const UnitMultipliers m = operation.unit_multipliers(call);
  for (std::size_t i = 0; i < std::min(inputs.size(), m.inputs.size()); ++i) {
    if (m.inputs[i] == 1 && m.gradients[i] == 1) continue;
    inputs[i] = apply_plain(scale, {inputs[i]}, {},
                            ScaleOptions{.forward_factor = m.inputs[i], .backward_factor = m.gradients[i]});
  }
  const Variable output = apply_plain(operation, std::move(inputs), layer, std::move(call.options));
  if (m.output == 1) return output;
  return apply_plain(scale, {output}, {}, ScaleOptions{.forward_factor = m.output});
}

Variable Tape::residual(Variable x, const std::function<Variable(Variable)>& branch) {
  if (!options_.unit_scaling) return apply_plain(add, {x, branch(x)}, {}, {});
  const ResidualWeights weights = options_.unit_scaling->residual();
  const auto scaled = [this](Variable v, double forward, double backward) {
    return apply_plain(scale, {v}, {}, ScaleOptions{.forward_factor = forward, .backward_factor = backward});
  };
  const Variable path = scaled(x, weights.path, weights.path);
  const Variable branched = scaled(branch(scaled(x, 1, weights.branch)), weights.branch, 1);
  return apply_plain(add, {path, branched}, {}, {});
}

Variable Tape::apply_plain(const Operation& operation, std::vector<Variable> inputs, std::string_view layer,
                           OperationOptions options) {
  const fp16::Format output_format = cast_inputs(operation, inputs);
  Node node;
  std::vector<const Tensor*> values;
  for (const Variable input : inputs) {
    values.push_back(&value(input));
    node.needs_gradient |= nodes_[input.index].needs_gradient;
  }
  const ElementRounding rounding{policy_->activation_rounding, random_of(nodes_.size(), "activation")};
  const std::optional<OperandNarrowing> narrowing = narrowing_of(nodes_.size(), layer);
  OperationCall call{
      .inputs = values,
      .options = options,
      .arithmetic = arithmetic_,
      .output_format = output_format,
      .training = options_.training,
      .random = random_of(nodes_.size(), operation.name),
      .narrowing = narrowing ? &*narrowing : nullptr,
      .rounding = policy_->activation_rounding == fp16::Rounding::nearest_even ? nullptr : &rounding};
  node.owned = operation.forward(call);
  node.saved = std::move(call.saved);
  node.owned.charge_to(MemoryRole::activations);
  for (Tensor& saved : node.saved) saved.charge_to(MemoryRole::activations);
  node.operation = &operation;
  node.inputs = std::move(inputs);
  node.layer = layer;
  node.options = std::move(options);
  const Variable output = record(std::move(node));
  if (operation.is_layer && !layer.empty()) {
    sites_.push_back({std::string(layer), GradientSite::Kind::activation, output});
  }
  return output;
}

fp16::Format Tape::gradient_format(std::size_t node, const BackwardOptions& options) const {
  return options.twin ? *options.twin : nodes_[node].value().format();
}

Tape::GradientRounding Tape::gradient_rounding(std::size_t node, const BackwardOptions& options) const {
  const fp16::Rounding direction = policy_->gradient_rounding;
  return {.to_nearest = options.twin || direction == fp16::Rounding::nearest_even,
          .computed = {direction, random_of(node, "gradient")},
          .summed = {direction, random_of(node, "gradient sum")},
          .rescaled = {direction, random_of(node, "gradient rescaled")}};
}

void Tape::backward_inputs(std::size_t index, std::size_t first, std::size_t end,
                           const Tensor& output_gradient, double scale, const BackwardOptions& options,
                           NodeGradients& state) const {
  const Node& node = nodes_[index];
  const Arithmetic arithmetic =
      options.twin ? uniform_arithmetic(*options.twin, options_.threads) : arithmetic_;
  const GradientRounding rounding = gradient_rounding(index, options);
  const std::optional<OperandNarrowing> narrowing =
      options.twin ? std::nullopt : narrowing_of(index, node.layer);
  std::vector<const Tensor*> inputs;
  std::vector<Tensor> fresh(node.inputs.size());
  std::vector<RoundedOutput> outputs(node.inputs.size());
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    const std::size_t input = node.inputs[i].index;
    inputs.push_back(&nodes_[input].value());
    if (!nodes_[input].needs_gradient || i < first || i >= end) continue;
    fresh[i] = Tensor(inputs[i]->shape(), gradient_format(input, options));
    fresh[i].charge_to(MemoryRole::gradients);
    outputs[i] = {.tensor = &fresh[i],
                  .counts = state.counts_at(input),
                  .rounding = rounding.unless_nearest(rounding.computed),
                  .use = i};
  }
  node.operation->backward({.inputs = inputs,
                            .output = node.value(),
                            .saved = node.saved,
                            .options = node.options,
                            .arithmetic = arithmetic,
                            .training = options_.training,
                            .random = random_of(index, node.operation->name),
                            .narrowing = narrowing ? &*narrowing : nullptr,
                            .output_gradient = output_gradient,
                            .input_gradients = outputs});
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    if (fresh[i].empty()) continue;
    const Variable input = node.inputs[i];
    add_gradient(index, i, std::move(fresh[i]), scale, options, state);
    look_for_nonfinite(input, {index}, state.gradients[input.index], state.scales[input.index], options,
                       state);
  }
}

void Tape::look_for_nonfinite(Variable variable, Variable consumer, const Tensor& gradient, double scale,
                              const BackwardOptions& options, NodeGradients& state) const {
  if (!options.find_nonfinite || state.first_nonfinite) return;
  if (const std::optional<std::size_t> element = first_nonfinite(gradient))
    state.first_nonfinite = {variable, consumer, *element, gradient.element(*element), scale};
}

void Tape::add_gradient(std::size_t node, std::size_t input_number, Tensor fresh, double scale,
                        const BackwardOptions& options, NodeGradients& state) const {
  const std::size_t input = nodes_[node].inputs[input_number].index;
  Tensor& gradient = state.gradients[input];
  if (gradient.empty()) {
    gradient = std::move(fresh);
    state.scales[input] = scale;
    return;
  }
  const GradientRounding rounding = gradient_rounding(node, options);
  fp16::RoundingCounts* counts = state.counts_at(input);
  if (scale != state.scales[input]) {  // only a layer scaler makes branches differ
    const double joined = options.layer_scaler->joined(
        std::array{BranchGradient{state.scales[input], extremes_of(gradient).max_abs},
                   BranchGradient{scale, extremes_of(fresh).max_abs}});
    const ElementRounding* rescaled = rounding.unless_nearest(rounding.rescaled);
    multiply_by(joined / state.scales[input], {&gradient, counts, rescaled, 2 * input_number});
    multiply_by(joined / scale, {&fresh, counts, rescaled, 2 * input_number + 1});
    state.scales[input] = joined;
  }
  add_to({&gradient, counts, rounding.unless_nearest(rounding.summed), input_number}, fresh,
         options_.threads);
}

void Tape::backward_layer(std::size_t index, const BackwardOptions& options, NodeGradients& state) const {
  const Node& node = nodes_[index];
  const Tensor& arrived = state.gradients[index];
  const double scale = state.scales[index];
  const LayerScale rule = options.layer_scaler->scale(
      node.layer,
      layer_gradient(arrived, nodes_[node.inputs[1].index].value(), scale, options.layer_scaler->needs()));
  Tensor multiplied;
  if (rule.factor != 1) {
    multiplied = arrived;
    const GradientRounding rounding = gradient_rounding(index, options);
    multiply_by(rule.factor,
                {&multiplied, nullptr, rounding.unless_nearest(rounding.rescaled), 2 * node.inputs.size()});
    look_for_nonfinite({index}, {index}, multiplied, scale * rule.factor, options, state);
  }
  const Tensor& passed_on = multiplied.empty() ? arrived : multiplied;
  backward_inputs(index, 0, 1, passed_on, scale * rule.factor, options, state);
  backward_inputs(index, 1, node.inputs.size(), rule.applies_to_weights ? passed_on : arrived, rule.divisor,
                  options, state);
}

void Tape::backward_node(std::size_t index, const BackwardOptions& options, NodeGradients& state) const {
  const Node& node = nodes_[index];
  if (options.layer_scaler && !options.twin && node.operation->is_layer && !node.layer.empty()) {
    backward_layer(index, options, state);
  } else {
    backward_inputs(index, 0, node.inputs.size(), state.gradients[index], state.scales[index], options,
                    state);
  }
  if (node.operation == &cast && state.is_counted[index])
    state.rounding[node.inputs[0].index] += state.rounding[index];
}

SiteGradients Tape::backward(Variable loss, const BackwardOptions& given) const {
  assert(value(loss).size() == 1);
  BackwardOptions options = given;
  if (options.twin && policy_->full_precision == fp16::binary64) options.twin = fp16::binary64;
  NodeGradients state{
      .gradients = std::vector<Tensor>(nodes_.size()),
      .scales = std::vector<double>(nodes_.size(), options.loss_scale),
      .rounding = std::vector<fp16::RoundingCounts>(options.count_rounding ? nodes_.size() : 0),
      .is_counted = std::vector<bool>(nodes_.size(), false)};
  std::vector<bool> is_kept(nodes_.size(), false);
  for (const GradientSite& site : sites_) is_kept[site.variable.index] = true;
  if (options.count_rounding) {
    state.is_counted = is_kept;
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      if (nodes_[i].operation == &cast && is_kept[nodes_[i].inputs[0].index]) state.is_counted[i] = true;
    }
  }

  Tensor& start = state.gradients[loss.index];
  start = Tensor({1}, gradient_format(loss.index, options));
  start.charge_to(MemoryRole::gradients);
  const float loss_gradient = options.loss_scale / options.mean_over;
  store({&start}, 0, std::span(&loss_gradient, 1));
  look_for_nonfinite(loss, loss, start, options.loss_scale, options, state);
  for (std::size_t index = loss.index + 1; index-- > 0;) {
    if (!nodes_[index].needs_gradient || state.gradients[index].empty()) continue;
    if (options.observe) options.observe({index}, state.gradients[index]);
    if (!nodes_[index].operation) continue;
    backward_node(index, options, state);
    if (!is_kept[index]) state.gradients[index] = {};
  }

  SiteGradients result;
  result.first_nonfinite = state.first_nonfinite;
  for (const GradientSite& site : sites_) {
    Tensor& gradient = state.gradients[site.variable.index];
    if (gradient.empty()) {
      gradient = Tensor::zeros(value(site.variable).shape(), gradient_format(site.variable.index, options));
      gradient.charge_to(MemoryRole::gradients);
    }
    result.gradients.push_back(std::move(gradient));
    result.scales.push_back(state.scales[site.variable.index]);
    if (options.count_rounding) result.rounding.push_back(state.rounding[site.variable.index]);
  }
  return result;
}

}  // namespace sim
