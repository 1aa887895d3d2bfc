/// Scores and contexts of attention and their gradients, held to the bit against sums written out.

#include <doctest/doctest.h>

#include <cmath>
#include <stdexcept>
#include <vector>

#include "sim/ops/attention_context.h"
#include "sim/ops/attention_scores.h"
#include "tests/sim/ops/linear_maps.h"

namespace {

using linear_maps::backward_settings;
using linear_maps::check;
using linear_maps::Evaluation;
using linear_maps::Expected;
using linear_maps::MatrixProduct;
using linear_maps::normal_values;
using linear_maps::Setting;
using linear_maps::settings;
using linear_maps::times;
using sim::Shape;
using sim::Tensor;

struct Heads {
  std::size_t batch = 3, heads = 2, context = 9, width = 14;

  std::size_t depth() const { return width / heads; }
  Shape tokens() const { return {batch * context, width}; }
  Shape scores() const { return {batch * heads, context, context}; }
  /// Elements of a head (counted through all sequences) in tokens and in scores.
  double token(const Tensor& t, std::size_t head, std::size_t row, std::size_t column) const {
    return t.element((head / heads * context + row) * width + head % heads * depth() + column);
  }
  double score(const Tensor& t, std::size_t head, std::size_t row, std::size_t column) const {
    return t.element((head * context + row) * context + column);
  }
  /// expected(head, row, column) of tensors like tokens and like scores.
  template <class Function>
  Expected of_tokens(Function expected) const {
    return [*this, expected](std::size_t i) {
      const std::size_t row = i / width, column = i % width;
      return expected(row / context * heads + column / depth(), row % context, column % depth());
    };
  }
  template <class Function>
  Expected of_scores(Function expected) const {
    return [*this, expected](std::size_t i) {
      return expected(i / context / context, i / context % context, i % context);
    };
  }
};

}  // namespace

TEST_CASE("attention_scores: q k^T of every head, its finished chains divided by the root of the depth") {
  const Heads h;
  const double factor = 1 / std::sqrt(7.0);
  for (const Setting& setting : settings()) {
    const Evaluation attention{
        sim::attention_scores,
        {normal_values(h.tokens(), setting.format, "q"), normal_values(h.tokens(), setting.format, "k")},
        sim::AttentionOptions{.heads = h.heads, .context = h.context}};
    const Tensor &q = attention.inputs[0], &k = attention.inputs[1];
    const Tensor y = attention.forward(setting);
    REQUIRE(y.shape() == h.scores());
    check(y, setting, "q k^T", h.of_scores([&](auto head, auto row, auto column) {
      return times(MatrixProduct{setting, h.depth(), [&](auto i, auto l) { return h.token(q, head, i, l); },
                                 [&](auto l, auto j) { return h.token(k, head, j, l); }}(row, column),
                   factor, setting);
    }));
    for (const Setting& back : backward_settings(setting)) {
      const Tensor dy = normal_values(h.scores(), back.format, "dy");
      const std::vector<Tensor> gradients = attention.backward(back, y, dy);
      check(gradients[0], back, "dq", h.of_tokens([&](auto head, auto row, auto column) {
        return times(MatrixProduct{back, h.context, [&](auto i, auto l) { return h.score(dy, head, i, l); },
                                   [&](auto l, auto j) { return h.token(k, head, l, j); }}(row, column),
                     factor, back);
      }));
      check(gradients[1], back, "dk", h.of_tokens([&](auto head, auto row, auto column) {
        return times(MatrixProduct{back, h.context, [&](auto i, auto l) { return h.score(dy, head, l, i); },
                                   [&](auto l, auto j) { return h.token(q, head, l, j); }}(row, column),
                     factor, back);
      }));
    }
  }
}

TEST_CASE("attention_context: p v of every head, side by side") {
  const Heads h;
  for (const Setting& setting : settings()) {
    const Evaluation attention{
        sim::attention_context,
        {normal_values(h.scores(), setting.format, "p"), normal_values(h.tokens(), setting.format, "v")},
        sim::AttentionOptions{.heads = h.heads, .context = h.context}};
    const Tensor &p = attention.inputs[0], &v = attention.inputs[1];
    const Tensor y = attention.forward(setting);
    REQUIRE(y.shape() == h.tokens());
    check(y, setting, "p v", h.of_tokens([&](auto head, auto row, auto column) {
      return MatrixProduct{setting, h.context, [&](auto i, auto l) { return h.score(p, head, i, l); },
                           [&](auto l, auto j) { return h.token(v, head, l, j); }}(row, column);
    }));
    for (const Setting& back : backward_settings(setting)) {
      const Tensor dy = normal_values(h.tokens(), back.format, "dy");
      const std::vector<Tensor> gradients = attention.backward(back, y, dy);
      check(gradients[0], back, "dp", h.of_scores([&](auto head, auto row, auto column) {
        return MatrixProduct{back, h.depth(), [&](auto i, auto l) { return h.token(dy, head, i, l); },
                             [&](auto l, auto j) { return h.token(v, head, j, l); }}(row, column);
      }));
      check(gradients[1], back, "dv", h.of_tokens([&](auto head, auto row, auto column) {
        return MatrixProduct{back, h.context, [&](auto i, auto l) { return h.score(p, head, l, i); },
                             [&](auto l, auto j) { return h.token(dy, head, l, j); }}(row, column);
      }));
    }
  }
}

TEST_CASE("attention: heads and context must divide what they share") {
  const auto forward = [](const sim::AttentionOptions& options) {
    const Tensor tokens = Tensor::zeros({12, 10}, fp16::binary32);
    return Evaluation{sim::attention_scores, {tokens, tokens}, options}.forward(settings().front());
  };
  CHECK_THROWS_WITH_AS(forward({.heads = 3, .context = 4}),
                       "attention: heads: 3 is not allowed; a divisor of the width 10",
                       std::invalid_argument);
  CHECK_THROWS_WITH_AS(forward({.heads = 2, .context = 5}),
                       "attention: context: 5 is not allowed; a divisor of the number of tokens 12",
                       std::invalid_argument);
}
