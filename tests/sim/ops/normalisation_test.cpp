/// softmax, log_softmax, layer_norm and batch_norm: against doubles within derived bounds in binary32, to the
/// bit against the stated orders in binary16.

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <stdexcept>
#include <vector>

#include "fp16/elementary.h"
#include "sim/ops/batch_norm.h"
#include "sim/ops/layer_norm.h"
#include "sim/ops/log_softmax.h"
#include "sim/ops/softmax.h"
#include "sim/ops/sum.h"
#include "tests/sim/ops/evaluation.h"
#include "tests/sim/ops/sum_oracle.h"

namespace {

using fp16::binary16;
using fp16::binary32;
using fp16::binary64;
using fp16::half;
using sim::Tensor;

constexpr double u = 0x1p-24;
constexpr float infinity = std::numeric_limits<float>::infinity();
constexpr float not_a_number = std::numeric_limits<float>::quiet_NaN();

/// Rounding errors of an interleaved sum of n terms of one sign, relative.
double sum_error(std::size_t n) {
  return sum_oracle::gamma(sum_oracle::roundings_along_row(n));
}

std::span<const double> row(const std::vector<double>& values, std::size_t index, std::size_t columns) {
  return std::span(values).subspan(index * columns, columns);
}

double mean_of(std::span<const double> values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}
double squares_about(std::span<const double> values, double mean) {
  return std::transform_reduce(values.begin(), values.end(), 0.0, std::plus{},
                               [mean](double x) { return (x - mean) * (x - mean); });
}

struct ExactSoftmax {
  std::vector<double> probabilities;
  double range;  ///< largest minus smallest
};

ExactSoftmax softmax_of(std::span<const double> x) {
  const auto [low, high] = std::ranges::minmax(x);
  ExactSoftmax result{std::vector<double>(x.begin(), x.end()), high - low};
  double sum = 0;
  for (double& p : result.probabilities) sum += p = std::exp(p - high);
  for (double& p : result.probabilities) p /= sum;
  return result;
}

}  // namespace

TEST_CASE("softmax: equal scores share alike, and large ones do not overflow") {
  const Evaluation e(sim::softmax, {tensor_of({2, 4}, {7, 7, 7, 7, 3e38f, -3e38f, 3e38f, 0})});
  CHECK(values_of(e.output) == std::vector<double>{0.25, 0.25, 0.25, 0.25, 0.5, 0, 0.5, 0});
}

TEST_CASE("softmax and log_softmax in binary32 lie within rounding of the exact ones") {
  for (const std::size_t columns : {1, 2, 10, 15, 16, 17, 64, 100, 1000}) {
    const Tensor x = normal_tensor({3, 5, columns}, "x", binary32, 4);
    const std::vector<double> values = values_of(x);
    const Evaluation p(sim::softmax, {x}), log_p(sim::log_softmax, {x});
    REQUIRE(p.output.shape() == x.shape());
    for (std::size_t r = 0; r < 15; ++r) {
      const ExactSoftmax exact = softmax_of(row(values, r, columns));
      // Each exponential: the rounding of x - largest, range u, and 0.9 ulp <= 1.8 u of exp; in the numerator
      // and in the sum; then the sum itself and the division.
      const double relative = 2.02 * (exact.range + 1.8) * u + sum_error(columns) + 1.01 * u;
      // The logarithm turns the sum's relative error into an absolute one, itself off by 0.87 ulp; then one
      // subtraction after another.
      const double absolute = 1.01 * (exact.range + 1.8) * u + sum_error(columns) +
                              (1.74 * std::log(static_cast<double>(columns)) + 3 * exact.range + 30) * u;
      for (std::size_t i = 0; i < columns; ++i) {
        const double expected = exact.probabilities[i];
        REQUIRE(std::abs(p.output.element(r * columns + i) - expected) <= relative * expected);
        REQUIRE(std::abs(log_p.output.element(r * columns + i) - std::log(expected)) <= absolute);
      }
    }
  }
}

TEST_CASE("softmax and its gradient in binary16: terms and partial sums are halves, in the stated order") {
  constexpr std::size_t rows = 40, columns = 50;
  const Tensor x = normal_tensor({rows, columns}, "x", binary16, 3),
               dy = normal_tensor({rows, columns}, "dy", binary16, 0.01f);
  Evaluation e(sim::softmax, {x}, {}, pure_fp16);
  const std::vector<Tensor> gradients = e.backward(dy);
  REQUIRE(e.output.format() == binary16);
  for (std::size_t r = 0; r < rows; ++r) {
    const std::vector<float> z = x.to_floats(), g = dy.to_floats(), y = e.output.to_floats();
    const float largest = *std::max_element(&z[r * columns], &z[r * columns] + columns);
    std::vector<float> exponentials(columns), products(columns);
    for (std::size_t i = 0; i < columns; ++i) {
      exponentials[i] = fp16::exp(z[r * columns + i] - largest);
      products[i] = y[r * columns + i] * g[r * columns + i];
    }
    const float sum = interleaved_half_sum(exponentials), dot = interleaved_half_sum(products);
    for (std::size_t i = 0; i < columns; ++i) {
      REQUIRE(y[r * columns + i] == float(half(exponentials[i] / sum)));
      REQUIRE(gradients[0].element(r * columns + i) ==
              float(half(y[r * columns + i] * (g[r * columns + i] - dot))));
    }
  }
}

TEST_CASE("softmax of attention scores: a token sees itself and what stands before it, whatever follows") {
  constexpr std::size_t context = 19, heads = 3;
  Tensor scores = normal_tensor({2, heads, context, context}, "scores", binary32, 2),
         dy = normal_tensor(scores.shape(), "dy");
  for (std::size_t r = 0; r < 2 * heads * context; ++r) {
    for (std::size_t i = r % context + 1; i < context; ++i) {
      scores.elements<float>()[r * context + i] = i % 2 ? not_a_number : infinity;
      dy.elements<float>()[r * context + i] = i % 2 ? infinity : not_a_number;
    }
  }
  Evaluation causal(sim::softmax, {scores}, sim::SoftmaxOptions{.causal = true});
  const Tensor dx = causal.backward(dy)[0];
  for (std::size_t r = 0; r < 2 * heads * context; ++r) {
    const std::size_t visible = r % context + 1;
    const auto part = [&](const Tensor& t) {
      return tensor_of({visible}, t.elements<float>().subspan(r * context, visible));
    };
    Evaluation alone(sim::softmax, {part(scores)});
    const Tensor gradient = alone.backward(part(dy))[0];
    for (std::size_t i = 0; i < context; ++i) {
      REQUIRE(causal.output.element(r * context + i) == (i < visible ? alone.output.element(i) : 0));
      REQUIRE(dx.element(r * context + i) == (i < visible ? gradient.element(i) : 0));
    }
  }
}

TEST_CASE("softmax and log_softmax: a NaN or +inf makes the row NaN, -inf alone is probability 0") {
  const Tensor x = tensor_of(
      {4, 3}, {1, not_a_number, 2, infinity, 0, 0, -infinity, 0, 0, -infinity, -infinity, -infinity});
  for (const sim::Operation* operation : {&sim::softmax, &sim::log_softmax}) {
    const Evaluation e(*operation, {x});
    for (const std::size_t r : {0, 1, 3}) {
      for (std::size_t i = 0; i < 3; ++i) CHECK(std::isnan(e.output.element(3 * r + i)));
    }
  }
  const Evaluation p(sim::softmax, {x}), log_p(sim::log_softmax, {x});
  CHECK(p.output.element(6) == 0);
  CHECK(p.output.element(7) == 0.5);
  CHECK(log_p.output.element(6) == -infinity);
}

TEST_CASE("log_softmax: its gradient is dy minus the probabilities' share of the sum of dy") {
  Evaluation e(sim::log_softmax, {tensor_of({1, 4}, {5, 5, 5, 5})});
  CHECK(values_of(e.backward(tensor_of({1, 4}, {1, 0, 0, 3}))[0]) == std::vector<double>{0, -1, -1, 2});
}

TEST_CASE("softmax reads halves and answers in binary32 where autocast asks for full-precision output") {
  const Tensor narrow = normal_tensor({4, 33}, "x", binary16);
  const Tensor wide = tensor_of({4, 33}, narrow.to_floats());
  for (const sim::Operation* operation : {&sim::softmax, &sim::log_softmax, &sim::sum}) {
    Evaluation mixed(*operation, {narrow}), full(*operation, {wide});
    CHECK(same_bytes(mixed.output, full.output));
    const Tensor dy = normal_tensor(full.output.shape(), "dy");
    const Tensor dx = mixed.backward(dy)[0];
    CHECK(dx.format() == binary16);
    CHECK(same_bytes(dx, tensor_of({4, 33}, full.backward(dy)[0].to_floats(), binary16)));
  }
}

TEST_CASE("layer_norm by hand: mean 2 and variance 1 of 1 and 3, then weight and bias") {
  Evaluation e(sim::layer_norm,
               {tensor_of({2, 2}, {1, 3, 5, 5}), tensor_of({2}, {10, 100}), tensor_of({2}, {1, 2})},
               sim::LayerNormOptions{.epsilon = 0.25});
  const double inverse = 1 / std::sqrt(1.25f);
  CHECK(e.output.element(0) == doctest::Approx(1 - 10 * inverse).epsilon(4 * u));
  CHECK(e.output.element(1) == doctest::Approx(2 + 100 * inverse).epsilon(4 * u));
  CHECK(e.output.element(2) == 1);  // no spread: only the bias is left
  CHECK(e.output.element(3) == 2);
  const std::vector<Tensor> gradients = e.backward(tensor_of({2, 2}, {1, 2, 3, 4}));
  CHECK(values_of(gradients[2]) == std::vector<double>{4, 6});
  CHECK(gradients[1].element(0) == doctest::Approx(-inverse).epsilon(4 * u));
  CHECK(gradients[1].element(1) == doctest::Approx(2 * inverse).epsilon(4 * u));
}

TEST_CASE("layer_norm in binary32 lies within rounding of the exact one, far from zero too") {
  for (const std::size_t columns : {2, 16, 100, 128, 1000}) {
    for (const float offset : {0.0f, 30.0f}) {
      const Tensor x = normal_tensor({6, columns}, "x", binary32, 1, offset);
      const Tensor w = normal_tensor({columns}, "w"), b = normal_tensor({columns}, "b");
      const std::vector<double> values = values_of(x);
      const Evaluation e(sim::layer_norm, {x, w, b});
      for (std::size_t r = 0; r < 6; ++r) {
        const std::span<const double> xs = row(values, r, columns);
        const double mean = mean_of(xs), variance = squares_about(xs, mean) / static_cast<double>(columns);
        const double deviation = std::sqrt(variance + 1e-5);
        // The computed mean is off by d <= (sum_error + u) max|x|. It shifts every difference and adds d^2 to
        // the variance, whose sum has a relative error of 3 u + 2 d / deviation (Cauchy) + sum_error; the
        // square root halves that.
        const double largest =
            std::abs(*std::ranges::max_element(xs, {}, [](double v) { return std::abs(v); }));
        const double d = (sum_error(columns) + 1.01 * u) * largest;
        const double scale_error =
            (sum_error(columns) + 8 * u) / 2 + d / deviation + d * d / (variance + 1e-5);
        for (std::size_t i = 0; i < columns; ++i) {
          const double xhat = (xs[i] - mean) / deviation, product = xhat * w.element(i);
          const double bound =
              1.05 * (std::abs(product) * (scale_error + 4 * u) + std::abs(w.element(i)) * d / deviation +
                      std::abs(product + b.element(i)) * u);
          REQUIRE(std::abs(e.output.element(r * columns + i) - (product + b.element(i))) <= bound);
        }
      }
    }
  }
}

TEST_CASE("layer_norm in binary16: rows in the interleaved order, parameters down the rows") {
  constexpr std::size_t rows = 23, columns = 70;
  const Tensor x = normal_tensor({rows, columns}, "x", binary16), w = normal_tensor({columns}, "w", binary16),
               b = normal_tensor({columns}, "b", binary16),
               dy = normal_tensor({rows, columns}, "dy", binary16, 0.1f);
  Evaluation e(sim::layer_norm, {x, w, b}, {}, pure_fp16);
  const std::vector<Tensor> gradients = e.backward(dy);
  const std::vector<float> xs = x.to_floats(), ws = w.to_floats(), bs = b.to_floats(), gs = dy.to_floats();
  const auto mean_of_halves = [](const std::vector<float>& terms) -> float {
    return half(float(interleaved_half_sum(terms)) / float(terms.size()));
  };
  std::vector<half> dw(columns, half(0.0f)), db(columns, half(0.0f));
  for (std::size_t r = 0; r < rows; ++r) {
    std::vector<float> terms(&xs[r * columns], &xs[r * columns] + columns), xhat(columns), g(columns),
        gx(columns);
    const float mean = mean_of_halves(terms);
    for (float& t : terms) t = (t - mean) * (t - mean);
    const float inverse = 1 / std::sqrt(mean_of_halves(terms) + 1e-5f);
    for (std::size_t i = 0; i < columns; ++i) {
      const float x_i = xs[r * columns + i], dy_i = gs[r * columns + i];
      REQUIRE(e.output.element(r * columns + i) == float(half((x_i - mean) * inverse * ws[i] + bs[i])));
      xhat[i] = (x_i - mean) * inverse;
      g[i] = dy_i * ws[i];
      gx[i] = g[i] * xhat[i];
      dw[i] += half(dy_i * xhat[i]);
      db[i] += half(dy_i);
    }
    const float mean_g = mean_of_halves(g), mean_gx = mean_of_halves(gx);
    for (std::size_t i = 0; i < columns; ++i)
      REQUIRE(gradients[0].element(r * columns + i) ==
              float(half(inverse * (g[i] - mean_g - xhat[i] * mean_gx))));
  }
  for (std::size_t i = 0; i < columns; ++i) {
    CHECK(gradients[1].element(i) == float(dw[i]));
    CHECK(gradients[2].element(i) == float(db[i]));
  }
}

TEST_CASE("layer_norm: a NaN or infinity spoils its own row only") {
  const Evaluation e(sim::layer_norm, {tensor_of({3, 2}, {1, not_a_number, 1, infinity, 1, 3}),
                                       tensor_of({2}, {1, 1}), tensor_of({2}, {0, 0})});
  for (std::size_t i = 0; i < 4; ++i) CHECK(std::isnan(e.output.element(i)));
  CHECK(std::isfinite(e.output.element(4)));
}

TEST_CASE("batch_norm by hand: channels, running statistics as torch keeps them") {
  // Channel 0 of the two images holds 1 and 5: mean 3, variance 4, unbiased 8; channel 1 holds 2 and 2.
  const Tensor x = tensor_of({2, 2, 1, 1}, {1, 2, 5, 2}), weight = tensor_of({2}, {2, 1}),
               bias = tensor_of({2}, {1, 7});
  Tensor mean = tensor_of({2}, {0, 0}), variance = tensor_of({2}, {1, 1});
  const sim::BatchNormOptions options{
      .epsilon = 0, .momentum = 0.25, .running_mean = &mean, .running_variance = &variance};
  SUBCASE("training") {
    const Evaluation e(
        sim::batch_norm, {x, weight, bias},
        sim::BatchNormOptions{
            .epsilon = 12, .momentum = 0.25, .running_mean = &mean, .running_variance = &variance});
    CHECK(values_of(e.output) == std::vector<double>{0, 7, 2, 7});  // sqrt(4 + 12) = 4
    CHECK(values_of(mean) == std::vector<double>{0.75, 0.5});
    CHECK(values_of(variance) == std::vector<double>{0.75 + 0.25 * 8, 0.75});
  }
  SUBCASE("evaluation uses the running statistics and leaves them alone") {
    mean = tensor_of({2}, {3, 1});
    variance = tensor_of({2}, {0.25f, 16});
    Evaluation e(sim::batch_norm, {x, weight, bias}, options, {.training = false});
    CHECK(values_of(e.output) == std::vector<double>{-7, 7.25, 9, 7.25});
    CHECK(values_of(mean) == std::vector<double>{3, 1});
    CHECK(values_of(variance) == std::vector<double>{0.25, 16});
    const std::vector<Tensor> gradients = e.backward(tensor_of({2, 2, 1, 1}, {1, 2, 3, 4}));
    CHECK(values_of(gradients[0]) == std::vector<double>{4, 0.5, 12, 1});
    CHECK(values_of(gradients[1]) == std::vector<double>{1 * -4 + 3 * 4, 2 * 0.25 + 4 * 0.25});
    CHECK(values_of(gradients[2]) == std::vector<double>{4, 6});
  }
  SUBCASE("without running statistics evaluation uses those of the batch") {
    const Evaluation e(sim::batch_norm, {x, weight, bias}, sim::BatchNormOptions{.epsilon = 12},
                       {.training = false});
    CHECK(values_of(e.output) == std::vector<double>{0, 7, 2, 7});
  }
  SUBCASE("the running ones are rounded to their own format") {
    Tensor narrow_mean = tensor_of({2}, {0, 0}, binary16), narrow_variance = tensor_of({2}, {1, 1}, binary16);
    const Evaluation e(
        sim::batch_norm, {x, weight, bias},
        sim::BatchNormOptions{
            .momentum = 0.1, .running_mean = &narrow_mean, .running_variance = &narrow_variance});
    CHECK(narrow_mean.element(0) == float(half(0.1f * 3)));
    CHECK(narrow_variance.element(0) == float(half((1 - 0.1f) * 1 + 0.1f * 8)));
  }
}

TEST_CASE("batch_norm of halves with binary32 parameters: formats of the gradients, values of the wide one") {
  const sim::Shape shape{5, 3, 4, 7};
  const Tensor x = normal_tensor(shape, "x", binary16), w = normal_tensor({3}, "w"),
               b = normal_tensor({3}, "b"), dy = normal_tensor(shape, "dy", binary16);
  Evaluation mixed(sim::batch_norm, {x, w, b}, {}, {.output = binary16}),
      wide(sim::batch_norm, {tensor_of(shape, x.to_floats()), w, b});
  CHECK(same_bytes(mixed.output, tensor_of(shape, wide.output.to_floats(), binary16)));
  const std::vector<Tensor> narrow_gradients = mixed.backward(dy),
                            wide_gradients = wide.backward(tensor_of(shape, dy.to_floats()));
  CHECK(same_bytes(narrow_gradients[0], tensor_of(shape, wide_gradients[0].to_floats(), binary16)));
  CHECK(same_bytes(narrow_gradients[1], wide_gradients[1]));
  CHECK(same_bytes(narrow_gradients[2], wide_gradients[2]));
}

TEST_CASE("batch_norm in binary32 lies within rounding of the exact one") {
  constexpr std::size_t images = 9, channels = 3, pixels = 35, count = images * pixels;
  const Tensor x = normal_tensor({images, channels, 5, 7}, "x", binary32, 2, 1),
               w = normal_tensor({channels}, "w"), b = normal_tensor({channels}, "b");
  const Evaluation e(sim::batch_norm, {x, w, b});
  for (std::size_t c = 0; c < channels; ++c) {
    std::vector<double> values;
    for (std::size_t i = 0; i < count; ++i)
      values.push_back(x.element((i / pixels * channels + c) * pixels + i % pixels));
    const double mean = mean_of(values), variance = squares_about(values, mean) / count;
    const double deviation = std::sqrt(variance + 1e-5);
    const double d = (sum_error(count) + 1.01 * u) * 8;  // as for layer_norm, with |x| <= 8
    const double scale_error = (sum_error(count) + 8 * u) / 2 + d / deviation + d * d;
    for (std::size_t i = 0; i < count; ++i) {
      REQUIRE(std::abs(values[i]) <= 8);
      const double product = (values[i] - mean) / deviation * w.element(c), expected = product + b.element(c);
      const double bound = 1.05 * (std::abs(product) * (scale_error + 4 * u) +
                                   std::abs(w.element(c)) * d / deviation + std::abs(expected) * u);
      REQUIRE(std::abs(e.output.element((i / pixels * channels + c) * pixels + i % pixels) - expected) <=
              bound);
    }
  }
}

TEST_CASE("batch_norm in binary16: pixels of one image after the other, in the interleaved order") {
  constexpr std::size_t images = 6, channels = 2, pixels = 15, count = images * pixels;
  const sim::Shape shape{images, channels, 3, 5};
  const Tensor x = normal_tensor(shape, "x", binary16, 1, 0.5f), w = tensor_of({2}, {1.5f, -0.7f}, binary16),
               b = tensor_of({2}, {0.1f, 3}, binary16), dy = normal_tensor(shape, "dy", binary16, 0.1f);
  Tensor running_mean = tensor_of({2}, {0, 0}, binary16), running_variance = tensor_of({2}, {1, 1}, binary16);
  Evaluation e(sim::batch_norm, {x, w, b},
               sim::BatchNormOptions{.running_mean = &running_mean, .running_variance = &running_variance},
               pure_fp16);
  const std::vector<Tensor> gradients = e.backward(dy);
  for (std::size_t c = 0; c < channels; ++c) {
    const auto at = [&](std::size_t i) { return (i / pixels * channels + c) * pixels + i % pixels; };
    const float weight = float(w.element(c)), shift = float(b.element(c));
    std::vector<float> xs(count), squares(count), xhat(count), gs(count), products(count);
    for (std::size_t i = 0; i < count; ++i) xs[i] = float(x.element(at(i)));
    const float mean = half(float(interleaved_half_sum(xs)) / count);
    for (std::size_t i = 0; i < count; ++i) squares[i] = (xs[i] - mean) * (xs[i] - mean);
    const float sum = interleaved_half_sum(squares);
    const float inverse = 1 / std::sqrt(float(half(sum / count)) + 1e-5f);
    for (std::size_t i = 0; i < count; ++i) {
      REQUIRE(e.output.element(at(i)) == float(half((xs[i] - mean) * inverse * weight + shift)));
      gs[i] = float(dy.element(at(i)));
      xhat[i] = (xs[i] - mean) * inverse;
      products[i] = gs[i] * xhat[i];
    }
    const float dweight = interleaved_half_sum(products), dbias = interleaved_half_sum(gs);
    const float mean_dy = half(dbias / count), mean_product = half(dweight / count);
    CHECK(gradients[1].element(c) == dweight);
    CHECK(gradients[2].element(c) == dbias);
    for (std::size_t i = 0; i < count; ++i) {
      REQUIRE(gradients[0].element(at(i)) ==
              float(half(inverse * weight * (gs[i] - mean_dy - xhat[i] * mean_product))));
    }
    CHECK(running_mean.element(c) == float(half((1 - 0.1f) * 0 + 0.1f * mean)));
    CHECK(running_variance.element(c) == float(half((1 - 0.1f) * 1 + 0.1f * float(half(sum / (count - 1))))));
  }
}

TEST_CASE("batch_norm: a NaN spoils its own channel only, its running statistics too") {
  Tensor x = normal_tensor({2, 2, 2, 2}, "x");
  x.elements<float>()[5] = not_a_number;  // image 0, channel 1
  Tensor mean = tensor_of({2}, {0, 0}), variance = tensor_of({2}, {1, 1});
  const Evaluation e(sim::batch_norm, {x, tensor_of({2}, {1, 1}), tensor_of({2}, {0, 0})},
                     sim::BatchNormOptions{.running_mean = &mean, .running_variance = &variance});
  for (std::size_t i = 0; i < 16; ++i) CHECK(std::isnan(e.output.element(i)) == (i / 4 % 2 == 1));
  CHECK(std::isfinite(mean.element(0)));
  CHECK(std::isnan(variance.element(1)));
}

TEST_CASE("normalisation refuses what cannot be computed") {
  const Tensor one = tensor_of({1, 1, 1, 1}, {3}), w = tensor_of({1}, {1});
  CHECK_THROWS_WITH_AS(Evaluation(sim::batch_norm, {one, w, w}),
                       "batch_norm: one value per channel in training; at least two are needed",
                       std::invalid_argument);
  CHECK_NOTHROW(Evaluation(sim::batch_norm, {one, w, w}, {}, {.training = false}));
  CHECK_THROWS_WITH_AS(
      Evaluation(sim::batch_norm, {one, w, w}, sim::BatchNormOptions{.momentum = 1.5}, {.training = false}),
      "batch_norm: momentum = 1.5 is not allowed; allowed: numbers in [0, 1]", std::invalid_argument);
  CHECK_THROWS_AS(Evaluation(sim::layer_norm, {one, w, w}, sim::LayerNormOptions{.epsilon = -1}),
                  std::invalid_argument);
}

TEST_CASE(
    "normalisation: the twin differentiates the forward values that were stored, in its own precision") {
  const sim::Shape shape{4, 3, 5, 5};
  const Tensor x = normal_tensor(shape, "x"), w = normal_tensor({3}, "w"), b = normal_tensor({3}, "b");
  const Tensor scores = normal_tensor({12, 25}, "x"), v = normal_tensor({25}, "v");
  const auto check = [](Evaluation e) {
    const Tensor dy = normal_tensor(e.output.shape(), "dy");
    Tensor wide_dy(dy.shape(), binary64);
    sim::copy_rounded({&wide_dy}, dy);
    const std::vector<Tensor> narrow = e.backward(dy), wide = e.backward(wide_dy, binary64);
    for (std::size_t i = 0; i < narrow.size(); ++i) {
      REQUIRE(wide[i].format() == binary64);
      bool differs = false;
      for (std::size_t k = 0; k < narrow[i].size(); ++k) {
        // Sums of at most 100 terms below 10 in binary32, times factors below 4.
        REQUIRE(std::abs(narrow[i].element(k) - wide[i].element(k)) <= 100 * 10 * 4 * 20 * u);
        differs |= narrow[i].element(k) != wide[i].element(k);
      }
      CHECK(differs);
    }
  };
  check(Evaluation(sim::batch_norm, {x, w, b}));
  check(Evaluation(sim::layer_norm, {scores, v, v}));
  check(Evaluation(sim::softmax, {scores}));
  check(Evaluation(sim::log_softmax, {scores}));
}

TEST_CASE("normalisation: the same bytes and counts for 1 and 2 threads") {
  for (const fp16::Format format : {binary16, binary32}) {
    const sim::Shape images{8, 8, 40, 40};
    const Tensor x = normal_tensor(images, "x", format), w = normal_tensor({8}, "w", format),
                 rows = normal_tensor({1100, 129}, "x", format), v = normal_tensor({129}, "v", format),
                 scores = normal_tensor({40, 50, 50}, "x", format);
    const auto check = [&](const sim::Operation& operation, const std::vector<Tensor>& inputs,
                           const sim::OperationOptions& options = {}) {
      const fp16::Format reductions = format;
      Evaluation one(operation, inputs, options, {.output = format, .reductions = reductions}),
          two(operation, inputs, options, {.output = format, .reductions = reductions, .threads = 2});
      CHECK(same_bytes(one.output, two.output));
      const Tensor dy = normal_tensor(one.output.shape(), "dy", format, 1e-3f);
      const std::vector<Tensor> first = one.backward(dy), second = two.backward(dy);
      for (std::size_t i = 0; i < first.size(); ++i) CHECK(same_bytes(first[i], second[i]));
      CHECK(one.counts == two.counts);
      CHECK(one.counts.exact + one.counts.inexact > one.output.size());
    };
    check(sim::batch_norm, {x, w, w});
    check(sim::layer_norm, {rows, v, v});
    check(sim::softmax, {rows});
    check(sim::softmax, {scores}, sim::SoftmaxOptions{.causal = true});
    check(sim::log_softmax, {rows});
  }
}
