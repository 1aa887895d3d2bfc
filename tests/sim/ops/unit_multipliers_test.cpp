/// Which rule of unit scaling each operation follows, and with which sizes.

#include <doctest/doctest.h>

#include <cmath>
#include <stdexcept>
#include <string_view>
#include <vector>

#include "sim/ops/add.h"
#include "sim/ops/attention_context.h"
#include "sim/ops/batch_norm.h"
#include "sim/ops/conv2d.h"
#include "sim/ops/dropout.h"
#include "sim/ops/embedding.h"
#include "sim/ops/gelu.h"
#include "sim/ops/global_average_pool.h"
#include "sim/ops/layer_norm.h"
#include "sim/ops/linear.h"
#include "sim/ops/lstm.h"
#include "sim/ops/matmul.h"
#include "sim/ops/mean_absolute_error.h"
#include "sim/ops/mean_squared_error.h"
#include "sim/ops/relu.h"
#include "sim/ops/sigmoid.h"
#include "sim/ops/smooth_l1.h"
#include "sim/ops/softmax.h"
#include "sim/ops/softmax_cross_entropy.h"
#include "sim/ops/tanh.h"
#include "sim/precision/unit_scaling.h"

namespace {

using sim::Conv2dOptions;
using sim::Operation;
using sim::OperationOptions;
using sim::ScaleConstraint;
using sim::Shape;
using sim::Tensor;
using sim::UnitMultipliers;
using sim::UnitScaledCall;
using sim::UnitScaling;

/// Without constraints, so that every size has a multiplier of its own.
const UnitScaling free_rule({.constraint = ScaleConstraint::none});

UnitMultipliers multipliers_of(const Operation& operation, const std::vector<Shape>& shapes,
                               const OperationOptions& options = {}, std::string_view layer = {}) {
  std::vector<Tensor> inputs;
  for (const Shape& shape : shapes) inputs.push_back(Tensor::zeros(shape, fp16::binary32));
  std::vector<const Tensor*> pointers;
  for (const Tensor& input : inputs) pointers.push_back(&input);
  UnitScaledCall call{.rule = free_rule, .inputs = pointers, .layer = layer, .options = options};
  return operation.unit_multipliers(call);
}

/// The normaliser that the options of a loss hold once its multipliers are known.
template <class Options>
double normaliser_under_unit_scaling(const Operation& loss, const Options& options) {
  const Tensor x = Tensor::zeros({4, 5}, fp16::binary32);
  const Tensor* const inputs[] = {&x, &x};
  UnitScaledCall call{.rule = free_rule, .inputs = inputs, .layer = {}, .options = options};
  loss.unit_multipliers(call);
  return call.options.get<Options>().normaliser;
}

}  // namespace

TEST_CASE("unit multipliers: products count rows, terms and columns") {
  CHECK(multipliers_of(sim::matmul, {{3, 5}, {5, 7}}) == free_rule.matmul(3, 5, 7));
  const sim::LinearSizes sizes{.rows = 6, .fan_in = 5, .fan_out = 7};
  CHECK(multipliers_of(sim::linear, {{2, 3, 5}, {7, 5}, {7}}, {}, "hidden") == free_rule.linear(sizes));
  CHECK(multipliers_of(sim::linear, {{2, 3, 5}, {7, 5}, {7}}, {}, "output") == free_rule.readout(sizes));
  CHECK(free_rule.linear(sizes) != free_rule.readout(sizes));
  const sim::AttentionOptions attention{.heads = 2, .context = 3};
  CHECK(multipliers_of(sim::attention_context, {{8, 3, 3}, {12, 10}}, attention) ==
        free_rule.matmul(3, 3, 5));
  CHECK(multipliers_of(sim::lstm, {{6, 5}, {28, 5}, {28, 7}, {28}}, sim::LstmLayerOptions{.context = 3}) ==
        free_rule.lstm({.rows = 6, .inputs = 5, .hidden = 7}));
}

TEST_CASE("unit multipliers: activations, norms, pools and tables") {
  CHECK(multipliers_of(sim::gelu, {{3, 5}}) == free_rule.gelu());
  CHECK(multipliers_of(sim::relu, {{3, 5}}) == free_rule.relu());
  CHECK(multipliers_of(sim::sigmoid, {{3, 5}}) == free_rule.sigmoid());
  CHECK(multipliers_of(sim::softmax, {{2, 3, 5}}) == free_rule.softmax(5));
  CHECK(multipliers_of(sim::dropout, {{3, 5}}, sim::DropoutOptions{.probability = 0.25}) ==
        free_rule.dropout(0.25));
  CHECK(multipliers_of(sim::layer_norm, {{2, 3, 5}, {5}, {5}}) == free_rule.norm(6));
  CHECK(multipliers_of(sim::batch_norm, {{2, 3, 5, 7}, {3}, {3}}) == free_rule.norm(2 * 5 * 7));
  CHECK(multipliers_of(sim::global_average_pool, {{2, 3, 5, 7}}) == free_rule.global_average_pool(35));
  CHECK(multipliers_of(sim::embedding, {{7, 3}}, sim::EmbeddingOptions{.labels = {1, 2, 6}}) ==
        free_rule.embedding(7, 3));
}

TEST_CASE("unit multipliers: a sum of losses is none of activations") {
  CHECK(multipliers_of(sim::add, {{3, 5}, {3, 5}}) == free_rule.add());
  CHECK(multipliers_of(sim::add, {{1}, {1}}) == UnitMultipliers{});
}

TEST_CASE("unit multipliers: losses with a rule are evaluated as sums, others as they are") {
  const sim::SoftmaxCrossEntropyOptions labels{.labels = {2, -1, 0, -1}};
  CHECK(multipliers_of(sim::softmax_cross_entropy, {{4, 5}}, labels) ==
        free_rule.softmax_cross_entropy(2, 5));
  CHECK(multipliers_of(sim::mean_squared_error, {{4, 5}, {4, 5}}) == free_rule.mean_squared_error(20));
  CHECK(multipliers_of(sim::smooth_l1, {{4, 5}, {4, 5}}) == free_rule.smooth_l1(20));
  CHECK(multipliers_of(sim::smooth_l1, {{4, 5}, {4, 5}}, sim::SmoothL1Options{.normaliser = 8}).output ==
        0.125);
  CHECK(normaliser_under_unit_scaling(sim::softmax_cross_entropy, labels) == 1);
  CHECK(normaliser_under_unit_scaling(sim::mean_squared_error, sim::ElementwiseLossOptions{}) == 1);
  CHECK(normaliser_under_unit_scaling(sim::smooth_l1, sim::SmoothL1Options{.normaliser = 8}) == 1);
  CHECK(normaliser_under_unit_scaling(sim::mean_absolute_error,
                                      sim::ElementwiseLossOptions{.normaliser = 8}) == 8);
}

TEST_CASE("unit multipliers: ones where the source has no rule") {
  CHECK(multipliers_of(sim::tanh, {{3, 5}}) == UnitMultipliers{});
  CHECK(multipliers_of(sim::mean_absolute_error, {{4, 5}, {4, 5}}) == UnitMultipliers{});
}

TEST_CASE("unit multipliers: those of conv2d count the pixels that a stride and a padding leave") {
  const auto multipliers = [](const Conv2dOptions& options) {
    return multipliers_of(sim::conv2d, {{2, 4, 7, 9}, {16, 4, 3, 3}}, options);
  };
  CHECK(multipliers({}) == free_rule.conv2d({.batch = 2,
                                             .in_channels = 4,
                                             .out_channels = 16,
                                             .kernel_area = 9,
                                             .output_pixels = 5 * 7,
                                             .stride = 1}));
  // Rows see 7 + 2 - 3 = 6 steps of 1, columns 8, of which every second one counts.
  const UnitMultipliers strided = multipliers({.stride = 2, .padding = 1});
  CHECK(strided.output == 1.0 / 6);
  CHECK(strided.gradients[0] == 1.0 / 6);
  CHECK(strided.gradients[1] == 1 / std::sqrt(2.0 * 4 * 5));
}

TEST_CASE("unit multipliers: those of conv2d are refused where the convolution is") {
  const auto multipliers = [](const Conv2dOptions& options) {
    return multipliers_of(sim::conv2d, {{1, 1, 2, 2}, {1, 1, 3, 3}}, options);
  };
  CHECK_THROWS_WITH_AS(multipliers({.stride = 0, .padding = 1}), doctest::Contains("stride"),
                       std::invalid_argument);
  CHECK_THROWS_WITH_AS(multipliers({}), doctest::Contains("kernel of 3"), std::invalid_argument);
}
