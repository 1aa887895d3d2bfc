#include "sim/tape.h"

#include <array>
#include <cassert>
#include <utility>

namespace sim {
namespace {

/// sum += term, element by element, rounded once to the format of `sum`.
void accumulate(const RoundedOutput& sum, const Tensor& term) {
  with_real(is_binary64(*sum.tensor), [&](auto real) {
    using Real = decltype(real);
    map_elements<Real, 2>(sum, {sum.tensor, &term}, [](Real a, Real b) { return a + b; });
  });
}

}  // namespace

Variable Tape::record(Node node) {
  nodes_.push_back(std::move(node));
  return {nodes_.size() - 1};
}

Variable Tape::constant(Tensor value) {
  Node node;
  node.owned = std::move(value);
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

Variable Tape::cast_to(Variable variable, fp16::Format format) {
  if (value(variable).format() == format) return variable;
  return apply(cast, {variable}, {}, {.format = format});
}

Variable Tape::apply(const Operation& operation, std::vector<Variable> inputs, std::string_view layer,
                     OperationOptions options) {
  if (operation.autocast != AutocastClass::input_type) {
    const fp16::Format format = operation.autocast == AutocastClass::lower_precision
                                    ? policy_->lower_precision
                                    : policy_->full_precision;
    for (Variable& input : inputs) input = cast_to(input, format);
  }
  Node node;
  std::vector<const Tensor*> values;
  for (const Variable input : inputs) {
    values.push_back(&value(input));
    node.needs_gradient |= nodes_[input.index].needs_gradient;
  }
  OperationCall call{.inputs = values,
                     .options = options,
                     .accumulation = policy_->accumulation,
                     .output_format = values.front()->format(),
                     .saved = {}};
  node.owned = operation.forward(call);
  node.saved = std::move(call.saved);
  node.operation = &operation;
  node.inputs = std::move(inputs);
  node.options = std::move(options);
  const Variable output = record(std::move(node));
  if (operation.is_layer && !layer.empty()) {
    sites_.push_back({std::string(layer), GradientSite::Kind::activation, output});
  }
  return output;
}

fp16::Format Tape::gradient_format(std::size_t node, const BackwardOptions& options) const {
  return options.twin ? options.twin->full_precision : nodes_[node].value().format();
}

void Tape::backward_node(std::size_t index, const BackwardOptions& options, NodeGradients& state) const {
  const Node& node = nodes_[index];
  std::vector<const Tensor*> inputs;
  std::vector<Tensor> fresh(node.inputs.size());
  std::vector<RoundedOutput> outputs(node.inputs.size());
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    const std::size_t input = node.inputs[i].index;
    inputs.push_back(&nodes_[input].value());
    if (!nodes_[input].needs_gradient) continue;
    fresh[i] = Tensor(inputs[i]->shape(), gradient_format(input, options));
    outputs[i] = {&fresh[i], options.count_rounding ? &state.rounding[input] : nullptr};
  }
  node.operation->backward({.inputs = inputs,
                            .output = node.value(),
                            .saved = node.saved,
                            .options = node.options,
                            .accumulation = options.twin ? options.twin->accumulation : policy_->accumulation,
                            .output_gradient = state.gradients[index],
                            .input_gradients = outputs});
  if (node.operation == &cast && options.count_rounding) {
    state.rounding[node.inputs[0].index] += state.rounding[index];
  }
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    if (fresh[i].empty()) continue;
    Tensor& gradient = state.gradients[node.inputs[i].index];
    if (gradient.empty()) {
      gradient = std::move(fresh[i]);
    } else {
      accumulate({&gradient, outputs[i].counts}, fresh[i]);
    }
  }
}

SiteGradients Tape::backward(Variable loss, const BackwardOptions& options) const {
  assert(value(loss).size() == 1);
  NodeGradients state{
      .gradients = std::vector<Tensor>(nodes_.size()),
      .rounding = std::vector<fp16::RoundingCounts>(options.count_rounding ? nodes_.size() : 0)};
  std::vector<bool> is_site(nodes_.size(), false);
  for (const GradientSite& site : sites_) is_site[site.variable.index] = true;

  Tensor& seed = state.gradients[loss.index];
  seed = Tensor({1}, gradient_format(loss.index, options));
  store({&seed}, 0, std::span(&options.seed, 1));
  for (std::size_t index = loss.index + 1; index-- > 0;) {
    if (!nodes_[index].operation || !nodes_[index].needs_gradient || state.gradients[index].empty()) continue;
    backward_node(index, options, state);
    if (!is_site[index]) state.gradients[index] = {};
  }

  SiteGradients result;
  for (const GradientSite& site : sites_) {
    result.gradients.push_back(std::move(state.gradients[site.variable.index]));
    if (options.count_rounding) result.rounding.push_back(state.rounding[site.variable.index]);
  }
  return result;
}

}  // namespace sim
