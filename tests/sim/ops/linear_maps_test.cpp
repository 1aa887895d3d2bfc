/// matmul, linear and bias and their gradients, held to the bit against sums written out; threads for every
/// linear map.

#include "tests/sim/ops/linear_maps.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "sim/ops/attention_context.h"
#include "sim/ops/attention_scores.h"
#include "sim/ops/bias.h"
#include "sim/ops/conv2d.h"
#include "sim/ops/linear.h"
#include "sim/ops/matmul.h"
#include "tests/sim/ops/sum_oracle.h"

using linear_maps::backward_settings;
using linear_maps::check;
using linear_maps::Evaluation;
using linear_maps::MatrixProduct;
using linear_maps::normal_values;
using linear_maps::plus;
using linear_maps::Setting;
using linear_maps::settings;
using sim::Shape;
using sim::Tensor;

TEST_CASE("matmul: chains over k forward, over columns and rows backward") {
  constexpr std::size_t m = 7, k = 83, n = 37;
  for (const Setting& setting : settings()) {
    const Evaluation product{
        sim::matmul,
        {normal_values({m, k}, setting.format, "a"), normal_values({k, n}, setting.format, "b")}};
    const Tensor &a = product.inputs[0], &b = product.inputs[1];
    const Tensor y = product.forward(setting);
    REQUIRE(y.shape() == Shape{m, n});
    const MatrixProduct forward{setting, k, [&](auto i, auto l) { return a.element(i * k + l); },
                                [&](auto l, auto j) { return b.element(l * n + j); }};
    check(y, setting, "a b", [&](std::size_t i) { return forward(i / n, i % n); });
    for (const Setting& back : backward_settings(setting)) {
      const Tensor dy = normal_values({m, n}, back.format, "dy");
      const std::vector<Tensor> gradients = product.backward(back, y, dy);
      const MatrixProduct da{back, n, [&](auto i, auto l) { return dy.element(i * n + l); },
                             [&](auto l, auto j) { return b.element(j * n + l); }};
      const MatrixProduct db{back, m, [&](auto i, auto l) { return a.element(l * k + i); },
                             [&](auto l, auto j) { return dy.element(l * n + j); }};
      check(gradients[0], back, "da", [&](std::size_t i) { return da(i / k, i % k); });
      check(gradients[1], back, "db", [&](std::size_t i) { return db(i / n, i % n); });
    }
  }
}

TEST_CASE("linear: with and without a bias, which is added to the finished chain") {
  constexpr std::size_t batch = 70, in = 75, out = 13;
  for (const Setting& setting : settings()) {
    for (const bool with_bias : {false, true}) {
      Evaluation layer{
          sim::linear,
          {normal_values({batch, in}, setting.format, "x"), normal_values({out, in}, setting.format, "w")}};
      if (with_bias) layer.inputs.push_back(normal_values({out}, setting.format, "b"));
      const Tensor &x = layer.inputs[0], &w = layer.inputs[1];
      const Tensor y = layer.forward(setting);
      const MatrixProduct forward{setting, in, [&](auto i, auto l) { return x.element(i * in + l); },
                                  [&](auto l, auto j) { return w.element(j * in + l); }};
      check(y, setting, "y", [&](std::size_t i) {
        const double sum = forward(i / out, i % out);
        return with_bias ? plus(sum, layer.inputs[2].element(i % out), setting) : sum;
      });
      for (const Setting& back : backward_settings(setting)) {
        const Tensor dy = normal_values({batch, out}, back.format, "dy");
        const std::vector<Tensor> gradients = layer.backward(back, y, dy);
        const MatrixProduct dx{back, out, [&](auto i, auto l) { return dy.element(i * out + l); },
                               [&](auto l, auto j) { return w.element(l * in + j); }};
        const MatrixProduct dw{back, batch, [&](auto i, auto l) { return dy.element(l * out + i); },
                               [&](auto l, auto j) { return x.element(l * in + j); }};
        check(gradients[0], back, "dx", [&](std::size_t i) { return dx(i / in, i % in); });
        check(gradients[1], back, "dw", [&](std::size_t i) { return dw(i / in, i % in); });
        if (!with_bias) continue;
        check(gradients[2], back, "db", [&](std::size_t j) {
          std::vector<double> terms;
          for (std::size_t row = 0; row < batch; ++row) terms.push_back(dy.element(row * out + j));
          return sum_oracle::down_column(back.arithmetic.reductions, terms);
        });
      }
    }
  }
}

TEST_CASE("bias: one addition forward, a sum down the rows backward") {
  constexpr std::size_t rows = 3000, columns = 5;  // more than one piece of rows
  for (const Setting& setting : settings()) {
    const Evaluation layer{
        sim::bias,
        {normal_values({rows, columns}, setting.format, "x"), normal_values({columns}, setting.format, "b")}};
    const Tensor &x = layer.inputs[0], &b = layer.inputs[1];
    const Tensor y = layer.forward(setting);
    REQUIRE(y.shape() == x.shape());
    check(y, setting, "y",
          [&](std::size_t i) { return plus(x.element(i), b.element(i % columns), setting); });
    const Tensor dy = normal_values({rows, columns}, setting.format, "dy");
    const std::vector<Tensor> gradients = layer.backward(setting, y, dy);
    check(gradients[0], setting, "dx", [&](std::size_t i) { return dy.element(i); });
    check(gradients[1], setting, "db", [&](std::size_t j) {
      std::vector<double> terms;
      for (std::size_t row = 0; row < rows; ++row) terms.push_back(dy.element(row * columns + j));
      return sum_oracle::down_column(setting.arithmetic.reductions, terms);
    });
  }
}

TEST_CASE("linear maps: threads change neither a bit nor a count") {
  const auto values = [](const Shape& shape) { return normal_values(shape, fp16::binary16, "value"); };
  // Each has enough products for threads to be started.
  const std::vector<Evaluation> evaluations{
      {sim::matmul, {values({70, 300}), values({300, 130})}},
      {sim::linear, {values({70, 300}), values({130, 300}), values({130})}},
      {sim::bias, {values({4100, 520}), values({520})}},
      {sim::conv2d,
       {values({23, 5, 14, 14}), values({16, 5, 3, 3}), values({16})},
       sim::Conv2dOptions{.padding = 1}},
      {sim::attention_scores,
       {values({5 * 80, 96}), values({5 * 80, 96})},
       sim::AttentionOptions{.heads = 3, .context = 80}},
      {sim::attention_context,
       {values({15, 80, 80}), values({5 * 80, 96})},
       sim::AttentionOptions{.heads = 3, .context = 80}},
  };
  const auto same = [](const Tensor& a, const Tensor& b) {
    return std::ranges::equal(a.elements<std::uint16_t>(), b.elements<std::uint16_t>());
  };
  for (const Evaluation& evaluation : evaluations) {
    for (const char* name : {"amp", "fp16", "hopper"}) {
      INFO(evaluation.operation.name, " ", name);
      const Setting one = *std::ranges::find(settings(), name, &Setting::name);
      Setting three = one;
      three.arithmetic.threads = 3;
      fp16::RoundingCounts one_counts, three_counts;
      const Tensor y = evaluation.forward(one, &one_counts);
      CHECK(same(y, evaluation.forward(three, &three_counts)));
      const Tensor dy = values(y.shape());
      const std::vector<Tensor> gradients = evaluation.backward(one, y, dy, &one_counts);
      const std::vector<Tensor> others = evaluation.backward(three, y, dy, &three_counts);
      std::uint64_t elements = y.size();
      for (std::size_t i = 0; i < gradients.size(); ++i) {
        CHECK(same(gradients[i], others[i]));
        elements += gradients[i].size();
      }
      CHECK(one_counts == three_counts);
      CHECK(one_counts.exact + one_counts.inexact + one_counts.overflowed == elements);
    }
  }
}
