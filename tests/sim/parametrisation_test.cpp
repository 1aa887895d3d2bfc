#include "sim/parametrisation.h"

#include <doctest/doctest.h>

#include <cmath>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include "sim/tape.h"
#include "tests/sim/ops/evaluation.h"

using sim::ScaleConstraint;
using sim::UnitMultipliers;
using sim::UnitScaling;
using sim::Variable;

namespace {

double mean_square(const sim::Tensor& tensor) {
  double sum = 0;
  for (const double value : values_of(tensor)) sum += value * value;
  return sum / static_cast<double>(tensor.size());
}

struct MeanSquares {
  std::vector<double> sums;                 ///< of the residual stream after each block
  std::map<std::string, double> gradients;  ///< of each site
};

/// Blocks of x + linear(x) from standard normal numbers, and such a gradient at the last sum.
MeanSquares residual_stream(int blocks, const UnitScaling& rule) {
  constexpr std::size_t rows = 256, width = 128;
  const sim::Tensor x = normal_tensor({rows, width}, "x");
  std::vector<sim::Tensor> weights;
  for (int block = 0; block < blocks; ++block)
    weights.push_back(normal_tensor({width, width}, "w" + std::to_string(block)));
  sim::Tape tape(sim::find_precision_policy("fp32"), {.unit_scaling = &rule});
  Variable stream = tape.parameter("x", x);
  MeanSquares result;
  for (int block = 0; block < blocks; ++block) {
    const std::string number = std::to_string(block);
    const Variable w = tape.parameter("w" + number, weights[static_cast<std::size_t>(block)]);
    stream = tape.apply(sim::add, {stream, tape.apply(sim::linear, {stream, w}, "block" + number)});
    result.sums.push_back(mean_square(tape.value(stream)));
  }
  const Variable gradient = tape.constant(normal_tensor({rows, width}, "gradient"));
  const Variable loss = tape.apply(sim::sum, {tape.apply(sim::mul, {stream, gradient})});
  const sim::SiteGradients gradients = tape.backward(loss, {});
  for (std::size_t site = 0; site < gradients.gradients.size(); ++site)
    result.gradients[tape.sites()[site].name] = mean_square(gradients.gradients[site]);
  return result;
}

}  // namespace

// A mean square of 256 x 128 numbers, products by a matrix of 128 x 128 among them, scatters by about 0.02.

TEST_CASE("parametrisation: a residual stream keeps variance 1 both ways, its branches 1/2 on the way back") {
  const MeanSquares stream = residual_stream(4, UnitScaling());
  for (const double sum : stream.sums) CHECK(std::fabs(sum - 1) < 0.1);
  CHECK(std::fabs(stream.gradients.at("x") - 1) < 0.1);
  for (const std::string within : {"block0", "block1", "block2", "block3", "w0", "w1", "w2", "w3"}) {
    INFO(within);
    CHECK(std::fabs(stream.gradients.at(within) - 0.5) < 0.1);
  }
}

TEST_CASE("parametrisation: without a constraint a residual stream's gradient doubles with every block") {
  const MeanSquares stream = residual_stream(4, UnitScaling({.constraint = ScaleConstraint::none}));
  for (const double sum : stream.sums) CHECK(std::fabs(sum - 1) < 0.1);
  CHECK(std::fabs(stream.gradients.at("x") / 16 - 1) < 0.15);
}

TEST_CASE("parametrisation: conv2d counts the pixels that a stride and a padding leave") {
  const UnitScaling free({.constraint = ScaleConstraint::none});
  const sim::Tensor x({2, 4, 7, 9}, fp16::binary32), w({16, 4, 3, 3}, fp16::binary32);
  const sim::Tensor* const inputs[] = {&x, &w};
  const auto multipliers = [&](const sim::OperationOptions& options) {
    return sim::multipliers_of(free, sim::conv2d, inputs, options, "conv");
  };
  CHECK(multipliers({}) == free.conv2d({.batch = 2,
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

TEST_CASE("parametrisation: conv2d refuses what the operation itself refuses") {
  const sim::Tensor x({1, 1, 2, 2}, fp16::binary32), w({1, 1, 3, 3}, fp16::binary32);
  const sim::Tensor* const inputs[] = {&x, &w};
  const auto multipliers = [&](const sim::OperationOptions& options) {
    return sim::multipliers_of(UnitScaling(), sim::conv2d, inputs, options, "conv");
  };
  CHECK_THROWS_WITH_AS(multipliers({.stride = 0, .padding = 1}), doctest::Contains("stride"),
                       std::invalid_argument);
  CHECK_THROWS_WITH_AS(multipliers({}), doctest::Contains("kernel of 3"), std::invalid_argument);
}
