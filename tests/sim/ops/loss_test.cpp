/// Losses: small cases by hand, doubles as an oracle, what is left out, and the lists that name them.

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <stdexcept>
#include <vector>

#include "sim/ops/average_pool2d.h"
#include "sim/ops/batch_norm.h"
#include "sim/ops/binary_cross_entropy.h"
#include "sim/ops/binary_cross_entropy_with_logits.h"
#include "sim/ops/channels_last.h"
#include "sim/ops/global_average_pool.h"
#include "sim/ops/layer_norm.h"
#include "sim/ops/log_softmax.h"
#include "sim/ops/max_pool2d.h"
#include "sim/ops/mean.h"
#include "sim/ops/mean_absolute_error.h"
#include "sim/ops/mean_squared_error.h"
#include "sim/ops/smooth_l1.h"
#include "sim/ops/softmax.h"
#include "sim/ops/softmax_cross_entropy.h"
#include "sim/ops/sum.h"
#include "sim/ops/variance.h"
#include "tests/sim/ops/evaluation.h"
#include "tests/sim/ops/sum_oracle.h"

namespace {

using fp16::binary16;
using fp16::binary32;
using fp16::binary64;
using sim::AutocastClass;
using sim::Tensor;
using sum_oracle::roundings_along_row;

constexpr double u = 0x1p-24;
constexpr float infinity = std::numeric_limits<float>::infinity();
constexpr float not_a_number = std::numeric_limits<float>::quiet_NaN();

double loss_of(const sim::Operation& operation, const Tensor& prediction, const Tensor& target,
               const sim::OperationOptions& options = {}) {
  return Evaluation(operation, {prediction, target}, options).output.element(0);
}

/// Gradients of both inputs of a loss to an upstream gradient.
std::vector<Tensor> gradients_of(const sim::Operation& operation, const Tensor& prediction,
                                 const Tensor& target, float upstream,
                                 const sim::OperationOptions& options = {}) {
  Evaluation e(operation, {prediction, target}, options);
  return e.backward(tensor_of({1}, {upstream}));
}

const std::vector<const sim::Operation*>& elementwise_losses() {
  static const std::vector<const sim::Operation*> all{&sim::mean_squared_error, &sim::mean_absolute_error,
                                                      &sim::smooth_l1, &sim::binary_cross_entropy,
                                                      &sim::binary_cross_entropy_with_logits};
  return all;
}

/// Row weights as options of any of them.
sim::OperationOptions weighted(const sim::Operation& loss, std::vector<float> row_weights) {
  if (&loss == &sim::smooth_l1) return sim::SmoothL1Options{.row_weights = std::move(row_weights)};
  return sim::ElementwiseLossOptions{.row_weights = std::move(row_weights)};
}

/// Probabilities, good as predictions and targets of every loss.
Tensor probabilities(sim::Shape shape, std::string_view purpose) {
  Tensor tensor = normal_tensor(std::move(shape), purpose);
  for (float& x : tensor.elements<float>()) x = 1 / (1 + std::exp2(-x));
  return tensor;
}

}  // namespace

TEST_CASE("softmax_cross_entropy: log of the classes where all are alike, sure and right costs nothing") {
  Evaluation e(sim::softmax_cross_entropy, {tensor_of({2, 4}, {3, 3, 3, 3, 1000, 0, 0, 0})},
               sim::SoftmaxCrossEntropyOptions{.labels = {2, 0}});
  CHECK(e.output.shape() == sim::Shape{1});
  CHECK(e.output.element(0) == doctest::Approx(std::log(4.0) / 2).epsilon(4 * u));
  CHECK(values_of(e.saved[0]) == std::vector<double>{0.25, 0.25, 0.25, 0.25, 1, 0, 0, 0});
  CHECK(values_of(e.backward(tensor_of({1}, {8}))[0]) == std::vector<double>{1, 1, -3, 1, 0, 0, 0, 0});
}

TEST_CASE("softmax_cross_entropy: rows labelled -1 are left out, whatever they hold") {
  const Tensor logits = tensor_of({2, 2, 2}, {1, 1, not_a_number, infinity, 5, 5, 2, 2});
  Evaluation e(sim::softmax_cross_entropy, {logits},
               sim::SoftmaxCrossEntropyOptions{.labels = {0, -1, 1, -1}});
  CHECK(e.output.element(0) == doctest::Approx(std::log(2.0)).epsilon(4 * u));
  CHECK(values_of(e.backward(tensor_of({1}, {4}))[0]) == std::vector<double>{-1, 1, 0, 0, 1, -1, 0, 0});
  Evaluation all_out(sim::softmax_cross_entropy, {logits},
                     sim::SoftmaxCrossEntropyOptions{.labels = {-1, -1, -1, -1}});
  CHECK(std::isnan(all_out.output.element(0)));
  CHECK(values_of(all_out.backward(tensor_of({1}, {4}))[0]) == std::vector<double>(8, 0));
}

TEST_CASE("softmax_cross_entropy: a normaliser of one's own") {
  const Tensor logits = tensor_of({2, 2}, {1, 1, 1, 1});
  Evaluation e(sim::softmax_cross_entropy, {logits},
               sim::SoftmaxCrossEntropyOptions{.labels = {0, -1}, .normaliser = 16});
  CHECK(e.output.element(0) == doctest::Approx(std::log(2.0) / 16).epsilon(4 * u));
  CHECK(values_of(e.backward(tensor_of({1}, {32}))[0]) == std::vector<double>{-1, 1, 0, 0});
}

TEST_CASE("softmax_cross_entropy in binary32 lies within rounding of the exact one") {
  for (const std::size_t classes : {2, 10, 65}) {
    constexpr std::size_t rows = 200;
    const Tensor logits = normal_tensor({rows, classes}, "logits", binary32, 3);
    std::vector<std::int32_t> labels(rows);
    for (std::size_t r = 0; r < rows; ++r) labels[r] = static_cast<std::int32_t>(r * 7 % classes);
    double exact = 0, largest_loss = 0;
    for (std::size_t r = 0; r < rows; ++r) {
      double sum = 0;
      for (std::size_t c = 0; c < classes; ++c) sum += std::exp(logits.element(r * classes + c));
      const double loss = std::log(sum) - logits.element(r * classes + labels[r]);
      exact += loss / rows;
      largest_loss = std::max(largest_loss, loss);
    }
    // A row: the sum's relative error is the absolute one of its logarithm; terms are at most exp of a range
    // of 30, whose rounding counts for 30 u; the logarithm, the shifts and the final difference for the rest.
    // Then the interleaved sum over rows, all terms positive, and the division.
    const double row_error = (30 + 1.8 + roundings_along_row(classes) + 2 * largest_loss + 30) * u;
    const double bound = 1.01 * (row_error + (roundings_along_row(rows) + 1) * u * exact);
    const Evaluation e(sim::softmax_cross_entropy, {logits},
                       sim::SoftmaxCrossEntropyOptions{.labels = labels});
    CHECK(std::abs(e.output.element(0) - exact) <= bound);
  }
}

TEST_CASE("softmax_cross_entropy passes a NaN on and refuses bad labels") {
  const Tensor logits = tensor_of({1, 3}, {1, not_a_number, 2});
  CHECK(std::isnan(
      Evaluation(sim::softmax_cross_entropy, {logits}, sim::SoftmaxCrossEntropyOptions{.labels = {0}})
          .output.element(0)));
  CHECK_THROWS_WITH_AS(
      Evaluation(sim::softmax_cross_entropy, {logits}, sim::SoftmaxCrossEntropyOptions{.labels = {3}}),
      "softmax_cross_entropy: label 3 of row 0; allowed are 0 to 2, and -1 for a row to leave out",
      std::invalid_argument);
  CHECK_THROWS_AS(
      Evaluation(sim::softmax_cross_entropy, {logits}, sim::SoftmaxCrossEntropyOptions{.labels = {-2}}),
      std::invalid_argument);
  CHECK_THROWS_WITH_AS(
      Evaluation(sim::softmax_cross_entropy, {logits}, sim::SoftmaxCrossEntropyOptions{.labels = {0, 1}}),
      "softmax_cross_entropy: 2 labels for 1 rows; one per row is allowed", std::invalid_argument);
}

TEST_CASE("mean squared, mean absolute and smooth absolute error by hand") {
  const Tensor p = tensor_of({2, 2}, {1, 2, 3, 4}), t = tensor_of({2, 2}, {1, 0, 3.5f, 7});
  CHECK(loss_of(sim::mean_squared_error, p, t) == (0 + 4 + 0.25 + 9) / 4);
  CHECK(loss_of(sim::mean_absolute_error, p, t) == (0 + 2 + 0.5 + 3) / 4);
  CHECK(loss_of(sim::smooth_l1, p, t) == (0 + 1.5 + 0.125 + 2.5) / 4);
  CHECK(loss_of(sim::smooth_l1, p, t, sim::SmoothL1Options{.beta = 2}) == (0 + 1 + 0.0625 + 2) / 4);
  CHECK(loss_of(sim::smooth_l1, p, t, sim::SmoothL1Options{.beta = 0}) ==
        loss_of(sim::mean_absolute_error, p, t));
  const auto check = [&](const sim::Operation& operation, const std::vector<double>& expected,
                         const sim::OperationOptions& options = {}) {
    const std::vector<Tensor> gradients = gradients_of(operation, p, t, 4, options);
    CHECK(values_of(gradients[0]) == expected);
    for (std::size_t i = 0; i < 4; ++i) CHECK(gradients[1].element(i) == -expected[i]);
  };
  check(sim::mean_squared_error, {0, 4, -1, -6});
  check(sim::mean_absolute_error, {0, 1, -1, -1});
  check(sim::smooth_l1, {0, 1, -0.5, -1});
  check(sim::smooth_l1, {0, 1, -0.25, -1}, sim::SmoothL1Options{.beta = 2});
  check(sim::smooth_l1, {0, 1, -1, -1}, sim::SmoothL1Options{.beta = 0});
}

TEST_CASE("binary cross entropy: torch's bounds at 0 and 1, NaN outside") {
  const Tensor p = tensor_of({4}, {0.5f, 0, 1, 1}), t = tensor_of({4}, {1, 1, 1, 0});
  CHECK(loss_of(sim::binary_cross_entropy, p, t) ==
        doctest::Approx((std::log(2.0) + 100 + 0 + 100) / 4).epsilon(4 * u));
  const std::vector<Tensor> gradients = gradients_of(sim::binary_cross_entropy, p, t, 4);
  CHECK(values_of(gradients[0]) == std::vector<double>{-2, -1 / 1e-12f, 0, 1 / 1e-12f});
  CHECK(values_of(gradients[1]) == std::vector<double>{0, 100, -100, -100});
  CHECK(std::isnan(loss_of(sim::binary_cross_entropy, tensor_of({1}, {1.5f}), tensor_of({1}, {1}))));
  CHECK(std::isnan(loss_of(sim::binary_cross_entropy, tensor_of({1}, {-0.5f}), tensor_of({1}, {0}))));
}

TEST_CASE("binary cross entropy with logits neither overflows nor cancels, and agrees with the other") {
  const auto loss = [](float x, float t) {
    return loss_of(sim::binary_cross_entropy_with_logits, tensor_of({1}, {x}), tensor_of({1}, {t}));
  };
  CHECK(loss(0, 0.25f) == doctest::Approx(std::log(2.0)).epsilon(4 * u));
  CHECK(loss(3e38f, 0) == 3e38f);
  CHECK(loss(3e38f, 1) == 0);
  CHECK(loss(-3e38f, 1) == 3e38f);
  CHECK(loss(-40, 0) == doctest::Approx(std::log1p(std::exp(-40.0))).epsilon(8 * u).scale(0));
  CHECK(loss(20, 1) == doctest::Approx(std::log1p(std::exp(-20.0))).epsilon(8 * u).scale(0));
  CHECK(std::isnan(loss(not_a_number, 1)));

  const Tensor logits = normal_tensor({7, 30}, "logits", binary32, 2), targets = probabilities({7, 30}, "t");
  double exact = 0;
  for (std::size_t i = 0; i < logits.size(); ++i) {
    const double x = logits.element(i);
    exact += (std::max(x, 0.0) - x * targets.element(i) + std::log1p(std::exp(-std::abs(x)))) / 210;
  }
  // Terms of at most 10 + 10 + 0.7 with a handful of roundings each, and a sum of 210 of them.
  CHECK(std::abs(loss_of(sim::binary_cross_entropy_with_logits, logits, targets) - exact) <=
        (21 * 5 + 20 * (roundings_along_row(210) + 1)) * u);
}

TEST_CASE("element-wise losses: rows have weights, those of weight 0 are left out, whatever they hold") {
  const Tensor p = tensor_of({3, 2}, {1, 2, not_a_number, infinity, 5, 6}),
               t = tensor_of({3, 2}, {0, 0, 0, not_a_number, 3, 3});
  const sim::ElementwiseLossOptions options{.row_weights = {1, 0, 2}, .normaliser = 4};
  CHECK(loss_of(sim::mean_squared_error, p, t, options) == (1 + 4 + 2 * 4 + 2 * 9) / 4.0);
  const std::vector<Tensor> gradients = gradients_of(sim::mean_squared_error, p, t, 2, options);
  CHECK(values_of(gradients[0]) == std::vector<double>{1, 2, 0, 0, 4, 6});
  CHECK(values_of(gradients[1]) == std::vector<double>{-1, -2, 0, 0, -4, -6});
  // The number of elements divides where nothing else is said.
  CHECK(loss_of(sim::mean_absolute_error, p, t, sim::ElementwiseLossOptions{.row_weights = {1, 0, 2}}) ==
        static_cast<double>((1 + 2 + 2 * 2 + 2 * 3) / 6.0f));
  for (const sim::Operation* operation : elementwise_losses()) {
    const Tensor a = probabilities({40, 70}, "a"), b = probabilities({40, 70}, "b");
    const sim::OperationOptions ones = weighted(*operation, std::vector<float>(40, 1));
    CHECK(loss_of(*operation, a, b, ones) == loss_of(*operation, a, b));
    for (std::size_t input : {0, 1}) {
      CHECK(same_bytes(gradients_of(*operation, a, b, 3, ones)[input],
                       gradients_of(*operation, a, b, 3)[input]));
    }
  }
}

TEST_CASE("losses pass NaN on and scale exactly with powers of two") {
  for (const sim::Operation* operation : elementwise_losses()) {
    CAPTURE(operation->name);
    const Tensor p = probabilities({5, 50}, "p"), t = probabilities({5, 50}, "t");
    const std::vector<Tensor> one = gradients_of(*operation, p, t, 1),
                              large = gradients_of(*operation, p, t, 0x1p16f);
    for (std::size_t input : {0, 1}) {
      for (std::size_t i = 0; i < p.size(); ++i)
        REQUIRE(large[input].element(i) == 0x1p16 * one[input].element(i));
    }
    Tensor bad = p;
    bad.elements<float>()[77] = not_a_number;
    CHECK(std::isnan(loss_of(*operation, bad, t)));
    CHECK(std::isnan(gradients_of(*operation, bad, t, 1)[0].element(77)));
  }
}

TEST_CASE("losses add up in binary32 whatever the policy rounds other reductions to") {
  const Tensor p = probabilities({50, 60}, "p"), t = probabilities({50, 60}, "t");
  const EvaluationSetting fp16_reductions{.reductions = binary16};
  for (const sim::Operation* operation : elementwise_losses()) {
    CHECK(same_bytes(Evaluation(*operation, {p, t}, {}, fp16_reductions).output,
                     Evaluation(*operation, {p, t}).output));
  }
  const sim::SoftmaxCrossEntropyOptions options{.labels = std::vector<std::int32_t>(50, 7)};
  CHECK(same_bytes(Evaluation(sim::softmax_cross_entropy, {p}, options, fp16_reductions).output,
                   Evaluation(sim::softmax_cross_entropy, {p}, options).output));
}

TEST_CASE("losses refuse what cannot be meant") {
  const Tensor a = Tensor::zeros({2, 3}, binary32), b = Tensor::zeros({3, 2}, binary32);
  CHECK_THROWS_WITH_AS(Evaluation(sim::mean_squared_error, {a, b}),
                       "mean_squared_error: predictions are 2x3, targets 3x2; they must be shaped alike",
                       std::invalid_argument);
  CHECK_THROWS_WITH_AS(Evaluation(sim::smooth_l1, {a, a}, sim::SmoothL1Options{.beta = -1}),
                       "smooth_l1: beta = -1 is not allowed; allowed: numbers in [0, inf)",
                       std::invalid_argument);
  CHECK_THROWS_AS(Evaluation(sim::mean_squared_error, {a, a}, sim::ElementwiseLossOptions{.normaliser = -2}),
                  std::invalid_argument);
  CHECK_THROWS_AS(
      Evaluation(sim::mean_squared_error, {a, a}, sim::ElementwiseLossOptions{.normaliser = not_a_number}),
      std::invalid_argument);
  CHECK_THROWS_WITH_AS(
      Evaluation(sim::mean_squared_error, {a, a}, sim::ElementwiseLossOptions{.row_weights = {1, 2, 3, 4}}),
      "mean_squared_error: 4 row weights for a shape of 2x3; one per row is allowed", std::invalid_argument);
}

TEST_CASE("losses: the twin's gradients are doubles of the same forward values") {
  Tensor upstream({1}, binary64);
  upstream.elements<double>()[0] = 3;
  const Tensor p = probabilities({5, 50}, "p"), t = probabilities({5, 50}, "t");
  for (const sim::Operation* operation : elementwise_losses()) {
    Evaluation e(*operation, {p, t});
    const std::vector<Tensor> wide = e.backward(upstream, binary64), narrow = e.backward(tensor_of({1}, {3}));
    for (std::size_t i = 0; i < p.size(); ++i) {
      REQUIRE(wide[0].format() == binary64);
      // p - t cancels up to its rounding of u; nothing after it does, and no factor exceeds 1 / (p (1 - p))
      // < 40.
      REQUIRE(std::abs(wide[0].element(i) - narrow[0].element(i)) <= 3 * 40 * 10 * u);
    }
  }
}

TEST_CASE("losses: the same bytes and counts for 1 and 2 threads") {
  const Tensor p = probabilities({700, 101}, "p"), t = probabilities({700, 101}, "t");
  for (const sim::Operation* operation : elementwise_losses()) {
    for (const sim::OperationOptions& options :
         {sim::OperationOptions{}, weighted(*operation, std::vector<float>(700, 0.5f))}) {
      Evaluation one(*operation, {p, t}, options), two(*operation, {p, t}, options, {.threads = 2});
      CHECK(same_bytes(one.output, two.output));
      const std::vector<Tensor> first = one.backward(tensor_of({1}, {3})),
                                second = two.backward(tensor_of({1}, {3}));
      for (std::size_t input : {0, 1}) CHECK(same_bytes(first[input], second[input]));
      CHECK(one.counts == two.counts);
    }
  }
  std::vector<std::int32_t> labels(700);
  for (std::size_t i = 0; i < 700; ++i) labels[i] = static_cast<std::int32_t>(i % 102) - 1;
  Evaluation one(sim::softmax_cross_entropy, {p}, sim::SoftmaxCrossEntropyOptions{.labels = labels}),
      two(sim::softmax_cross_entropy, {p}, sim::SoftmaxCrossEntropyOptions{.labels = labels}, {.threads = 2});
  CHECK(same_bytes(one.output, two.output));
  CHECK(same_bytes(one.saved[0], two.saved[0]));
  CHECK(same_bytes(one.backward(tensor_of({1}, {3}))[0], two.backward(tensor_of({1}, {3}))[0]));
}

TEST_CASE("classes of losses, reductions, pools and norms in the lists of torch.autocast and Apex O1") {
  struct Row {
    const sim::Operation* operation;
    AutocastClass torch_autocast, apex_o1;
  };
  using enum AutocastClass;
  for (const auto& [operation, torch, apex] :
       {Row{&sim::softmax, full_precision_output, full_precision},
        Row{&sim::log_softmax, full_precision_output, full_precision},
        Row{&sim::sum, full_precision_output, full_precision}, Row{&sim::mean, input_type, input_type},
        Row{&sim::variance, input_type, full_precision},
        Row{&sim::layer_norm, full_precision, full_precision}, Row{&sim::batch_norm, input_type, input_type},
        Row{&sim::max_pool2d, input_type, input_type}, Row{&sim::average_pool2d, input_type, input_type},
        Row{&sim::global_average_pool, input_type, input_type},
        Row{&sim::channels_last, input_type, input_type},
        Row{&sim::softmax_cross_entropy, full_precision, full_precision},
        Row{&sim::mean_squared_error, full_precision, full_precision},
        Row{&sim::mean_absolute_error, full_precision, full_precision},
        Row{&sim::smooth_l1, full_precision, full_precision}, Row{&sim::binary_cross_entropy, banned, banned},
        Row{&sim::binary_cross_entropy_with_logits, full_precision, full_precision}}) {
    CAPTURE(operation->name);
    CHECK(operation->casts.value().torch_autocast == torch);
    CHECK(operation->casts.value().apex_o1 == apex);
  }
  CHECK(sim::binary_cross_entropy.replacement == sim::binary_cross_entropy_with_logits.name);
  CHECK(sim::batch_norm.keeps_first_format);
  CHECK(sim::softmax_cross_entropy.is_loss);
  for (const sim::Operation* operation : elementwise_losses()) CHECK(operation->is_loss);
}
