#include "sim/tape/tape.h"

#include <algorithm>
#include <cassert>
#include <stdexcept>
#include <utility>

#include "sim/ops/add.h"
#include "sim/ops/cast.h"
#include "sim/ops/scale.h"
#include "sim/tape/operation_formats.h"

namespace sim {
namespace {

std::vector<fp16::Format> formats_in(const Tape& tape, const std::vector<Variable>& variables) {
  std::vector<fp16::Format> formats;
  for (const Variable variable : variables) formats.push_back(tape.value(variable).format());
  return formats;
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
  node.needs_gradient = node.is_parameter = true;
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
                                              .shard = options_.shard.index,
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
  node.is_parameter =
      (&operation == &cast || &operation == &scale) && nodes_[inputs.front().index].is_parameter;
  const ElementRounding rounding{policy_->activation_rounding, random_of(nodes_.size(), "activation"),
                                 node.is_parameter ? 0 : options_.shard.index};
  const std::optional<OperandNarrowing> narrowing = narrowing_of(nodes_.size(), layer);
  OperationCall call{
      .inputs = values,
      .options = options,
      .arithmetic = arithmetic_,
      .output_format = output_format,
      .training = options_.training,
      .random = random_of(nodes_.size(), operation.name),
      .shard = options_.shard,
      .gathering = options_.gathering,
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

}  // namespace sim
