#pragma once
/// Unit scaling: a parametrisation of the model in place of a loss scale.

#include <array>
#include <cstddef>
#include <string_view>

#include "fp16/names.h"

namespace sim {

/// Which multipliers of an operation must be one and the same number, so that its gradient stays a true
/// gradient up to a factor: all those between its output and its activations. Each is replaced by
enum class ScaleConstraint {
  none,                 ///< itself
  to_output_scale,      ///< the output's
  to_grad_input_scale,  ///< that of the gradient of the (first) input
  gmean,                ///< their geometric mean
  hmean,                ///< their harmonic mean
  amean,                ///< their arithmetic mean
};

struct UnitScalingOptions {
  ScaleConstraint constraint = ScaleConstraint::to_output_scale;  ///< as a number: 0 to 5 in the order above
  double tau = 1;  ///< weight of a residual branch relative to the path it leaves

  static constexpr std::string_view subject = "scaler 'unit_scaling'";
  static void visit(auto& self, auto&& field) {
    field("constraint", self.constraint, names::closed_interval(0, 5));
    field("tau", self.tau, names::Interval{.lower = 0});
  }
};

/// Factors of one operation y = f(x_0, x_1, ...). Forward, y is multiplied by `output` after, and x_i by
/// `inputs[i]` before f. Backward, what f's ordinary derivative makes of the gradient of y is multiplied by
/// `gradients[i]` to become the gradient of x_i; the forward factors are no part of that derivative.
struct UnitMultipliers {
  double output = 1;
  std::array<double, 4> inputs{1, 1, 1, 1};
  std::array<double, 4> gradients{1, 1, 1, 1};

  friend constexpr bool operator==(const UnitMultipliers&, const UnitMultipliers&) = default;
};

/// Factors of the two summands of a residual connection; their squares sum to 1.
struct ResidualWeights {
  double branch, path;
};

/// Sizes of a product of a batch of rows with a matrix of weights: x (rows x fan_in), w (fan_out x fan_in).
struct LinearSizes {
  std::size_t rows = 1;  ///< product of all leading dimensions of x
  std::size_t fan_in = 1;
  std::size_t fan_out = 1;
};

struct Conv2dSizes {
  std::size_t batch = 1;
  std::size_t in_channels = 1;
  std::size_t out_channels = 1;
  std::size_t kernel_area = 1;    ///< height * width of a kernel
  std::size_t output_pixels = 1;  ///< height * width of an output image
  std::size_t stride = 1;
};

struct LstmSizes {
  std::size_t rows = 1;  ///< tokens of a batch
  std::size_t inputs = 1;
  std::size_t hidden = 1;
};

/// Fixed factors in the forward and the backward pass that make activations, gradients and weight gradients
/// start out with variance 1, if inputs and weights do: weights are drawn from N(0, 1). There is no state and
/// nothing to adapt, and the loss itself is not scaled. Operations without a function here, such as tanh and
/// poolings by their maximum, have no rule in the source and keep factors of 1.
///
/// Learning rates of the ordinary network do not suit: every weight now is of order 1, and so is every
/// gradient, whatever the loss is divided by. All networks here learn with 0.03 at widths of some dozens; at
/// their default widths mlp and cnn do better with 0.01, and the mlp diverges with 0.1. The authors' later
/// u-muP (Blake et al. 2024) divides Adam's rate of a weight by sqrt(fan_in). Here all parameters share one.
///
/// Products, quotients and square roots in double; other roots by Newton's iteration, with a relative error
/// below 2^-50. No libm, so the same bits everywhere. Dimensions are at least 1, classes of cross entropy 2.
///
/// Source: C. Blake, D. Orr, C. Luschi, "Unit Scaling: Out-of-the-Box Low-Precision Training", ICML 2023;
/// graphcore-research/unit-scaling unit_scaling/functional.py, all activations with mult = 1. `x`, `w` and so
/// on name the order of inputs.
class UnitScaling {
 public:
  using Options = UnitScalingOptions;

  /// Weights are drawn from a normal distribution of this width; biases start at 0, gains at 1.
  static constexpr double weight_standard_deviation = 1;

  /// Throws std::invalid_argument for an option outside its interval.
  explicit UnitScaling(const Options& options = {});

  std::string_view name() const { return "unit_scaling"; }
  names::NamedValues options() const;

  /// x w^T: inputs x, w, and where the operation adds it, the bias.
  UnitMultipliers linear(const LinearSizes& sizes) const;
  /// A linear map that is the last layer of a network, never constrained: the output shrinks as 1 / fan_in.
  UnitMultipliers readout(const LinearSizes& sizes) const;
  /// By analogy with the source's conv1d: fan_in = in_channels * kernel_area, fan_out = out_channels *
  /// kernel_area / stride^2, rows = batch * output_pixels.
  UnitMultipliers conv2d(const Conv2dSizes& sizes) const;
  /// No rule in the source. Inputs x, its weights, those of the hidden state, bias. Weights are multiplied
  /// before the cell sees them, so that the sums of its gates have variance 1 (x / sqrt(inputs) gives 1, the
  /// hidden state / sqrt(hidden) another 0.04); constants stand for what the cell makes of such sums.
  UnitMultipliers lstm(const LstmSizes& sizes) const;
  /// A product of two activations, (m x k) (k x n).
  UnitMultipliers matmul(std::size_t m, std::size_t k, std::size_t n) const;
  /// A sum of two activations, (a + b) / sqrt(2).
  UnitMultipliers add() const;
  /// A residual sum of x and branch(x). Forward each is multiplied where they meet, backward where they part: the branch's
  /// gradient has the sum's variance all the way through the branch.
  ResidualWeights residual() const;

  /// Dropout that divides what it keeps by 1 - probability; 0 <= probability < 1.
  UnitMultipliers dropout(double probability) const;
  /// Over rows of `classes`.
  UnitMultipliers softmax(std::size_t classes) const;
  UnitMultipliers gelu() const;
  /// No rule in the source: what gelu's becomes for mult -> infinity.
  UnitMultipliers relu() const;
  /// No rule in the source. The output, bounded anyway, stays in (0, 1); never constrained, as a readout.
  UnitMultipliers sigmoid() const;
  /// The mean of `pixels`. No rule in the source. The output stays, for it is mostly the mean of positive
  /// numbers; never constrained, as a readout: each pixel gets the gradient of its mean.
  UnitMultipliers global_average_pool(std::size_t pixels) const;

  /// Layer or batch normalisation: inputs x, gain, shift. `repeats`: numbers that share one gain, which is
  /// rows for layer norm, batch * pixels for batch norm (by analogy).
  UnitMultipliers norm(std::size_t repeats) const;
  /// Rows of a table with `vocabulary` rows, looked up `tokens` times; gradients[0] is the table's.
  UnitMultipliers embedding(std::size_t vocabulary, std::size_t tokens) const;

  /// Losses: the ordinary operation is the SUM over samples or values, forward and backward; `output` makes
  /// it the mean, and the gradient knows nothing of that.
  UnitMultipliers softmax_cross_entropy(std::size_t samples, std::size_t classes) const;
  UnitMultipliers mean_squared_error(std::size_t values) const;
  /// No rule in the source: as a squared error's, but that slopes are at most 1.
  UnitMultipliers smooth_l1(std::size_t values) const;

 private:
  Options options_;
};

}  // namespace sim
