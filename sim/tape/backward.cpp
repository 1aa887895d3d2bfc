#include <array>
#include <cassert>
#include <utility>

#include "sim/ops/cast.h"
#include "sim/ops/elementwise.h"
#include "sim/tape/layer_gradient.h"
#include "sim/tape/tape.h"
#include "sim/tensor/extremes.h"

namespace sim {
namespace {

void multiply_by(double factor, const RoundedOutput& values) {
  with_real(is_binary64(*values.tensor), [&](auto real) {
    using Real = decltype(real);
    map_elements<Real, 1>(values, {values.tensor},
                          [factor](Real x) { return x * static_cast<Real>(factor); });
  });
}

}  // namespace

fp16::Format Tape::gradient_format(std::size_t node, const BackwardOptions& options) const {
  return options.twin ? *options.twin : nodes_[node].value().format();
}

Tape::GradientRounding Tape::gradient_rounding(std::size_t node, const BackwardOptions& options) const {
  const fp16::Rounding direction = policy_->gradient_rounding;
  return {.to_nearest = options.twin || direction == fp16::Rounding::nearest_even,
          .computed = {direction, random_of(node, "gradient"), options_.shard.index},
          .summed = {direction, random_of(node, "gradient sum"), options_.shard.index},
          .rescaled = {direction, random_of(node, "gradient rescaled"), options_.shard.index}};
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
                            .shard = options_.shard,
                            .gathering = options_.gathering,
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
