#include "experiments/op_precision/operands.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "experiments/op_precision/replay.h"
#include "sim/ops/add.h"
#include "sim/ops/average_pool2d.h"
#include "sim/ops/batch_norm.h"
#include "sim/ops/bias.h"
#include "sim/ops/binary_cross_entropy.h"
#include "sim/ops/binary_cross_entropy_with_logits.h"
#include "sim/ops/cast.h"
#include "sim/ops/dropout.h"
#include "sim/ops/elementary.h"
#include "sim/ops/exp.h"
#include "sim/ops/gelu.h"
#include "sim/ops/layer_norm.h"
#include "sim/ops/linear.h"
#include "sim/ops/log.h"
#include "sim/ops/log_softmax.h"
#include "sim/ops/matmul.h"
#include "sim/ops/max_pool2d.h"
#include "sim/ops/mean.h"
#include "sim/ops/mean_absolute_error.h"
#include "sim/ops/mean_squared_error.h"
#include "sim/ops/mul.h"
#include "sim/ops/pow.h"
#include "sim/ops/softmax.h"
#include "sim/ops/softmax_cross_entropy.h"
#include "sim/ops/sum.h"
#include "sim/ops/tanh.h"
#include "sim/ops/variance.h"

namespace experiments::op_precision {
namespace {

using sim::Tensor;

template <class Function>
Tensor mapped(const Tensor& x, Function function) {
  Tensor y = x;
  for (float& value : y.elements<float>()) value = function(value);
  return y;
}

Tensor scalar(float value) {
  return Tensor::from({1}, std::array{value});
}

/// An operation of one input that is no parameter.
Operands unary(const sim::Operation& operation, Tensor x, Tensor output_gradient) {
  Operands operands{.operation = &operation,
                    .inputs = {},
                    .is_parameter = {false},
                    .wants_gradient = {true},
                    .output_gradient = std::move(output_gradient)};
  operands.inputs.push_back(std::move(x));
  return operands;
}

/// The input that `recorded` has, and the gradient that comes to its output.
template <const sim::Operation* operation>
Operands of_first_input(const Operands& recorded, double factor) {
  return unary(*operation, with_activations_times(recorded, factor).inputs[0], recorded.output_gradient);
}

/// All that `recorded` has.
template <const sim::Operation* operation>
Operands of_all_inputs(const Operands& recorded, double factor) {
  Operands operands = with_activations_times(recorded, factor);
  operands.operation = operation;
  return operands;
}

Operands matmul_of_linear(const Operands& recorded, double factor) {
  Operands operands = with_activations_times(recorded, factor);
  operands.operation = &sim::matmul;
  const Tensor& weight = recorded.inputs[1];
  const std::size_t outputs = weight.shape()[0], features = weight.shape()[1];
  Tensor transposed({features, outputs}, fp16::binary32);
  for (std::size_t i = 0; i < outputs; ++i) {
    for (std::size_t j = 0; j < features; ++j)
      transposed.elements<float>()[j * outputs + i] = weight.elements<float>()[i * features + j];
  }
  operands.inputs[1] = std::move(transposed);
  operands.inputs.resize(2);
  operands.is_parameter.resize(2);
  operands.wants_gradient.resize(2);
  return operands;
}

Operands bias_of_linear(const Operands& recorded, double factor) {
  Operands product = with_activations_times(recorded, factor);
  const Tensor bias = product.inputs[2];
  product.inputs.resize(2);
  Operands operands = unary(sim::bias, evaluated(product), recorded.output_gradient);
  operands.inputs.push_back(bias);
  operands.is_parameter.push_back(true);
  operands.wants_gradient.push_back(true);
  return operands;
}

/// -1 / rows at the label of each row: what a mean of negative logarithms hands back.
Tensor gradient_of_likelihood(const Operands& cross_entropy) {
  const Tensor& logits = cross_entropy.inputs[0];
  const std::vector<std::int32_t>& labels =
      cross_entropy.options.get<sim::SoftmaxCrossEntropyOptions>().labels;
  Tensor gradient = Tensor::zeros(logits.shape(), fp16::binary32);
  const std::size_t classes = logits.shape().back();
  for (std::size_t row = 0; row < labels.size(); ++row) {
    gradient.elements<float>()[row * classes + static_cast<std::size_t>(labels[row])] =
        -1 / static_cast<float>(labels.size());
  }
  return gradient;
}

/// x sigmoid(x).
Operands gate_of_input(const Operands& recorded, double factor) {
  const Tensor x = with_activations_times(recorded, factor).inputs[0];
  Operands operands = unary(sim::mul, mapped(x, [](float value) { return sim::elementary::sigmoid(value); }),
                            recorded.output_gradient);
  operands.inputs.push_back(x);
  operands.is_parameter.push_back(false);
  operands.wants_gradient.push_back(true);
  return operands;
}

Operands log_of_probabilities(const Operands& recorded, double factor) {
  Operands logits = with_activations_times(recorded, factor);
  logits.operation = &sim::softmax;
  logits.options = {};
  return unary(sim::log, evaluated(logits), gradient_of_likelihood(recorded));
}

Operands log_softmax_of_logits(const Operands& recorded, double factor) {
  return unary(sim::log_softmax, with_activations_times(recorded, factor).inputs[0],
               gradient_of_likelihood(recorded));
}

/// |prediction - target|, every element of the mini-batch.
template <const sim::Operation* operation>
Operands of_absolute_residuals(const Operands& recorded, double factor) {
  Tensor residuals = recorded.inputs[0];
  const std::span<const float> targets = recorded.inputs[1].elements<float>();
  for (std::size_t i = 0; i < residuals.size(); ++i) {
    float& residual = residuals.elements<float>()[i];
    residual = static_cast<float>(std::fabs(residual - targets[i]) * factor);
  }
  return unary(*operation, std::move(residuals), scalar(1));
}

Operands variance_of_input(const Operands& recorded, double factor) {
  return unary(sim::variance, with_activations_times(recorded, factor).inputs[0], scalar(1));
}

/// Probabilities as the logits that a sigmoid makes them of; far enough from 0 and 1 to be finite.
Tensor logits_of(const Tensor& probabilities, double factor) {
  return mapped(probabilities, [factor](float p) {
    const float bounded = std::clamp(p, 0x1p-30f, 1 - 0x1p-24f);
    return static_cast<float>(factor) * (sim::elementary::log(bounded) - sim::elementary::log1p(-bounded));
  });
}

Operands cross_entropy_of_logits(const Operands& recorded, double factor) {
  Operands operands = recorded;
  operands.operation = &sim::binary_cross_entropy_with_logits;
  operands.inputs[0] = logits_of(recorded.inputs[0], factor);
  return operands;
}

Operands cross_entropy_of_probabilities(const Operands& recorded, double factor) {
  Operands operands = recorded;
  operands.operation = &sim::binary_cross_entropy;
  operands.inputs[0] = mapped(logits_of(recorded.inputs[0], factor),
                              [](float logit) { return sim::elementary::sigmoid(logit); });
  return operands;
}

Operands dropout_of_branch(const Operands& recorded, double factor) {
  Operands operands =
      unary(sim::dropout, with_activations_times(recorded, factor).inputs[1], recorded.output_gradient);
  operands.options = sim::DropoutOptions{.probability = 0.1};
  return operands;
}

constexpr std::array rows{
    StandIn{&sim::matmul, &sim::linear, "mlp", "linear maps without their bias", matmul_of_linear},
    StandIn{&sim::bias, &sim::linear, "mlp", "the bias of linear maps", bias_of_linear},
    StandIn{&sim::tanh, &sim::gelu, "transformer", "what gelu is given", of_first_input<&sim::tanh>},
    StandIn{&sim::exp, &sim::softmax, "transformer", "attention scores", of_first_input<&sim::exp>},
    StandIn{&sim::log, &sim::softmax_cross_entropy, "transformer", "probabilities of the next character",
            log_of_probabilities, true},
    StandIn{&sim::pow, &sim::layer_norm, "transformer", "squares of what layer_norm is given",
            of_first_input<&sim::pow>},
    StandIn{&sim::mul, &sim::gelu, "transformer", "a gate: what gelu is given times its sigmoid",
            gate_of_input},
    StandIn{&sim::dropout, &sim::add, "transformer", "the branch of a residual", dropout_of_branch},
    StandIn{&sim::log_softmax, &sim::softmax_cross_entropy, "transformer", "logits of the next character",
            log_softmax_of_logits},
    StandIn{&sim::average_pool2d, &sim::max_pool2d, "cnn", "what max_pool2d is given",
            of_all_inputs<&sim::average_pool2d>},
    StandIn{&sim::sum, &sim::mean_squared_error, "autoencoder", "absolute residuals of a mini-batch",
            of_absolute_residuals<&sim::sum>},
    StandIn{&sim::mean, &sim::mean_squared_error, "autoencoder", "absolute residuals of a mini-batch",
            of_absolute_residuals<&sim::mean>},
    StandIn{&sim::variance, &sim::layer_norm, "transformer", "what layer_norm is given", variance_of_input},
    StandIn{&sim::mean_absolute_error, &sim::mean_squared_error, "autoencoder", "reconstructions and images",
            of_all_inputs<&sim::mean_absolute_error>},
    StandIn{&sim::binary_cross_entropy, &sim::mean_squared_error, "autoencoder", "reconstructions and images",
            cross_entropy_of_probabilities, true},
    StandIn{&sim::binary_cross_entropy_with_logits, &sim::mean_squared_error, "autoencoder",
            "logits of reconstructions, and images", cross_entropy_of_logits},
};

/// Running statistics belong to the run: an operation is measured without.
sim::OperationOptions options_of(const sim::ValueOrigin& origin) {
  if (origin.operation != &sim::batch_norm) return origin.options;
  sim::BatchNormOptions options = origin.options.get<sim::BatchNormOptions>();
  options.running_mean = options.running_variance = nullptr;
  return options;
}

Operands operands_of(const sim::Tape& tape, sim::Variable variable, const Tensor& gradient) {
  const sim::ValueOrigin origin = tape.origin_of(variable);
  Operands operands{.operation = origin.operation,
                    .inputs = {},
                    .is_parameter = {},
                    .wants_gradient = {},
                    .options = options_of(origin),
                    .output_gradient = gradient};
  for (const sim::Variable input : origin.inputs) {
    const sim::ValueOrigin of_input = tape.origin_of(input);
    operands.inputs.push_back(tape.value(input));
    operands.is_parameter.push_back(of_input.operation == nullptr && of_input.needs_gradient);
    operands.wants_gradient.push_back(of_input.needs_gradient);
  }
  return operands;
}

}  // namespace

std::vector<Operands> recorded_operands(const sim::Tape& tape, sim::Variable loss) {
  std::vector<Operands> recorded;
  tape.backward(loss, {.observe = [&](sim::Variable variable, const Tensor& gradient) {
                  const sim::Operation* const operation = tape.origin_of(variable).operation;
                  if (operation != nullptr && operation != &sim::cast)
                    recorded.push_back(operands_of(tape, variable, gradient));
                }});
  std::ranges::reverse(recorded);
  return recorded;
}

Operands with_activations_times(const Operands& operands, double factor) {
  Operands scaled = operands;
  for (std::size_t i = 0; i < scaled.inputs.size(); ++i) {
    if (i > 0 && scaled.is_parameter[i]) continue;
    for (float& value : scaled.inputs[i].elements<float>()) value = static_cast<float>(value * factor);
  }
  return scaled;
}

std::span<const StandIn> stand_ins() {
  return rows;
}

std::string_view reason_to_leave_out(const sim::Operation& operation) {
  return &operation == &sim::cast ? "it moves values between formats, and counts with what reads them"
                                  : std::string_view{};
}

}  // namespace experiments::op_precision
