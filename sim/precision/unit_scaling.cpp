#include "sim/precision/unit_scaling.h"

#include <cmath>
#include <functional>
#include <numbers>
#include <numeric>
#include <span>

namespace sim {
namespace {

/// The n-th root of x >= 2^-1000. Newton's iterates for y^n = x fall to the root from a power of two above
/// it, until rounding stops them.
double root(double x, int n) {
  for (double y = std::ldexp(1.0, std::ilogb(x) / n + 1);;) {
    double power = 1;  // y^(n-1)
    for (int i = 1; i < n; ++i) power *= y;
    const double next = y - (y - x / power) / n;
    if (!(next < y)) return y;
    y = next;
  }
}

double inverse_sqrt(double x) {
  return 1 / std::sqrt(x);
}

double common(ScaleConstraint constraint, std::span<const double> scales) {
  const auto n = static_cast<double>(scales.size());
  const auto sum_of = [scales](auto term) {
    double sum = 0;
    for (const double scale : scales) sum += term(scale);
    return sum;
  };
  switch (constraint) {
    case ScaleConstraint::none:
    case ScaleConstraint::to_output_scale:
      return scales[0];
    case ScaleConstraint::to_grad_input_scale:
      return scales[1];
    case ScaleConstraint::gmean:
      return root(std::accumulate(scales.begin(), scales.end(), 1.0, std::multiplies<>()),
                  static_cast<int>(scales.size()));
    case ScaleConstraint::hmean:
      return n / sum_of([](double scale) { return 1 / scale; });
    case ScaleConstraint::amean:
      return sum_of([](double scale) { return scale; }) / n;
  }
  return scales[0];
}

/// Scales of an output and of the gradients of its activations, in this order.
template <std::size_t n>
std::array<double, n> constrained(ScaleConstraint constraint, std::array<double, n> scales) {
  if (constraint != ScaleConstraint::none) scales.fill(common(constraint, scales));
  return scales;
}

UnitMultipliers elementwise(ScaleConstraint constraint, double output, double gradient) {
  const auto scales = constrained(constraint, std::array{output, gradient});
  return {.output = scales[0], .gradients = {scales[1], 1, 1, 1}};
}

UnitMultipliers linear_multipliers(ScaleConstraint constraint, std::array<double, 2> scales, double rows) {
  scales = constrained(constraint, scales);
  const double weights = inverse_sqrt(rows);
  return {.output = scales[0], .gradients = {scales[1], weights, weights, 1}};
}

/// What ReLU, the limit of GELU for mult -> infinity, makes of N(0, 1) has the variance
/// (1 - 1/pi) / 2; its derivative lets half of the gradient pass.
double relu_output() {
  return std::sqrt(2 / (1 - std::numbers::inv_pi));
}
constexpr double relu_gradient = std::numbers::sqrt2;
/// The other limit, mult -> 0, is x / 2.
constexpr double linear_limit = 2;

/// The reciprocal of the root mean square of a sigmoid's slope at N(0, 1).
constexpr double sigmoid_gradient = 4.722646085937971;

/// Reciprocals of root mean squares in an LSTM whose gates' sums are N(0, 1): of the hidden state, and of the
/// gradients of those sums where the hidden state's is N(0, 1). Measured; from 4 steps on within 10 %.
constexpr double lstm_output = 5, lstm_gates = 8;

/// lower^(1 - alpha) upper^alpha with alpha = 4/5: 1 / (1 + 1 / (4 mult^2)).
double four_fifths_to(double upper, double lower) {
  return root(lower * upper * upper * upper * upper, 5);
}

double to_double(std::size_t size) {
  return static_cast<double>(size);
}

}  // namespace

UnitScaling::UnitScaling(const Options& options) : options_(names::checked(options)) {}

names::NamedValues UnitScaling::options() const {
  return names::named_values(options_);
}

UnitMultipliers UnitScaling::linear(const LinearSizes& sizes) const {
  return linear_multipliers(options_.constraint,
                            {inverse_sqrt(to_double(sizes.fan_in)), inverse_sqrt(to_double(sizes.fan_out))},
                            to_double(sizes.rows));
}

UnitMultipliers UnitScaling::readout(const LinearSizes& sizes) const {
  return linear_multipliers(ScaleConstraint::none,
                            {1 / to_double(sizes.fan_in), inverse_sqrt(to_double(sizes.fan_out))},
                            to_double(sizes.rows));
}

UnitMultipliers UnitScaling::conv2d(const Conv2dSizes& sizes) const {
  const double fan_in = to_double(sizes.in_channels) * to_double(sizes.kernel_area);
  const double stride = to_double(sizes.stride);
  const double fan_out = to_double(sizes.out_channels) * to_double(sizes.kernel_area) / (stride * stride);
  return linear_multipliers(options_.constraint, {inverse_sqrt(fan_in), inverse_sqrt(fan_out)},
                            to_double(sizes.batch) * to_double(sizes.output_pixels));
}

UnitMultipliers UnitScaling::lstm(const LstmSizes& sizes) const {
  const auto scales = constrained(
      options_.constraint, std::array{lstm_output, lstm_gates * inverse_sqrt(4 * to_double(sizes.hidden) /
                                                                             to_double(sizes.inputs))});
  const double weights = lstm_gates * inverse_sqrt(to_double(sizes.rows));
  return {.output = scales[0],
          .inputs = {1, inverse_sqrt(to_double(sizes.inputs)), inverse_sqrt(to_double(sizes.hidden)), 1},
          .gradients = {scales[1], weights, weights * lstm_output, weights}};
}

UnitMultipliers UnitScaling::matmul(std::size_t m, std::size_t k, std::size_t n) const {
  const auto scales = constrained(
      options_.constraint,
      std::array{inverse_sqrt(to_double(k)), inverse_sqrt(to_double(n)), inverse_sqrt(to_double(m))});
  return {.output = scales[0], .gradients = {scales[1], scales[2], 1, 1}};
}

UnitMultipliers UnitScaling::add() const {
  const auto scales = constrained(options_.constraint, std::array{std::numbers::sqrt2 / 2, 1.0, 1.0});
  return {.output = scales[0], .gradients = {scales[1], scales[2], 1, 1}};
}

ResidualWeights UnitScaling::residual() const {
  const double path = inverse_sqrt(1 + options_.tau * options_.tau);
  return {.branch = options_.tau * path, .path = path};
}

UnitMultipliers UnitScaling::dropout(double probability) const {
  const double scale = std::sqrt(1 - probability);
  return {.output = scale, .gradients = {scale, 1, 1, 1}};
}

UnitMultipliers UnitScaling::softmax(std::size_t classes) const {
  // classes^(4/5) sqrt(classes)^(1/5): between a flat distribution and one with a single 1.
  const double n = to_double(classes);
  const double scale = root(n * n * n * n * std::sqrt(n), 5);
  return elementwise(options_.constraint, scale, scale);
}

UnitMultipliers UnitScaling::gelu() const {
  return elementwise(options_.constraint, four_fifths_to(relu_output(), linear_limit),
                     four_fifths_to(relu_gradient, linear_limit));
}

UnitMultipliers UnitScaling::relu() const {
  return elementwise(options_.constraint, relu_output(), relu_gradient);
}

UnitMultipliers UnitScaling::sigmoid() const {
  return {.gradients = {sigmoid_gradient, 1, 1, 1}};
}

UnitMultipliers UnitScaling::global_average_pool(std::size_t pixels) const {
  return {.gradients = {to_double(pixels), 1, 1, 1}};
}

UnitMultipliers UnitScaling::norm(std::size_t repeats) const {
  const double gain = inverse_sqrt(to_double(repeats));
  return {.gradients = {1, gain, gain, 1}};
}

UnitMultipliers UnitScaling::embedding(std::size_t vocabulary, std::size_t tokens) const {
  return {.gradients = {std::sqrt(to_double(vocabulary) / to_double(tokens)), 1, 1, 1}};
}

UnitMultipliers UnitScaling::softmax_cross_entropy(std::size_t samples, std::size_t classes) const {
  const double n = to_double(classes);
  return {.output = 1 / to_double(samples), .gradients = {n / std::sqrt(n - 1), 1, 1, 1}};
}

UnitMultipliers UnitScaling::mean_squared_error(std::size_t values) const {
  const double scale = inverse_sqrt(8);
  return {.output = 1 / to_double(values), .gradients = {scale, scale, 1, 1}};
}

UnitMultipliers UnitScaling::smooth_l1(std::size_t values) const {
  return {.output = 1 / to_double(values)};
}

}  // namespace sim
