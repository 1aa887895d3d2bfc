/// A tape under unit scaling: variances stay 1 along residuals and layers, losses keep their values.

#include <doctest/doctest.h>

#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "sim/ops/add.h"
#include "sim/ops/linear.h"
#include "sim/ops/lstm.h"
#include "sim/ops/mean_squared_error.h"
#include "sim/ops/mul.h"
#include "sim/ops/smooth_l1.h"
#include "sim/ops/softmax_cross_entropy.h"
#include "sim/ops/sum.h"
#include "sim/tape/tape.h"
#include "tests/sim/ops/evaluation.h"

using sim::ScaleConstraint;
using sim::UnitScaling;
using sim::Variable;

namespace {

double mean_square(const sim::Tensor& tensor) {
  double sum = 0;
  for (const double value : values_of(tensor)) sum += value * value;
  return sum / static_cast<double>(tensor.size());
}

using Gradients = std::map<std::string, double>;

/// The mean square of each site's gradient, after a standard normal one has arrived at `output`.
Gradients mean_square_gradients(sim::Tape& tape, Variable output) {
  const Variable gradient = tape.constant(normal_tensor(tape.value(output).shape(), "gradient"));
  const Variable loss = tape.apply(sim::sum, {tape.apply(sim::mul, {output, gradient})});
  const sim::SiteGradients gradients = tape.backward(loss, {});
  Gradients result;
  for (std::size_t site = 0; site < gradients.gradients.size(); ++site)
    result[tape.sites()[site].name] = mean_square(gradients.gradients[site]);
  return result;
}

struct ResidualStream {
  std::vector<double> sums;  ///< mean squares after each block
  double first_branch;       ///< mean square of the first sum less the path's share
  Gradients gradients;       ///< mean squares
};

/// Blocks of x + linear(x) from standard normal numbers, and such a gradient at the last sum.
ResidualStream residual_stream(int blocks, const UnitScaling& rule) {
  constexpr std::size_t rows = 256, width = 128;
  const sim::Tensor x = normal_tensor({rows, width}, "x");
  std::vector<sim::Tensor> weights;
  for (int block = 0; block < blocks; ++block)
    weights.push_back(normal_tensor({width, width}, std::string("w").append(std::to_string(block))));
  sim::Tape tape(sim::find_precision_policy("fp32"), {.unit_scaling = &rule});
  Variable stream = tape.parameter("x", x);
  ResidualStream result;
  for (int block = 0; block < blocks; ++block) {
    const std::string number = std::to_string(block);
    const Variable w = tape.parameter("w" + number, weights[static_cast<std::size_t>(block)]);
    stream = tape.residual(stream, [&](Variable y) {
      return tape.apply(sim::linear, {y, w}, "block" + number);
    });
    result.sums.push_back(mean_square(tape.value(stream)));
    if (block > 0) continue;
    sim::Tensor branch = tape.value(stream);
    for (std::size_t i = 0; i < branch.size(); ++i)
      branch.elements<float>()[i] -= static_cast<float>(rule.residual().path * x.element(i));
    result.first_branch = mean_square(branch);
  }
  result.gradients = mean_square_gradients(tape, stream);
  return result;
}

}  // namespace

// A mean square of 256 x 128 numbers, products by a matrix of 128 x 128 among them, scatters by about 0.02.

TEST_CASE("unit scaling: a residual stream and its branches keep variance 1 both ways, whatever tau is") {
  for (const ScaleConstraint constraint : {ScaleConstraint::to_output_scale, ScaleConstraint::none}) {
    for (const double tau : {1.0, 0.25}) {
      CAPTURE(tau);
      const ResidualStream stream = residual_stream(4, UnitScaling({.constraint = constraint, .tau = tau}));
      for (const double sum : stream.sums) CHECK(std::fabs(sum - 1) < 0.1);
      CHECK(stream.first_branch == doctest::Approx(tau * tau / (1 + tau * tau)).epsilon(0.1));
      for (const auto& [site, gradient] : stream.gradients) {
        INFO(site);
        CHECK(std::fabs(gradient - 1) < 0.1);
      }
    }
  }
}

TEST_CASE("unit scaling: without unit scaling a residual is the plain sum, its gradient too") {
  const sim::Tensor x = normal_tensor({8, 8}, "x");
  sim::Tape tape(sim::find_precision_policy("fp32"));
  const Variable start = tape.parameter("x", x);
  const Variable end = tape.residual(start, [&](Variable y) { return tape.apply(sim::mul, {y, y}); });
  const sim::SiteGradients gradients = tape.backward(tape.apply(sim::sum, {end}), {});
  for (std::size_t i = 0; i < x.size(); ++i) {
    const auto value = static_cast<float>(x.element(i));
    CHECK(tape.value(end).element(i) == value + value * value);
    CHECK(gradients.gradients[0].element(i) == doctest::Approx(1 + 2 * value).epsilon(1e-6));
  }
}

// What an LSTM does to variances was measured for white gradients and sequences of 16; 1.4 is what correlations
// along a sequence add to sums over all tokens, such as the bias's gradient.
TEST_CASE("unit scaling: an LSTM keeps variances near 1, for any number of inputs") {
  constexpr std::size_t tokens = 512, hidden = 64;
  const UnitScaling rule({.constraint = ScaleConstraint::none});
  for (const std::size_t features : {std::size_t{32}, std::size_t{128}}) {
    CAPTURE(features);
    const sim::Tensor x = normal_tensor({tokens, features}, "x"),
                      of_inputs = normal_tensor({4 * hidden, features}, "input weight"),
                      of_state = normal_tensor({4 * hidden, hidden}, "hidden weight"),
                      bias = sim::Tensor::zeros({4 * hidden}, fp16::binary32);
    sim::Tape tape(sim::find_precision_policy("fp32"), {.unit_scaling = &rule});
    const Variable y = tape.apply(sim::lstm,
                                  {tape.parameter("x", x), tape.parameter("input", of_inputs),
                                   tape.parameter("hidden", of_state), tape.parameter("bias", bias)},
                                  "lstm", sim::LstmLayerOptions{.context = 16});
    CHECK(std::fabs(std::sqrt(mean_square(tape.value(y))) - 1) < 0.1);
    for (const auto& [site, gradient] : mean_square_gradients(tape, y)) {
      INFO(site);
      CHECK(std::sqrt(gradient) > 0.9);
      CHECK(std::sqrt(gradient) < 1.5);
    }
  }
}

TEST_CASE("unit scaling: a loss keeps its value and a sum of losses stays a sum") {
  const UnitScaling rule;
  const sim::Tensor logits = normal_tensor({4, 3}, "logits"), target = normal_tensor({4, 3}, "target");
  for (const double normaliser : {0.0, 7.0}) {
    const auto loss = [&](const UnitScaling* unit_scaling) {
      sim::Tape tape(sim::find_precision_policy("fp32"), {.unit_scaling = unit_scaling});
      const Variable prediction = tape.parameter("logits", logits), goal = tape.constant(target);
      Variable sum =
          tape.apply(sim::softmax_cross_entropy, {prediction}, {},
                     sim::SoftmaxCrossEntropyOptions{.labels = {2, -1, 0, -1}, .normaliser = normaliser});
      const auto add = [&](const sim::Operation& operation, const sim::OperationOptions& options) {
        sum = tape.apply(sim::add, {sum, tape.apply(operation, {prediction, goal}, {}, options)});
      };
      add(sim::smooth_l1, sim::SmoothL1Options{.normaliser = normaliser});
      add(sim::mean_squared_error, sim::ElementwiseLossOptions{.normaliser = normaliser});
      return tape.value(sum).element(0);
    };
    CAPTURE(normaliser);
    CHECK(loss(&rule) == doctest::Approx(loss(nullptr)).epsilon(1e-6));
  }
}
