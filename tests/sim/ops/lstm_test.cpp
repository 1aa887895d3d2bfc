/// The LSTM layer against the recurrence written out: in double to compare values, in binary16 with every
/// rounding to compare bits.

#include "sim/ops/lstm.h"

#include <doctest/doctest.h>

#include <cmath>
#include <vector>

#include "fp16/elementary.h"
#include "tests/sim/ops/evaluation.h"

namespace {

using fp16::half;
using sim::Tensor;

constexpr std::size_t batch = 3, context = 5, features = 7, hidden = 4;

std::vector<Tensor> inputs(fp16::Format format) {
  std::vector<Tensor> tensors;
  tensors.push_back(normal_tensor({batch * context, features}, "x", format));
  tensors.push_back(normal_tensor({4 * hidden, features}, "input weight", format, 0.5f));
  tensors.push_back(normal_tensor({4 * hidden, hidden}, "hidden weight", format, 0.5f));
  tensors.push_back(normal_tensor({4 * hidden}, "bias", format, 0.5f));
  return tensors;
}

/// The hidden states, token by token: Hochreiter and Schmidhuber's recurrence with forget gates, gates in
/// torch's order i, f, g, o.
std::vector<double> in_double(const std::vector<Tensor>& t) {
  const auto sigmoid = [](double z) { return 1 / (1 + std::exp(-z)); };
  std::vector<double> outputs(batch * context * hidden);
  for (std::size_t sequence = 0; sequence < batch; ++sequence) {
    std::vector<double> h(hidden), c(hidden);
    for (std::size_t step = 0; step < context; ++step) {
      const std::size_t row = sequence * context + step;
      std::vector<double> z(4 * hidden);
      for (std::size_t gate = 0; gate < 4 * hidden; ++gate) {
        z[gate] = t[3].element(gate);
        for (std::size_t k = 0; k < features; ++k)
          z[gate] += t[0].element(row * features + k) * t[1].element(gate * features + k);
        for (std::size_t k = 0; k < hidden; ++k) z[gate] += h[k] * t[2].element(gate * hidden + k);
      }
      for (std::size_t j = 0; j < hidden; ++j) {
        c[j] = sigmoid(z[hidden + j]) * c[j] + sigmoid(z[j]) * std::tanh(z[2 * hidden + j]);
        h[j] = sigmoid(z[3 * hidden + j]) * std::tanh(c[j]);
        outputs[row * hidden + j] = h[j];
      }
    }
  }
  return outputs;
}

/// A gate's sum: one chain over the inputs, then over the hidden state, from zero; then the bias.
float gate_sum(const std::vector<Tensor>& t, std::size_t row, std::size_t gate,
               const std::vector<float>& earlier) {
  float sum = 0;
  const auto value = [&](std::size_t tensor, std::size_t index) {
    return static_cast<float>(t[tensor].element(index));
  };
  for (std::size_t k = 0; k < features; ++k)
    sum = std::fma(value(0, row * features + k), value(1, gate * features + k), sum);
  for (std::size_t k = 0; k < hidden; ++k) sum = std::fma(earlier[k], value(2, gate * hidden + k), sum);
  return sum + value(3, gate);
}

}  // namespace

TEST_CASE("lstm: the recurrence, in binary64 and in binary32") {
  const std::vector<double> expected = in_double(inputs(fp16::binary64));
  // Sums of a dozen terms of order 1, five steps, no step enlarges an error by more than a small factor.
  for (const auto& [format, tolerance] : {std::pair{fp16::binary64, 0x1p-45}, {fp16::binary32, 0x1p-16}}) {
    const Evaluation lstm(sim::lstm, inputs(format), sim::LstmLayerOptions{.context = context},
                          {.output = format});
    CHECK(lstm.output.format() == format);
    CHECK(lstm.output.shape() == sim::Shape{batch * context, hidden});
    for (std::size_t i = 0; i < expected.size(); ++i) {
      INFO(fp16::name_of(format), " ", i);
      CHECK(std::abs(lstm.output.element(i) - expected[i]) <= tolerance);
    }
  }
}

TEST_CASE("lstm: in binary16 each state is rounded once at every step, gates are formed in binary32") {
  const std::vector<Tensor> t = inputs(fp16::binary16);
  const Evaluation lstm(sim::lstm, inputs(fp16::binary16), sim::LstmLayerOptions{.context = context},
                        {.output = fp16::binary16});
  for (std::size_t sequence = 0; sequence < batch; ++sequence) {
    std::vector<float> h(hidden), c(hidden);
    for (std::size_t step = 0; step < context; ++step) {
      const std::size_t row = sequence * context + step;
      const std::vector<float> earlier = h;
      for (std::size_t j = 0; j < hidden; ++j) {
        const auto z = [&](std::size_t gate) { return gate_sum(t, row, gate * hidden + j, earlier); };
        const float cell = fp16::sigmoid(z(1)) * c[j] + fp16::sigmoid(z(0)) * fp16::tanh(z(2));
        h[j] = half(fp16::sigmoid(z(3)) * fp16::tanh(cell));
        c[j] = half(cell);
        INFO("sequence ", sequence, " step ", step, " unit ", j);
        REQUIRE(lstm.output.element(row * hidden + j) == h[j]);
      }
    }
  }
}

TEST_CASE("lstm: sequences know nothing of each other") {
  std::vector<Tensor> alone = inputs(fp16::binary32);
  Tensor first_two({2 * context, features}, fp16::binary32);
  std::copy_n(alone[0].elements<float>().begin(), first_two.size(), first_two.elements<float>().begin());
  alone[0] = std::move(first_two);
  const Evaluation two(sim::lstm, std::move(alone), sim::LstmLayerOptions{.context = context}),
      three(sim::lstm, inputs(fp16::binary32), sim::LstmLayerOptions{.context = context});
  for (std::size_t i = 0; i < two.output.size(); ++i) CHECK(two.output.element(i) == three.output.element(i));
}

TEST_CASE("lstm: the gradient of a state runs back through time, and only back") {
  Evaluation lstm(sim::lstm, inputs(fp16::binary64), sim::LstmLayerOptions{.context = context},
                  {.output = fp16::binary64});
  Tensor dy = Tensor::zeros(lstm.output.shape(), fp16::binary64);
  constexpr std::size_t sequence = 1, step = 2;
  dy.elements<double>()[(sequence * context + step) * hidden] = 1;
  const std::vector<Tensor> gradients = lstm.backward(dy);
  for (std::size_t row = 0; row < batch * context; ++row) {
    const bool reached = row / context == sequence && row % context <= step;
    double largest = 0;
    for (std::size_t k = 0; k < features; ++k)
      largest = std::max(largest, std::abs(gradients[0].element(row * features + k)));
    INFO("row ", row);
    CHECK((largest > 0) == reached);
  }
}

TEST_CASE("lstm: a context that does not divide the tokens is refused") {
  for (const std::size_t wrong : {std::size_t{0}, std::size_t{4}}) {
    CHECK_THROWS_WITH_AS(
        Evaluation(sim::lstm, inputs(fp16::binary32), sim::LstmLayerOptions{.context = wrong}),
        ("lstm: context: " + std::to_string(wrong) + " is not allowed; a divisor of the number of tokens 15")
            .c_str(),
        std::invalid_argument);
  }
}
