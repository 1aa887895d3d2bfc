/// Formats, orders and roundings of single operations, held against the sums written out by hand.

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "fp16/half.h"
#include "sim/ops/conv2d.h"
#include "sim/ops/linear.h"
#include "sim/ops/matmul.h"
#include "sim/ops/max_pool2d.h"
#include "sim/ops/mean_squared_error.h"
#include "sim/ops/relu.h"
#include "sim/ops/softmax_cross_entropy.h"
#include "sim/tape/tape.h"
#include "sim/tensor/random.h"
#include "tests/sim/ops/evaluation.h"
#include "tests/sim/ops/sum_oracle.h"

namespace {

using fp16::half;
using sim::Tensor;
using sim::Variable;

std::vector<float> halves(std::size_t count, std::string_view purpose, float scale = 1) {
  const sim::RandomStream random(5, purpose);
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = half(scale * random.normal(i));
  return values;
}

/// Values in the format of the policy's model, as ForwardContext hands them to operations.
Variable constant(sim::Tape& tape, sim::Shape shape, const std::vector<float>& values) {
  return tape.constant(tensor_of(std::move(shape), values, tape.policy().model));
}

/// x w^T + b for one output, added up as `accumulation` says.
float linear_by_hand(const float* x, const float* w, float b, std::size_t n, bool in_fp16) {
  if (in_fp16) {
    half sum(0.0f);
    for (std::size_t k = 0; k < n; ++k) sum = fp16::fma(half(x[k]), half(w[k]), sum);
    return sum + half(b);
  }
  float sum = 0;
  for (std::size_t k = 0; k < n; ++k) sum = std::fma(x[k], w[k], sum);
  return half(sum + b);
}

}  // namespace

TEST_CASE("linear: one chain per output, bias on the finished chain, one rounding to FP16") {
  constexpr std::size_t batch = 7, in = 150, out = 9;
  const std::vector<float> x = halves(batch * in, "x"), w = halves(out * in, "w"), b = halves(out, "b");
  for (const char* name : {"amp", "fp16"}) {
    sim::Tape tape(sim::find_precision_policy(name));
    const Variable y = tape.apply(sim::linear, {constant(tape, {batch, in}, x), constant(tape, {out, in}, w),
                                                constant(tape, {out}, b)});
    for (std::size_t i = 0; i < batch; ++i) {
      for (std::size_t j = 0; j < out; ++j) {
        const float expected =
            linear_by_hand(&x[i * in], &w[j * in], b[j], in, std::string_view(name) == "fp16");
        REQUIRE(tape.value(y).element(i * out + j) == expected);
      }
    }
  }
}

TEST_CASE("linear: the bias gradient is a sum down the rows, in FP16 only under the pure policy") {
  constexpr std::size_t batch = 300, in = 2, out = 3;
  const std::vector<float> x = halves(batch * in, "x"), w = halves(out * in, "w"), b = halves(out, "b");
  const std::vector<float> target(batch * out, 0.25f);
  for (const bool in_fp16 : {false, true}) {
    const sim::PrecisionPolicy& policy = sim::find_precision_policy(in_fp16 ? "fp16" : "amp");
    const Tensor wt = tensor_of({out, in}, w, policy.model), bt = tensor_of({out}, b, policy.model);
    sim::Tape tape(policy);
    const Variable y = tape.apply(
        sim::linear, {constant(tape, {batch, in}, x), tape.parameter("w", wt), tape.parameter("b", bt)},
        "layer");
    const Variable loss = tape.apply(sim::mean_squared_error, {y, constant(tape, {batch, out}, target)});
    const sim::SiteGradients gradients = tape.backward(loss, {.loss_scale = 1024});
    REQUIRE(tape.sites()[2].name == "layer");
    const Tensor &db = gradients.gradients[1], &dy = gradients.gradients[2];
    CHECK(dy.format() == fp16::binary16);
    for (std::size_t j = 0; j < out; ++j) {
      std::vector<double> terms;
      for (std::size_t i = 0; i < batch; ++i) terms.push_back(dy.element(i * out + j));
      const double sum = sum_oracle::down_column(policy.reductions, terms);
      CHECK(db.element(j) == float(half(static_cast<float>(sum))));
    }
  }
}

TEST_CASE(
    "conv2d: patches in the order channel, row, column, and the weight gradient runs through images in "
    "order") {
  constexpr std::size_t batch = 2, channels = 3, side = 5, filters = 2, kernel = 3;
  const std::vector<float> x = halves(batch * channels * side * side, "x"),
                           w = halves(filters * channels * kernel * kernel, "w"), b = halves(filters, "b");
  const Tensor wt = Tensor::from({filters, channels, kernel, kernel}, w), bt = Tensor::from({filters}, b);
  sim::Tape tape(sim::find_precision_policy("amp"));
  const Variable y = tape.apply(sim::conv2d,
                                {tape.constant(Tensor::from({batch, channels, side, side}, x)),
                                 tape.parameter("w", wt), tape.parameter("b", bt)},
                                "layer", sim::Conv2dOptions{.padding = 1});
  const auto pixel = [&](std::size_t image, std::size_t c, std::size_t row, std::size_t column) -> float {
    if (row < 1 || column < 1 || row > side || column > side) return 0;  // in the padded image
    return x[((image * channels + c) * side + row - 1) * side + column - 1];
  };
  for (std::size_t image = 0; image < batch; ++image) {
    for (std::size_t f = 0; f < filters; ++f) {
      for (std::size_t p = 0; p < side * side; ++p) {
        float sum = 0;
        for (std::size_t c = 0; c < channels; ++c) {
          for (std::size_t i = 0; i < kernel; ++i) {
            for (std::size_t j = 0; j < kernel; ++j) {
              sum = std::fma(pixel(image, c, p / side + i, p % side + j),
                             w[((f * channels + c) * kernel + i) * kernel + j], sum);
            }
          }
        }
        REQUIRE(tape.value(y).element((image * filters + f) * side * side + p) == float(half(sum + b[f])));
      }
    }
  }
  const Variable loss =
      tape.apply(sim::mean_squared_error,
                 {y, tape.constant(Tensor::from({batch, filters, side, side},
                                                std::vector<float>(batch * filters * side * side)))});
  const sim::SiteGradients gradients = tape.backward(loss, {.loss_scale = 64});
  const Tensor &dw = gradients.gradients[0], &dy = gradients.gradients[2];
  for (std::size_t f = 0; f < filters; ++f) {
    for (std::size_t c = 0; c < channels; ++c) {
      float sum = 0;  // the weight at kernel row 0, column 2
      for (std::size_t image = 0; image < batch; ++image) {
        for (std::size_t p = 0; p < side * side; ++p) {
          const float d = static_cast<float>(dy.element((image * filters + f) * side * side + p));
          sum = std::fma(d, pixel(image, c, p / side, p % side + 2), sum);
        }
      }
      CHECK(dw.element(((f * channels + c) * kernel) * kernel + 2) == float(half(sum)));
    }
  }
}

TEST_CASE("relu and max_pool2d pass NaN on, relu's backward too") {
  const Tensor w = Tensor::from({1, 3}, std::vector<float>{std::numeric_limits<float>::quiet_NaN(), -1, 0});
  sim::Tape backward_tape(sim::find_precision_policy("fp32"));
  const Variable y = backward_tape.apply(sim::relu, {backward_tape.parameter("w", w)});
  const Variable loss =
      backward_tape.apply(sim::mean_squared_error,
                          {y, backward_tape.constant(Tensor::from({1, 3}, std::vector<float>{1, 1, 1}))});
  const sim::SiteGradients gradients = backward_tape.backward(loss, {});
  CHECK(std::isnan(gradients.gradients[0].element(0)));
  CHECK(gradients.gradients[0].element(1) == 0);
  CHECK(gradients.gradients[0].element(2) == 0);

  const float nan = std::numeric_limits<float>::quiet_NaN();
  sim::Tape tape(sim::find_precision_policy("fp32"));
  const Variable x = tape.constant(Tensor::from({1, 1, 2, 2}, std::vector<float>{1, nan, -3, 2}));
  CHECK(std::isnan(tape.value(tape.apply(sim::relu, {x})).element(1)));
  CHECK(std::isnan(tape.value(tape.apply(sim::max_pool2d, {x})).element(0)));
}

TEST_CASE("softmax_cross_entropy: large logits neither overflow nor lose the loss") {
  sim::Tape tape(sim::find_precision_policy("fp32"));
  const Variable z = tape.constant(Tensor::from({2, 3}, std::vector<float>{1e4f, 0, -1e4f, 3e38f, 3e38f, 0}));
  const Variable loss =
      tape.apply(sim::softmax_cross_entropy, {z}, {}, sim::SoftmaxCrossEntropyOptions{.labels = {1, 0}});
  CHECK(tape.value(loss).element(0) == doctest::Approx((1e4 + std::log(2.0)) / 2).epsilon(1e-6));
}

TEST_CASE("a value used twice receives the rounded sum of both gradients") {
  const Tensor w = Tensor::from({1, 1}, std::vector<float>{3});
  sim::Tape tape(sim::find_precision_policy("amp"));
  const Variable p = tape.parameter("w", w);
  const Variable square = tape.apply(sim::matmul, {p, p});  // w^2 through one cast each
  const Variable loss =
      tape.apply(sim::mean_squared_error, {square, tape.constant(Tensor::zeros({1, 1}, fp16::binary32))});
  CHECK(tape.value(loss).element(0) == 81);
  CHECK(tape.backward(loss, {}).gradients[0].element(0) == 108);  // d(w^4)/dw = 4 w^3
}
