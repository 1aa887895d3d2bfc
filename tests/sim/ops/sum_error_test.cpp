/// Every sum of every operation, formed in binary32, against the same in binary64: within the bound of the
/// stated order, on long sums in which many terms are alike, as pixels of one background are. A chain of such
/// terms errs in one direction, far more than chance would have it.

#include <doctest/doctest.h>

#include <cmath>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "sim/ops/average_pool2d.h"
#include "sim/ops/batch_norm.h"
#include "sim/ops/bias.h"
#include "sim/ops/binary_cross_entropy.h"
#include "sim/ops/binary_cross_entropy_with_logits.h"
#include "sim/ops/conv2d.h"
#include "sim/ops/embedding.h"
#include "sim/ops/global_average_pool.h"
#include "sim/ops/layer_norm.h"
#include "sim/ops/linear.h"
#include "sim/ops/log_softmax.h"
#include "sim/ops/lstm.h"
#include "sim/ops/mean.h"
#include "sim/ops/mean_absolute_error.h"
#include "sim/ops/mean_squared_error.h"
#include "sim/ops/registry.h"
#include "sim/ops/smooth_l1.h"
#include "sim/ops/softmax.h"
#include "sim/ops/softmax_cross_entropy.h"
#include "sim/ops/sum.h"
#include "sim/ops/variance.h"
#include "tests/sim/ops/evaluation.h"
#include "tests/sim/ops/sum_oracle.h"

namespace {

using fp16::binary64;
using sim::Tensor;
using sum_oracle::roundings_along_row;
using sum_oracle::roundings_down_column;

constexpr std::size_t side = 200, terms = side * side;

/// Seven of ten elements are 0.1, the others anywhere in (0, 1).
Tensor background_tensor(sim::Shape shape, std::string_view purpose) {
  const sim::RandomStream random(23, purpose);
  std::vector<float> values(sim::element_count(shape));
  for (std::size_t i = 0; i < values.size(); ++i) {
    const float uniform = random.uniform(i);
    values[i] = uniform < 0.7f ? 0.1f : (uniform - 0.6995f) * 3.3f;
  }
  return tensor_of(std::move(shape), values);
}

Tensor constant_tensor(sim::Shape shape, float value) {
  const std::size_t count = sim::element_count(shape);
  return tensor_of(std::move(shape), std::vector<float>(count, value));
}

Tensor widened(const Tensor& narrow) {
  Tensor wide(narrow.shape(), binary64);
  sim::copy_rounded({&wide}, narrow);
  return wide;
}

/// A result in binary32, the same in binary64, and what its error is a multiple of: each element's own
/// magnitude, unless terms cancel.
struct Pair {
  Tensor narrow, wide;
  std::vector<double> magnitudes;
};

struct InBoth {
  Evaluation narrow, wide;

  InBoth(const sim::Operation& operation, const std::vector<Tensor>& inputs,
         const sim::OperationOptions& options = {})
      : narrow(operation, inputs, options),
        wide(operation, all_widened(inputs), options, {.output = binary64, .reductions = binary64}) {}

  Pair output() { return {narrow.output, wide.output}; }
  Pair saved(std::size_t index) { return {narrow.saved[index], wide.saved[index]}; }
  Pair gradient(std::size_t input, const Tensor& dy) {
    return {narrow.backward(dy)[input], wide.backward(widened(dy))[input]};
  }

  static std::vector<Tensor> all_widened(const std::vector<Tensor>& inputs) {
    std::vector<Tensor> all;
    for (const Tensor& input : inputs) all.push_back(widened(input));
    return all;
  }
};

struct Case {
  std::string_view operation;
  std::string what;
  Pair pair;
  double roundings;
};

/// How far a result is off, over what its roundings allow.
double worst_excess(const Case& c) {
  double worst = 0;
  for (std::size_t i = 0; i < c.pair.wide.size(); ++i) {
    const double exact = c.pair.wide.element(i);
    const double magnitude = c.pair.magnitudes.empty() ? std::abs(exact) : c.pair.magnitudes[i];
    const double error = std::abs(c.pair.narrow.element(i) - exact);
    if (error != 0) worst = std::max(worst, error / (sum_oracle::gamma(c.roundings) * magnitude));
  }
  return worst;
}

/// Losses, with targets that leave terms of one sign. Beyond the sum a term has the roundings of its own, of
/// logarithms and exponentials 0.9 ulp <= 1.8 u, and there is the division by their number.
void add_losses(std::vector<Case>& cases) {
  const Tensor x = background_tensor({terms}, "x"), zeros = constant_tensor({terms}, 0),
               ones = constant_tensor({terms}, 1);
  const double sum = roundings_along_row(terms);
  const auto loss = [&](const sim::Operation& operation, const Tensor& target, double of_term) {
    cases.push_back({operation.name, "loss", InBoth(operation, {x, target}).output(), sum + of_term + 1});
  };
  loss(sim::mean_squared_error, zeros, 1);
  loss(sim::mean_absolute_error, zeros, 0);
  loss(sim::smooth_l1, zeros, 2);
  loss(sim::binary_cross_entropy, ones, 1.8);
  loss(sim::binary_cross_entropy_with_logits, zeros, 1.8 + 1.8 + 1);
  // -log softmax of (0, x) at the first: log(1 + exp(-x)) + x, more than log 2, of which the exponential has
  // x u and 1.8 u, the sum in it one rounding; then those of the logarithm and of the last two subtractions.
  std::vector<float> logits(2 * terms);
  for (std::size_t row = 0; row < terms; ++row) logits[2 * row + 1] = x.elements<float>()[row];
  cases.push_back({sim::softmax_cross_entropy.name, "over rows",
                   InBoth(sim::softmax_cross_entropy, {tensor_of({terms, 2}, logits)},
                          sim::SoftmaxCrossEntropyOptions{.labels = std::vector<std::int32_t>(terms, 0)})
                       .output(),
                   sum + (1 + 1.8 + 1) / std::log(2) + 1.8 + 2 + 1});
}

/// Reductions to a scalar and of planes.
void add_reductions(std::vector<Case>& cases) {
  const Tensor x = background_tensor({1, 1, side, side}, "x");
  const double along = roundings_along_row(terms), down = roundings_down_column(terms);
  cases.push_back({sim::sum.name, "sum", InBoth(sim::sum, {x}).output(), along});
  cases.push_back({sim::mean.name, "mean", InBoth(sim::mean, {x}).output(), along + 1});
  // A square has three roundings. The error of the mean enters squared: nothing.
  cases.push_back({sim::variance.name, "variance", InBoth(sim::variance, {x}).output(), along + 3 + 1});
  cases.push_back(
      {sim::global_average_pool.name, "mean", InBoth(sim::global_average_pool, {x}).output(), along + 1});
  cases.push_back({sim::average_pool2d.name, "mean of a window",
                   InBoth(sim::average_pool2d, {x}, sim::PoolingOptions{.window = side}).output(), down + 1});
}

/// Along rows of scores in [0, 1]: an exponential has one rounding of its argument and 0.9 ulp.
void add_softmaxes(std::vector<Case>& cases) {
  const Tensor x = background_tensor({1, terms}, "x"), dy = background_tensor({1, terms}, "dy");
  const double sum = roundings_along_row(terms), exponential = 1 + 1.8;
  InBoth softmax(sim::softmax, {x});
  const double probability = sum + 2 * exponential + 1;
  cases.push_back({sim::softmax.name, "probabilities", softmax.output(), probability});
  double mean = 0, total = 0;
  for (std::size_t i = 0; i < terms; ++i) {
    mean += softmax.wide.output.element(i) * dy.element(i);
    total += dy.element(i);
  }
  // p (dy - sum of p dy), with the p that forward gave, twice.
  Pair dx = softmax.gradient(0, dy);
  for (std::size_t i = 0; i < terms; ++i)
    dx.magnitudes.push_back(softmax.wide.output.element(i) * (dy.element(i) + mean));
  cases.push_back({sim::softmax.name, "gradient", std::move(dx), 2 * probability + sum + 1 + 2});

  // The sum's relative error is the logarithm's absolute one, below which all outputs lie.
  InBoth log_softmax(sim::log_softmax, {x});
  Pair logarithms = log_softmax.output();
  const double logarithm = sum + exponential + (1.8 + 1) * std::log(terms * std::exp(1)) + 1;
  logarithms.magnitudes.assign(terms, 1);
  cases.push_back({sim::log_softmax.name, "logarithms", std::move(logarithms), logarithm});
  Pair dlog = log_softmax.gradient(0, dy);
  for (std::size_t i = 0; i < terms; ++i)
    dlog.magnitudes.push_back(dy.element(i) + softmax.wide.output.element(i) * total);
  cases.push_back({sim::log_softmax.name, "gradient", std::move(dlog), logarithm + 1.8 + sum + 2});
  Pair loss =
      InBoth(sim::softmax_cross_entropy, {x}, sim::SoftmaxCrossEntropyOptions{.labels = {0}}).output();
  loss.magnitudes = {1};
  cases.push_back({sim::softmax_cross_entropy.name, "along a row", std::move(loss), logarithm});
}

/// Statistics and gradients of layer_norm or batch_norm where all of x has one mean and one inverse deviation.
/// `along` is the order of the statistics and of dx, `down` that of the parameters' gradients.
void add_norm(std::vector<Case>& cases, const sim::Operation& operation, const sim::Shape& shape,
              std::size_t parameters, double down) {
  const Tensor x = background_tensor(shape, "x"), dy = background_tensor(shape, "dy"),
               one = constant_tensor({parameters}, 1);
  const double along = roundings_along_row(terms);
  InBoth norm(operation, {x, one, one});
  const double mean = along + 1;
  // Half of what the variance has, and the roundings of its sum with epsilon, the root and the inverse.
  const double inverse = (along + 3 + 1 + 1) / 2 + 2;
  cases.push_back({operation.name, "means", norm.saved(0), mean});
  cases.push_back({operation.name, "inverse deviations", norm.saved(1), inverse});

  // x-hat = (x - mean) inverse: relative to (x + mean) inverse, for what the mean is off.
  const double m = norm.wide.saved[0].element(0), i = norm.wide.saved[1].element(0);
  const double xhat = mean + inverse + 2;
  std::vector<double> magnitudes(x.size());
  double of_dy = 0, of_products = 0;
  for (std::size_t k = 0; k < x.size(); ++k) {
    magnitudes[k] = (x.element(k) + m) * i;
    of_dy += dy.element(k);
    of_products += dy.element(k) * magnitudes[k];
  }
  Pair dx = norm.gradient(0, dy), dweight = norm.gradient(1, dy), dbias = norm.gradient(2, dy);
  for (std::size_t k = 0; k < x.size(); ++k)
    dx.magnitudes.push_back(i * (dy.element(k) + of_dy / terms + magnitudes[k] * of_products / terms));
  cases.push_back(
      {operation.name, "gradient", std::move(dx), inverse + 1 + along + xhat + 1 + 1 + xhat + 1 + 2});
  if (parameters == 1) {
    dweight.magnitudes.assign(1, of_products);
  } else {
    for (std::size_t k = 0; k < parameters; ++k) dweight.magnitudes.push_back(dy.element(k) * magnitudes[k]);
  }
  cases.push_back({operation.name, "gradient of the weight", std::move(dweight), down + xhat + 1});
  cases.push_back({operation.name, "gradient of the bias", std::move(dbias), down});
}

void add_norms(std::vector<Case>& cases) {
  add_norm(cases, sim::layer_norm, {1, terms}, terms, roundings_down_column(1));
  add_norm(cases, sim::batch_norm, {4, 1, side / 4, side}, 1, roundings_along_row(terms));
  // Over many rows of (0, 1), which have mean 1/2, variance 1/4 and x-hat +-1 / sqrt(1 + 4 epsilon): a term
  // has the roundings of that deviation, of x-hat and of its product with dy.
  std::vector<float> zero_one(2 * terms);
  for (std::size_t row = 0; row < terms; ++row) zero_one[2 * row + 1] = 1;
  const Tensor dy = background_tensor({terms, 2}, "dy"), one = constant_tensor({2}, 1);
  const double down = roundings_down_column(terms);
  InBoth rows(sim::layer_norm, {tensor_of({terms, 2}, zero_one), one, one});
  cases.push_back({sim::layer_norm.name, "gradient of the weight over rows", rows.gradient(1, dy), down + 5});
  cases.push_back({sim::layer_norm.name, "gradient of the bias over rows", rows.gradient(2, dy), down});
}

/// What is added to every row, image or use has a gradient summed over them; the terms are given.
void add_columns(std::vector<Case>& cases) {
  constexpr std::size_t columns = 3;
  const Tensor x = background_tensor({terms, columns}, "x"), dy = background_tensor({terms, columns}, "dy"),
               b = constant_tensor({columns}, 1), w = constant_tensor({columns, columns}, 1);
  const double down = roundings_down_column(terms);
  cases.push_back({sim::bias.name, "gradient of the bias", InBoth(sim::bias, {x, b}).gradient(1, dy), down});
  cases.push_back(
      {sim::linear.name, "gradient of the bias", InBoth(sim::linear, {x, w, b}).gradient(2, dy), down});
  std::vector<std::int32_t> labels(terms, 1);
  for (std::size_t row = 0; row < terms; row += 7) labels[row] = 0;
  cases.push_back({sim::embedding.name, "gradient of the table",
                   InBoth(sim::embedding, {w}, sim::EmbeddingOptions{.labels = labels}).gradient(0, dy),
                   down});

  const Tensor images = background_tensor({4, 1, side / 4, side}, "images"),
               of_images = background_tensor({4, 2, side / 4, side}, "dy"),
               kernel = constant_tensor({2, 1, 1, 1}, 1), of_channels = constant_tensor({2}, 1);
  cases.push_back({sim::conv2d.name, "gradient of the bias",
                   InBoth(sim::conv2d, {images, kernel, of_channels}).gradient(2, of_images),
                   0.0 + roundings_along_row(terms)});
  // What reaches a pixel is a chain of the kernel's elements, each a chain over the output channels.
  constexpr std::size_t channels = 3, elements = 25;
  cases.push_back({sim::conv2d.name, "gradient of the input",
                   InBoth(sim::conv2d, {constant_tensor({1, 1, 20, 20}, 1),
                                        background_tensor({channels, 1, 5, 5}, "kernel")})
                       .gradient(0, background_tensor({1, channels, 16, 16}, "dy")),
                   channels + elements - 1.0});

  // Without input and recurrence all rows have the gates of the bias; a term is dy times at most ten factors,
  // each with the few roundings of a sigmoid or a tanh, at no more than four times its own relative error.
  const Tensor gates = tensor_of({4}, {0.3f, 0.2f, 0.7f, -0.1f}), none = constant_tensor({4, 1}, 0);
  cases.push_back({sim::lstm.name, "gradient of the bias",
                   InBoth(sim::lstm, {constant_tensor({terms, 1}, 0), none, none, gates},
                          sim::LstmLayerOptions{.context = 1})
                       .gradient(3, background_tensor({terms, 1}, "dy")),
                   down + 10 * 4 * 1.8});
}

}  // namespace

TEST_CASE("sums of every operation in binary32 lie within the bound of their order") {
  std::vector<Case> cases;
  add_losses(cases);
  add_reductions(cases);
  add_softmaxes(cases);
  add_norms(cases);
  add_columns(cases);
  // Elements or products alone: a product's chain is no reduction, and windows of max_pool2d do not overlap.
  std::set<std::string_view> seen{"add",
                                  "attention_context",
                                  "attention_scores",
                                  "cast",
                                  "channels_last",
                                  "dropout",
                                  "exp",
                                  "gelu",
                                  "log",
                                  "matmul",
                                  "max_pool2d",
                                  "mul",
                                  "pow",
                                  "relu",
                                  "scale",
                                  "sigmoid",
                                  "tanh"};
  for (const Case& c : cases) {
    CAPTURE(c.operation);
    CAPTURE(c.what);
    CHECK(worst_excess(c) <= 1);
    seen.insert(c.operation);
  }
  for (const sim::Operation* operation : sim::operations()) CHECK(seen.contains(operation->name));
  CHECK(seen.size() == sim::operations().size());
}
