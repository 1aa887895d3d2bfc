/// Every registered operation: its backward against central differences in binary64.

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "sim/ops/attention_options.h"
#include "sim/ops/batch_norm.h"
#include "sim/ops/cast.h"
#include "sim/ops/conv2d.h"
#include "sim/ops/dropout.h"
#include "sim/ops/embedding.h"
#include "sim/ops/layer_norm.h"
#include "sim/ops/lstm.h"
#include "sim/ops/mean_squared_error.h"
#include "sim/ops/pooling_options.h"
#include "sim/ops/pow.h"
#include "sim/ops/registry.h"
#include "sim/ops/scale.h"
#include "sim/ops/smooth_l1.h"
#include "sim/ops/softmax.h"
#include "sim/ops/softmax_cross_entropy.h"
#include "sim/ops/sum.h"
#include "sim/tape/tape.h"
#include "sim/tensor/random.h"
#include "tests/sim/ops/evaluation.h"

namespace {

using sim::Shape;
using sim::Tensor;
using sim::Variable;

/// Values of an input lie within centre +- reach.
struct Input {
  Shape shape;
  double centre = 0;
  double reach = 1.5;
};

struct Case {
  std::vector<Input> inputs;
  sim::OperationOptions options = {};
  bool training = true;
};

Tensor& running_statistic(double value) {
  static std::map<double, Tensor> tensors;
  Tensor& tensor = tensors[value];
  if (tensor.empty()) tensor = tensor_of({3}, {float(value), float(value) / 2, float(value) * 2});
  return tensor;
}

/// A new operation needs a row here; the test fails for a registered one without.
const std::map<std::string, std::vector<Case>>& cases() {
  static const std::map<std::string, std::vector<Case>> rows{
      {"cast", {{{{{3, 4}}}, sim::CastOptions{.format = fp16::binary64}}}},
      {"matmul", {{{{{3, 5}}, {{5, 4}}}}}},
      {"bias", {{{{{3, 5}}, {{5}}}}}},
      {"linear", {{{{{4, 6}}, {{3, 6}}}}, {{{{4, 6}}, {{3, 6}}, {{3}}}}}},
      {"conv2d",
       {{{{{2, 3, 6, 5}}, {{4, 3, 3, 3}, 0, 0.5}}, sim::Conv2dOptions{.padding = 1}},
        {{{{2, 2, 7, 7}}, {{3, 2, 3, 3}, 0, 0.5}, {{3}}}, sim::Conv2dOptions{.stride = 2}},
        {{{{1, 1, 5, 5}}, {{2, 1, 2, 2}}, {{2}}}, sim::Conv2dOptions{.stride = 3, .padding = 2}}}},
      {"attention_scores", {{{{{6, 4}}, {{6, 4}}}, sim::AttentionOptions{.heads = 2, .context = 3}}}},
      {"attention_context", {{{{{4, 3, 3}}, {{6, 4}}}, sim::AttentionOptions{.heads = 2, .context = 3}}}},
      {"lstm", {{{{{6, 4}}, {{12, 4}}, {{12, 3}}, {{12}}}, sim::LstmLayerOptions{.context = 3}}}},
      {"embedding", {{{{{5, 3}}}, sim::EmbeddingOptions{.labels = {4, 0, 4, 2, 4, 0}}}}},
      {"relu", {{{{{4, 7}}}}}},
      {"gelu", {{{{{4, 7}, 0, 3}}}}},
      {"tanh", {{{{{4, 7}}}}}},
      {"sigmoid", {{{{{4, 7}, 0, 4}}}}},
      {"exp", {{{{{4, 7}}}}}},
      {"log", {{{{{4, 7}, 1.5, 1}}}}},
      {"pow",
       {{{{{4, 7}}}},
        {{{{4, 7}}}, sim::PowOptions{.exponent = 3}},
        {{{{4, 7}, 1.5, 1}}, sim::PowOptions{.exponent = -0.5}},
        {{{{4, 7}, 1.5, 1}}, sim::PowOptions{.exponent = 1.75}}}},
      {"add", {{{{{4, 5}}, {{4, 5}}}}}},
      {"mul", {{{{{4, 5}}, {{4, 5}}}}}},
      {"scale", {{{{{4, 5}}}, sim::ScaleOptions{.forward_factor = 0.3, .backward_factor = 0.3}}}},
      {"dropout",
       {{{{{8, 9}}}, sim::DropoutOptions{.probability = 0.4}},
        {{{{8, 9}}}, sim::DropoutOptions{.probability = 0.4}, /*training=*/false}}},
      {"softmax",
       {{{{{3, 5}, 0, 2}}}, {{{{4, 3, 3}, 0, 2}}, sim::SoftmaxOptions{.causal = true}}, {{{{2, 37}, 0, 2}}}}},
      {"log_softmax", {{{{{3, 5}, 0, 2}}}, {{{{2, 37}, 0, 2}}}}},
      {"layer_norm",
       {{{{{4, 5}}, {{5}, 1}, {{5}}}},
        {{{{2, 33}}, {{33}, 1}, {{33}}}, sim::LayerNormOptions{.epsilon = 0.1}}}},
      {"batch_norm",
       {{{{{3, 3, 2, 2}}, {{3}, 1}, {{3}}}},
        {{{{6, 3}}, {{3}, 1}, {{3}}}, sim::BatchNormOptions{.epsilon = 0.1}},
        {{{{3, 3, 2, 2}}, {{3}, 1}, {{3}}},
         sim::BatchNormOptions{.running_mean = &running_statistic(0.25),
                               .running_variance = &running_statistic(1.5)},
         /*training=*/false}}},
      {"max_pool2d",
       {{{{{2, 3, 5, 7}}}, sim::PoolingOptions{.window = 2}},
        {{{{2, 2, 6, 7}}}, sim::PoolingOptions{.window = 3}}}},
      {"average_pool2d",
       {{{{{2, 3, 5, 7}}}, sim::PoolingOptions{.window = 2}},
        {{{{2, 2, 6, 7}}}, sim::PoolingOptions{.window = 3}}}},
      {"global_average_pool", {{{{{2, 3, 3, 5}}}}}},
      {"channels_last", {{{{{2, 3, 2, 4}}}}}},
      {"sum", {{{{{3, 7}}}}}},
      {"mean", {{{{{3, 7}}}}}},
      {"variance", {{{{{3, 7}}}}}},
      {"softmax_cross_entropy",
       {{{{{4, 5}}}, sim::SoftmaxCrossEntropyOptions{.labels = {1, 4, 0, 2}}},
        {{{{5, 4}}}, sim::SoftmaxCrossEntropyOptions{.labels = {1, -1, 0, -1, 3}}},
        {{{{5, 4}}}, sim::SoftmaxCrossEntropyOptions{.labels = {1, -1, 0, -1, 3}, .normaliser = 7}}}},
      {"mean_squared_error",
       {{{{{4, 5}}, {{4, 5}}}},
        {{{{4, 5}}, {{4, 5}}},
         sim::ElementwiseLossOptions{.row_weights = {1, 0, 2.5f, 0.5f}, .normaliser = 7}}}},
      {"mean_absolute_error",
       {{{{{4, 5}}, {{4, 5}}}},
        {{{{4, 5}}, {{4, 5}}},
         sim::ElementwiseLossOptions{.row_weights = {1, 0, 2.5f, 0.5f}, .normaliser = 7}}}},
      {"smooth_l1",
       {{{{{4, 5}}, {{4, 5}}}},
        {{{{4, 5}}, {{4, 5}}},
         sim::SmoothL1Options{.row_weights = {1, 0, 2.5f, 0.5f}, .normaliser = 7, .beta = 0.4}},
        {{{{4, 5}}, {{4, 5}}}, sim::SmoothL1Options{.beta = 0}}}},
      {"binary_cross_entropy",
       {{{{{4, 5}, 0.5, 0.4}, {{4, 5}, 0.5, 0.5}}},
        {{{{4, 5}, 0.5, 0.4}, {{4, 5}, 0.5, 0.5}},
         sim::ElementwiseLossOptions{.row_weights = {1, 0, 2.5f, 0.5f}, .normaliser = 7}}}},
      {"binary_cross_entropy_with_logits",
       {{{{{4, 5}, 0, 3}, {{4, 5}, 0.5, 0.5}}},
        {{{{4, 5}, 0, 3}, {{4, 5}, 0.5, 0.5}},
         sim::ElementwiseLossOptions{.row_weights = {1, 0, 2.5f, 0.5f}, .normaliser = 7}}}},
  };
  return rows;
}

/// Evenly spaced values in a random order, none of them at a kink: of two inputs no elements are equal, and
/// none is the negative of another.
Tensor distinct_values(const Input& input, std::uint64_t number) {
  const sim::RandomStream random(number, "gradient check");
  const std::size_t size = sim::element_count(input.shape);
  const std::vector<std::uint32_t> order = sim::permutation(random, static_cast<std::uint32_t>(size));
  const double spacing = 2 * input.reach / static_cast<double>(size);
  const double shift = 0.3 + 0.11 * static_cast<double>(number % 5);
  Tensor tensor(input.shape, fp16::binary64);
  for (std::size_t i = 0; i < size; ++i) {
    tensor.elements<double>()[i] =
        input.centre - input.reach + spacing * (static_cast<double>(order[i]) + shift);
  }
  return tensor;
}

struct Network {
  const sim::Operation& operation;
  const Case& the_case;
  std::vector<Tensor> values;

  /// The operation, and a squared error to a fixed target on top where its output is no scalar.
  Variable record(sim::Tape& tape) const {
    std::vector<Variable> inputs;
    for (std::size_t i = 0; i < values.size(); ++i)
      inputs.push_back(tape.parameter(std::to_string(i), values[i]));
    const Variable output = tape.apply(operation, inputs, {}, the_case.options);
    if (tape.value(output).size() == 1) return output;
    return tape.apply(sim::mean_squared_error,
                      {output, tape.constant(distinct_values({tape.value(output).shape()}, 99))});
  }
  sim::Tape tape() const {
    return sim::Tape(sim::find_precision_policy("fp64"), {.training = the_case.training, .seed = 5});
  }
  double loss() const {
    sim::Tape fresh = tape();
    const Variable loss = record(fresh);
    return fresh.value(loss).element(0);
  }
};

void check_gradients(const sim::Operation& operation, const Case& the_case) {
  Network network{.operation = operation, .the_case = the_case, .values = {}};
  for (std::size_t i = 0; i < the_case.inputs.size(); ++i)
    network.values.push_back(distinct_values(the_case.inputs[i], i));
  sim::Tape tape = network.tape();
  const Variable loss = network.record(tape);
  const sim::SiteGradients gradients = tape.backward(loss, {});
  // Central differences with h = 2^-17: truncation h^2/6 |f'''| with third derivatives below 10^3 (that of
  // log p at p = 0.1 is 2000, over 20 elements), 1e-8, and the rounding of two losses of order 10,
  // 2 * 10 * 2^-53 / (2 h) times the tens of operations behind each, 1e-8.
  constexpr double h = 0x1p-17, tolerance = 2e-8;
  for (std::size_t input = 0; input < network.values.size(); ++input) {
    REQUIRE(gradients.gradients[input].format() == fp16::binary64);
    double largest = 0;
    for (std::size_t i = 0; i < network.values[input].size(); ++i) {
      double& x = network.values[input].elements<double>()[i];
      const double kept = x;
      x = kept + h;
      const double above = network.loss();
      x = kept - h;
      const double below = network.loss();
      x = kept;
      const double gradient = gradients.gradients[input].element(i);
      INFO(operation.name, " input ", input, " element ", i, ": ", gradient, " for ",
           (above - below) / (2 * h));
      REQUIRE(std::abs(gradient - (above - below) / (2 * h)) <= tolerance);
      largest = std::max(largest, std::abs(gradient));
    }
    INFO(operation.name, " input ", input);
    CHECK(largest > 1e-3);  // or a gradient of zeros would pass
  }
}

}  // namespace

TEST_CASE("operations: backward equals central differences in binary64") {
  for (const sim::Operation* operation : sim::operations()) {
    INFO(operation->name);
    REQUIRE(cases().contains(std::string(operation->name)));
    for (const Case& the_case : cases().at(std::string(operation->name)))
      check_gradients(*operation, the_case);
  }
}

TEST_CASE("operations: rows that a loss leaves out have gradient 0, whatever they hold") {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  Tensor logits = distinct_values({{3, 4}}, 0);
  for (std::size_t i = 4; i < 8; ++i) logits.elements<double>()[i] = nan;
  sim::Tape tape(sim::find_precision_policy("fp64"));
  const Variable x = tape.parameter("x", logits), target = tape.constant(distinct_values({{3, 4}}, 1));
  for (const Variable loss :
       {tape.apply(sim::softmax_cross_entropy, {x}, {},
                   sim::SoftmaxCrossEntropyOptions{.labels = {0, -1, 3}}),
        tape.apply(sim::mean_squared_error, {x, target}, {},
                   sim::ElementwiseLossOptions{.row_weights = {1, 0, 2}}),
        tape.apply(sim::smooth_l1, {x, target}, {}, sim::SmoothL1Options{.row_weights = {1, 0, 2}})}) {
    CHECK(std::isfinite(tape.value(loss).element(0)));
    const sim::SiteGradients gradients = tape.backward(loss, {});
    for (std::size_t i = 0; i < 12; ++i) CHECK((gradients.gradients[0].element(i) == 0) == (i / 4 == 1));
  }
}

TEST_CASE("scale: the factor of the gradient is one of its own") {
  const Tensor x = tensor_of({2}, {1, -3});
  sim::Tape tape(sim::find_precision_policy("fp32"));
  const Variable y = tape.apply(sim::scale, {tape.parameter("x", x)}, {},
                                sim::ScaleOptions{.forward_factor = 0.5, .backward_factor = 8});
  CHECK(values_of(tape.value(y)) == std::vector<double>{0.5, -1.5});
  CHECK(values_of(tape.backward(tape.apply(sim::sum, {y}), {}).gradients[0]) == std::vector<double>{8, 8});
}
