/// The mlp under the fp64 policy against the same network written with Eigen in double, loss and every
/// gradient, within a bound that is carried along with the computation.

#include <doctest/doctest.h>

#include <Eigen/Dense>
#include <cmath>

#include "tests/sim/training_runs.h"

namespace {

using Matrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

constexpr double u = 0x1p-53;

/// How far sums of n products in any two orders may be from each other, over the sum of magnitudes: each is
/// within gamma_n = n u / (1 - n u) of the exact one (Higham, "Accuracy and Stability of Numerical
/// Algorithms", section 3.1).
double two_gamma(Eigen::Index n) {
  const double nu = static_cast<double>(n) * u;
  return 2 * nu / (1 - nu);
}

/// A matrix as Eigen computes it, and how far that of any other order of summation may be from it.
struct Bounded {
  Matrix value, error;
};

Bounded exact(const sim::Tensor& tensor, Eigen::Index rows, Eigen::Index columns) {
  Matrix value(rows, columns);
  for (Eigen::Index i = 0; i < value.size(); ++i)
    value.data()[i] = tensor.element(static_cast<std::size_t>(i));
  return {value, Matrix::Zero(rows, columns)};
}

Bounded transposed(const Bounded& a) {
  return {a.value.transpose(), a.error.transpose()};
}

/// (A + dA)(B + dB) - AB = dA B + A dB + dA dB, and the orders of the sums.
Bounded product(const Bounded& a, const Bounded& b) {
  const Matrix a_abs = a.value.cwiseAbs(), b_abs = b.value.cwiseAbs();
  return {a.value * b.value, a.error * (b_abs + b.error) + a_abs * b.error +
                                 two_gamma(a.value.cols() + 1) * (a_abs + a.error) * (b_abs + b.error)};
}

/// x w^T + b.
Bounded linear(const Bounded& x, const Bounded& w, const Bounded& b) {
  Bounded y = product(x, transposed(w));
  y.value.rowwise() += b.value.row(0);
  y.error += 2 * u * y.value.cwiseAbs();
  return y;
}

/// No sign may depend on the order of summation.
Bounded relu(const Bounded& x) {
  REQUIRE((x.value.cwiseAbs().array() > x.error.array()).all());
  return {x.value.cwiseMax(0), (x.value.array() > 0).select(x.error, 0)};
}
Bounded through_relu(const Bounded& gradient, const Bounded& x) {
  return {(x.value.array() > 0).select(gradient.value, 0), (x.value.array() > 0).select(gradient.error, 0)};
}

Bounded column_sums(const Bounded& a) {
  return {a.value.colwise().sum(),
          a.error.colwise().sum() + two_gamma(a.value.rows()) * a.value.cwiseAbs().colwise().sum()};
}

struct LossAndGradient {
  double loss = 0, loss_error = 0;
  Bounded gradient;
};

/// Mean cross entropy of the softmax of the rows, and its gradient. A probability changes by no more than a
/// factor of exp(2 e) when logits move by e, exponentials within 4 ulp and sums over the classes add their
/// own; u times 64 covers both implementations.
LossAndGradient cross_entropy(const Bounded& logits, std::span<const std::int32_t> labels) {
  const Eigen::Index rows = logits.value.rows();
  LossAndGradient result{.gradient = logits};
  for (Eigen::Index row = 0; row < rows; ++row) {
    const auto label = labels[static_cast<std::size_t>(row)];
    const double moved = logits.error.row(row).maxCoeff();
    const Eigen::RowVectorXd exponentials =
        (logits.value.row(row).array() - logits.value.row(row).maxCoeff()).exp();
    const Eigen::RowVectorXd p = exponentials / exponentials.sum();
    const double term = -std::log(p[label]);
    result.loss += term / static_cast<double>(rows);
    result.loss_error += (2 * moved + 64 * u * (1 + term)) / static_cast<double>(rows);
    result.gradient.value.row(row) = p / static_cast<double>(rows);
    result.gradient.value(row, label) = (p[label] - 1) / static_cast<double>(rows);
    result.gradient.error.row(row) =
        (p * (std::expm1(2 * moved) + 64 * u)).array() / static_cast<double>(rows);
    result.gradient.error(row, label) += 4 * u / static_cast<double>(rows);
  }
  return result;
}

void check(const sim::Tensor& gradient, const Bounded& expected, std::string_view name) {
  double largest = 0;
  for (std::size_t i = 0; i < gradient.size(); ++i) {
    const auto at = static_cast<Eigen::Index>(i);
    INFO(name, " element ", i);
    REQUIRE(std::abs(gradient.element(i) - expected.value.data()[at]) <= expected.error.data()[at]);
    largest = std::max(largest, std::abs(gradient.element(i)));
  }
  INFO(name);
  CHECK(largest > 1e-4);
  CHECK(expected.error.maxCoeff() < 1e-9 * largest);  // a hundredth of what binary32 would be off by
}

}  // namespace

TEST_CASE("mlp: loss and gradients under fp64 equal Eigen's in double but for the order of sums") {
  constexpr Eigen::Index batch = 24, inputs = 784, hidden1 = 48, hidden2 = 32, classes = 10;
  const std::unique_ptr<sim::Model> model = training_runs::make_model(training_runs::small_spec("mlp"));
  const sim::ModelState state = sim::ModelState::initial(*model, 5);
  const sim::Batch data = training_runs::data_of(sim::DataKind::images).test_batch(7, batch);
  const sim::RecordedStep step = sim::record_step(*model, state, data, sim::find_precision_policy("fp64"));
  const sim::SiteGradients ours = step.tape.backward(step.forward.loss, {});

  const Bounded x = exact(sim::Tensor::from({batch, inputs}, data.inputs), batch, inputs),
                w1 = exact(state.weights[0], hidden1, inputs), b1 = exact(state.weights[1], 1, hidden1),
                w2 = exact(state.weights[2], hidden2, hidden1), b2 = exact(state.weights[3], 1, hidden2),
                w3 = exact(state.weights[4], classes, hidden2), b3 = exact(state.weights[5], 1, classes);
  const Bounded z1 = linear(x, w1, b1), h1 = relu(z1), z2 = linear(h1, w2, b2), h2 = relu(z2),
                z3 = linear(h2, w3, b3);
  const LossAndGradient top = cross_entropy(z3, data.labels);
  const Bounded dz2 = through_relu(product(top.gradient, w3), z2), dz1 = through_relu(product(dz2, w2), z1);

  CHECK(std::abs(step.tape.value(step.forward.loss).element(0) - top.loss) <= top.loss_error);
  CHECK(top.loss > 1);
  CHECK(top.loss_error < 1e-9);
  const Bounded expected[]{product(transposed(dz1), x),           column_sums(dz1),
                           product(transposed(dz2), h1),          column_sums(dz2),
                           product(transposed(top.gradient), h2), column_sums(top.gradient)};
  for (std::size_t i = 0; i < std::size(expected); ++i)
    check(ours.gradients[i], expected[i], step.tape.sites()[i].name);
}
