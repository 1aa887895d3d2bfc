#include "sim/precision/unit_scaling.h"

#include <doctest/doctest.h>

#include <cmath>
#include <functional>
#include <numbers>
#include <stdexcept>
#include <vector>

#include "sim/tensor/random.h"

using sim::ScaleConstraint;
using sim::UnitMultipliers;
using sim::UnitScaling;

namespace {

const UnitScaling free_scaling({.constraint = ScaleConstraint::none});

struct Matrix {
  std::size_t rows, columns;
  std::vector<double> values = std::vector<double>(rows * columns);

  double& operator()(std::size_t i, std::size_t j) { return values[i * columns + j]; }
  double operator()(std::size_t i, std::size_t j) const { return values[i * columns + j]; }
};

Matrix normal_matrix(std::size_t rows, std::size_t columns, std::string_view purpose) {
  const sim::RandomStream stream(1, purpose);
  Matrix matrix{rows, columns};
  for (std::size_t i = 0; i < matrix.values.size(); ++i) matrix.values[i] = stream.normal(i);
  return matrix;
}

Matrix transposed(const Matrix& a) {
  Matrix result{a.columns, a.rows};
  for (std::size_t i = 0; i < a.rows; ++i) {
    for (std::size_t j = 0; j < a.columns; ++j) result(j, i) = a(i, j);
  }
  return result;
}

Matrix product(const Matrix& a, const Matrix& b) {
  Matrix result{a.rows, b.columns};
  for (std::size_t i = 0; i < a.rows; ++i) {
    for (std::size_t k = 0; k < a.columns; ++k) {
      for (std::size_t j = 0; j < b.columns; ++j) result(i, j) += a(i, k) * b(k, j);
    }
  }
  return result;
}

double mean_square(const Matrix& a, double factor) {
  double sum = 0;
  for (const double value : a.values) sum += factor * value * factor * value;
  return sum / static_cast<double>(a.values.size());
}

// Six standard deviations of the mean square of an m x n matrix of sums of k products of standard normal
// numbers, divided by sqrt(k): each square has the variance 2 + 6/k (the fourth moment of such a sum is
// 3 + 6/k), two in the same row or column have the covariance 2/k, others none.
double product_tolerance(std::size_t m, std::size_t k, std::size_t n) {
  const auto variance = (2 + (6 + 2.0 * (m - 1) + 2.0 * (n - 1)) / k) / (m * n);
  return 6 * std::sqrt(variance);
}

// Six standard deviations of the mean square of n standard normal numbers.
double normal_tolerance(std::size_t n) {
  return 6 * std::sqrt(2.0 / static_cast<double>(n));
}

// The mean of f(x) for x ~ N(0, 1): the trapezoidal rule, whose error here is below 1e-5 even for functions
// with a kink at 0, which is a node.
double normal_mean(const std::function<double(double)>& f) {
  constexpr double step = 1.0 / 256;
  double sum = 0;
  for (int i = -10 * 256; i <= 10 * 256; ++i) {
    const double x = i * step;
    sum += f(x) * std::exp(-x * x / 2);
  }
  return sum * step / std::sqrt(2 * std::numbers::pi);
}

struct Activation {
  std::function<double(double)> value, derivative;
};

// Standard deviations of what the scaled activation makes of N(0, 1), forward and backward.
std::pair<double, double> deviations(const Activation& f, const UnitMultipliers& multipliers) {
  const double mean = normal_mean(f.value);
  const double variance = normal_mean([&](double x) { return f.value(x) * f.value(x); }) - mean * mean;
  const double passed = normal_mean([&](double x) { return f.derivative(x) * f.derivative(x); });
  return {multipliers.output * std::sqrt(variance), multipliers.gradients[0] * std::sqrt(passed)};
}

double normal_distribution(double x) {
  return std::erfc(-x / std::numbers::sqrt2) / 2;
}

}  // namespace

TEST_CASE("unit_scaling: linear, constrained and not") {
  const sim::LinearSizes sizes{.rows = 25, .fan_in = 16, .fan_out = 64};
  const auto linear = [&sizes](ScaleConstraint constraint) {
    return UnitScaling({.constraint = constraint}).linear(sizes);
  };
  CHECK(linear(ScaleConstraint::none) == UnitMultipliers{.output = 0.25, .gradients = {0.125, 0.2, 0.2, 1}});
  CHECK(UnitScaling().linear(sizes) == UnitMultipliers{.output = 0.25, .gradients = {0.25, 0.2, 0.2, 1}});
  CHECK(linear(ScaleConstraint::to_grad_input_scale) ==
        UnitMultipliers{.output = 0.125, .gradients = {0.125, 0.2, 0.2, 1}});
  CHECK(linear(ScaleConstraint::gmean).output == doctest::Approx(std::sqrt(1 / 32.0)).epsilon(1e-15));
  CHECK(linear(ScaleConstraint::gmean).gradients[0] == linear(ScaleConstraint::gmean).output);
  CHECK(linear(ScaleConstraint::hmean).output == doctest::Approx(1.0 / 6).epsilon(1e-15));
  CHECK(linear(ScaleConstraint::amean).output == 3.0 / 16);
  // The readout obeys no constraint.
  CHECK(UnitScaling().readout(sizes) == UnitMultipliers{.output = 0.0625, .gradients = {0.125, 0.2, 0.2, 1}});
}

TEST_CASE("unit_scaling: conv2d counts kernel positions, strides and pixels") {
  const sim::Conv2dSizes sizes{
      .batch = 4, .in_channels = 16, .out_channels = 4, .kernel_area = 9, .output_pixels = 25, .stride = 3};
  CHECK(free_scaling.conv2d(sizes) == UnitMultipliers{.output = 1.0 / 12, .gradients = {0.5, 0.1, 0.1, 1}});
  CHECK(UnitScaling().conv2d(sizes) ==
        UnitMultipliers{.output = 1.0 / 12, .gradients = {1.0 / 12, 0.1, 0.1, 1}});
}

TEST_CASE("unit_scaling: matmul constrains all three") {
  const auto matmul = [](ScaleConstraint constraint) {
    return UnitScaling({.constraint = constraint}).matmul(4, 16, 64);
  };
  CHECK(matmul(ScaleConstraint::none) == UnitMultipliers{.output = 0.25, .gradients = {0.125, 0.5, 1, 1}});
  CHECK(matmul(ScaleConstraint::to_output_scale) ==
        UnitMultipliers{.output = 0.25, .gradients = {0.25, 0.25, 1, 1}});
  CHECK(matmul(ScaleConstraint::to_grad_input_scale) ==
        UnitMultipliers{.output = 0.125, .gradients = {0.125, 0.125, 1, 1}});
  CHECK(matmul(ScaleConstraint::gmean).output == doctest::Approx(0.25).epsilon(1e-15));
  CHECK(matmul(ScaleConstraint::hmean).output == doctest::Approx(3.0 / 14).epsilon(1e-15));
  CHECK(matmul(ScaleConstraint::amean).output == doctest::Approx(0.875 / 3).epsilon(1e-15));
}

TEST_CASE("unit_scaling: sums") {
  const double half_root = std::sqrt(0.5);
  CHECK(free_scaling.add().output == doctest::Approx(half_root).epsilon(1e-15));
  CHECK(free_scaling.add().gradients == std::array{1.0, 1.0, 1.0, 1.0});
  CHECK(UnitScaling().add().output == free_scaling.add().output);
  CHECK(UnitScaling().add().gradients ==
        std::array{UnitScaling().add().output, UnitScaling().add().output, 1.0, 1.0});
}

TEST_CASE("unit_scaling: element-wise operations, norms and losses") {
  // (2 * (2 / (1 - 1/pi))^2)^(1/5), 8^(1/5), sqrt(2 / (1 - 1/pi))
  constexpr double gelu_output = 1.7667829483123282, gelu_gradient = 1.5157165665103982;
  CHECK(free_scaling.gelu().output == doctest::Approx(gelu_output).epsilon(1e-15));
  CHECK(free_scaling.gelu().gradients[0] == doctest::Approx(gelu_gradient).epsilon(1e-15));
  CHECK(UnitScaling().gelu().gradients[0] == UnitScaling().gelu().output);
  CHECK(free_scaling.relu().output == doctest::Approx(1.7128585504496627).epsilon(1e-15));
  CHECK(free_scaling.relu().gradients[0] == std::numbers::sqrt2);
  CHECK(UnitScaling().dropout(0.75) == UnitMultipliers{.output = 0.5, .gradients = {0.5, 1, 1, 1}});
  CHECK(UnitScaling().dropout(0) == UnitMultipliers{});
  CHECK(UnitScaling().norm(64) == UnitMultipliers{.gradients = {1, 0.125, 0.125, 1}});
  CHECK(UnitScaling().embedding(16, 64) == UnitMultipliers{.gradients = {0.5, 1, 1, 1}});
  CHECK(UnitScaling().softmax_cross_entropy(8, 10) ==
        UnitMultipliers{.output = 0.125, .gradients = {10.0 / 3, 1, 1, 1}});
  CHECK(UnitScaling().mean_squared_error(4).output == 0.25);
  CHECK(UnitScaling().mean_squared_error(4).gradients[1] == doctest::Approx(std::sqrt(0.125)).epsilon(1e-15));
}

TEST_CASE("unit_scaling: softmax is the 9/10th power of the size, its root within 2^-50") {
  for (std::size_t classes = 1; classes <= 2'000'000; classes += 1 + classes / 50) {
    CAPTURE(classes);
    const UnitMultipliers softmax = free_scaling.softmax(classes);
    const long double exact = powl(static_cast<long double>(classes), 0.9L);
    REQUIRE(std::fabs(static_cast<double>((softmax.output - exact) / exact)) < 0x1p-50);
    REQUIRE(softmax.gradients[0] == softmax.output);
  }
}

TEST_CASE("unit_scaling: a linear layer keeps variances at 1, forward and backward") {
  constexpr sim::LinearSizes sizes{.rows = 128, .fan_in = 192, .fan_out = 96};
  const auto [rows, fan_in, fan_out] = sizes;
  const Matrix x = normal_matrix(rows, fan_in, "x");
  const Matrix w = normal_matrix(fan_out, fan_in, "w");
  const Matrix gradient = normal_matrix(rows, fan_out, "gradient");
  const UnitMultipliers linear = free_scaling.linear(sizes);
  const UnitMultipliers constrained = UnitScaling().linear(sizes);

  const double output = mean_square(product(x, transposed(w)), linear.output);
  CHECK(std::fabs(output - 1) < product_tolerance(rows, fan_in, fan_out));
  const Matrix input_gradient = product(gradient, w);
  CHECK(std::fabs(mean_square(input_gradient, linear.gradients[0]) - 1) <
        product_tolerance(rows, fan_out, fan_in));
  // With the output's scale the gradient of the input keeps fan_out / fan_in of its variance.
  CHECK(std::fabs(mean_square(input_gradient, constrained.gradients[0]) - 0.5) <
        0.5 * product_tolerance(rows, fan_out, fan_in));
  const double weight_gradient = mean_square(product(transposed(gradient), x), linear.gradients[1]);
  CHECK(std::fabs(weight_gradient - 1) < product_tolerance(fan_out, rows, fan_in));
  const Matrix ones{1, rows, std::vector<double>(rows, 1)};
  CHECK(std::fabs(mean_square(product(ones, gradient), linear.gradients[2]) - 1) < normal_tolerance(fan_out));
}

TEST_CASE("unit_scaling: a product of activations keeps variances at 1, forward and backward") {
  constexpr std::size_t m = 64, k = 160, n = 112;
  const Matrix left = normal_matrix(m, k, "left");
  const Matrix right = normal_matrix(k, n, "right");
  const Matrix gradient = normal_matrix(m, n, "gradient");
  const UnitMultipliers matmul = free_scaling.matmul(m, k, n);
  CHECK(std::fabs(mean_square(product(left, right), matmul.output) - 1) < product_tolerance(m, k, n));
  const double left_gradient = mean_square(product(gradient, transposed(right)), matmul.gradients[0]);
  CHECK(std::fabs(left_gradient - 1) < product_tolerance(m, n, k));
  const double right_gradient = mean_square(product(transposed(left), gradient), matmul.gradients[1]);
  CHECK(std::fabs(right_gradient - 1) < product_tolerance(k, m, n));
}

TEST_CASE("unit_scaling: activations start near standard deviation 1") {
  const Activation gelu{[](double x) { return x * normal_distribution(x); },
                        [](double x) {
                          const double density = std::exp(-x * x / 2) / std::sqrt(2 * std::numbers::pi);
                          return normal_distribution(x) + x * density;
                        }};
  const Activation relu{[](double x) { return x > 0 ? x : 0; },
                        [](double x) { return x > 0   ? 1
                                              : x < 0 ? 0
                                                      : std::sqrt(0.5); }};

  // The source fits its factors to gelu by eye; relu's are exact.
  const auto [gelu_forward, gelu_backward] = deviations(gelu, free_scaling.gelu());
  CHECK(std::fabs(gelu_forward - 1) < 0.05);
  CHECK(std::fabs(gelu_backward - 1) < 0.05);
  const auto [relu_forward, relu_backward] = deviations(relu, free_scaling.relu());
  CHECK(std::fabs(relu_forward - 1) < 2e-5);
  CHECK(std::fabs(relu_backward - 1) < 2e-5);
}

TEST_CASE("unit_scaling: softmax and cross entropy, forward and backward") {
  constexpr std::size_t rows = 256, classes = 256;
  Matrix probabilities = normal_matrix(rows, classes, "logits");
  for (std::size_t i = 0; i < rows; ++i) {
    double sum = 0;
    for (std::size_t j = 0; j < classes; ++j) sum += probabilities(i, j) = std::exp(probabilities(i, j));
    for (std::size_t j = 0; j < classes; ++j) probabilities(i, j) /= sum;
  }
  // e^x has the standard deviation 1.31 of its mean, so that the output has 1.31 * 256^-0.1 = 0.75 (the
  // source's factor lies between those for flat and for sharp distributions, and is the former's at 1.31^10).
  Matrix deviation = probabilities;
  for (double& value : deviation.values) value -= 1.0 / classes;
  CHECK(std::sqrt(mean_square(deviation, free_scaling.softmax(classes).output)) ==
        doctest::Approx(std::sqrt(std::numbers::e - 1) * std::pow(classes, -0.1)).epsilon(0.05));

  // A row's squares sum to 1 - 2 p_t + sum p^2, with p near e^x / (n sqrt(e)): their mean times n^2 / (n - 1)
  // is (n - 2 + e) / (n - 1), up to 10 / n^2 for the spread of the denominators. It scatters by twice that of
  // p_t, 2 * 1.31 / n, over sqrt(rows); six of those are 0.004.
  const sim::RandomStream targets(1, "targets");
  for (std::size_t i = 0; i < rows; ++i) probabilities(i, targets.below(i, classes)) -= 1;
  const double factor = UnitScaling().softmax_cross_entropy(rows, classes).gradients[0];
  CHECK(std::fabs(mean_square(probabilities, factor) - (classes - 2 + std::numbers::e) / (classes - 1)) <
        0.005);
}

TEST_CASE("unit_scaling: squared errors, gains and embeddings") {
  constexpr std::size_t rows = 256, features = 512;
  const Matrix x = normal_matrix(rows, features, "x");
  const Matrix target = normal_matrix(rows, features, "target");
  Matrix error{rows, features}, gain{1, features};
  for (std::size_t i = 0; i < rows; ++i) {
    for (std::size_t j = 0; j < features; ++j) {
      error(i, j) = 2 * (x(i, j) - target(i, j));
      gain(0, j) += x(i, j) * target(i, j);  // normalised input times gradient
    }
  }
  const double error_factor = UnitScaling().mean_squared_error(rows * features).gradients[0];
  CHECK(std::fabs(mean_square(error, error_factor) - 1) < normal_tolerance(rows * features));
  const double gain_square = mean_square(gain, UnitScaling().norm(rows).gradients[1]);
  CHECK(std::fabs(gain_square - 1) < 6 * std::sqrt((2 + 6.0 / rows) / features));

  // Given how often each row was looked up the mean square is 1 and has the variance 2 sum(count^2) /
  // (width tokens^2).
  constexpr std::size_t vocabulary = 64, width = 32, tokens = 1024;
  const sim::RandomStream text(1, "text");
  const Matrix gradient = normal_matrix(tokens, width, "gradient");
  Matrix table{vocabulary, width};
  std::vector<double> counts(vocabulary);
  for (std::size_t t = 0; t < tokens; ++t) {
    const std::size_t token = text.below(t, vocabulary);
    ++counts[token];
    for (std::size_t j = 0; j < width; ++j) table(token, j) += gradient(t, j);
  }
  double squares = 0;
  for (const double count : counts) squares += count * count;
  const double table_square = mean_square(table, UnitScaling().embedding(vocabulary, tokens).gradients[0]);
  CHECK(std::fabs(table_square - 1) < 6 * std::sqrt(2 * squares / width) / tokens);
}

TEST_CASE("unit_scaling: operations without a rule in the source") {
  const UnitMultipliers lstm = free_scaling.lstm({.rows = 64, .inputs = 16, .hidden = 100});
  CHECK(lstm.inputs == std::array{1.0, 0.25, 0.1, 1.0});
  CHECK(lstm.output == 5);
  CHECK(lstm.gradients == std::array{8.0 / 5, 1.0, 5.0, 1.0});
  CHECK(UnitScaling().lstm({.rows = 64, .inputs = 16, .hidden = 100}).gradients[0] == 5);

  const auto sigmoid = [](double x) { return 1 / (1 + std::exp(-x)); };
  const Activation f{sigmoid, [&](double x) { return sigmoid(x) * sigmoid(-x); }};
  CHECK(std::fabs(deviations(f, UnitScaling().sigmoid()).second - 1) < 1e-9);
  CHECK(UnitScaling().sigmoid().output == 1);
  CHECK(UnitScaling().global_average_pool(49) == UnitMultipliers{.gradients = {49, 1, 1, 1}});
  CHECK(UnitScaling().smooth_l1(4) == UnitMultipliers{.output = 0.25});
}

TEST_CASE("unit_scaling: the squares of a residual's weights sum to 1, tau is their ratio") {
  CHECK(UnitScaling().residual().branch == doctest::Approx(std::sqrt(0.5)).epsilon(1e-15));
  CHECK(UnitScaling().residual().path == UnitScaling().residual().branch);
  const sim::ResidualWeights weights = UnitScaling({.tau = 0.75}).residual();
  CHECK(weights.branch == doctest::Approx(0.6).epsilon(1e-15));
  CHECK(weights.path == doctest::Approx(0.8).epsilon(1e-15));
}

TEST_CASE("unit_scaling: options") {
  CHECK(UnitScaling().options() == names::NamedValues{{"constraint", 1}, {"tau", 1}});
  CHECK(UnitScaling::weight_standard_deviation == 1);
  CHECK_THROWS_AS(UnitScaling({.constraint = static_cast<ScaleConstraint>(6)}), std::invalid_argument);
  CHECK_THROWS_AS(UnitScaling({.tau = 0}), std::invalid_argument);
}
