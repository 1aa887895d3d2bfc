/// Operations on single elements, and those that only move elements: values, roundings, special values.

#include <doctest/doctest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

#include "fp16/half.h"
#include "sim/ops/add.h"
#include "sim/ops/cast.h"
#include "sim/ops/channels_last.h"
#include "sim/ops/dropout.h"
#include "sim/ops/embedding.h"
#include "sim/ops/exp.h"
#include "sim/ops/gelu.h"
#include "sim/ops/log.h"
#include "sim/ops/mul.h"
#include "sim/ops/pow.h"
#include "sim/ops/relu.h"
#include "sim/ops/scale.h"
#include "sim/ops/sigmoid.h"
#include "sim/ops/tanh.h"
#include "sim/tape/tape.h"
#include "tests/sim/ops/evaluation.h"

namespace {

using fp16::half;
using sim::Tensor;
using Values = std::vector<double>;

constexpr float infinity = std::numeric_limits<float>::infinity();
constexpr float not_a_number = std::numeric_limits<float>::quiet_NaN();

struct Function {
  const sim::Operation& operation;
  std::function<double(double)> exact;
  std::function<double(double)> derivative;  ///< NaN where it is not to be compared
  sim::OperationOptions options = {};
  float centre = 0, reach = 4;
};

std::vector<Function> functions() {
  const auto sigmoid = [](double x) { return 1 / (1 + std::exp(-x)); };
  const auto cdf = [](double x) { return std::erfc(-x / std::sqrt(2.0)) / 2; };
  const auto density = [](double x) { return std::exp(-x * x / 2) / std::sqrt(2 * std::acos(-1.0)); };
  return {
      {sim::relu, [](double x) { return x > 0 ? x : 0; }, [](double x) { return x > 0; }},
      {sim::gelu, [=](double x) { return x * cdf(x); }, [=](double x) { return cdf(x) + x * density(x); }},
      {sim::tanh, [](double x) { return std::tanh(x); },
       [](double x) { return 1 - std::tanh(x) * std::tanh(x); }},
      {sim::sigmoid, sigmoid, [=](double x) { return sigmoid(x) * (1 - sigmoid(x)); }},
      {sim::exp, [](double x) { return std::exp(x); }, [](double x) { return std::exp(x); }},
      {sim::log, [](double x) { return std::log(x); }, [](double x) { return 1 / x; }, {}, 4, 3},
      {sim::pow, [](double x) { return x * x * x; }, [](double x) { return 3 * x * x; },
       sim::PowOptions{.exponent = 3}},
      {sim::pow, [](double x) { return 1 / std::sqrt(x); },
       [](double x) { return -0.5 / (x * std::sqrt(x)); }, sim::PowOptions{.exponent = -0.5}, 4, 3},
      {sim::scale, [](double x) { return 0.75 * x; }, [](double) { return 3; },
       sim::ScaleOptions{.forward_factor = 0.75, .backward_factor = 3}},
  };
}

std::vector<float> grid(const Function& f, std::size_t count) {
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i)
    values[i] = half(f.centre + f.reach * (2 * static_cast<float>(i) / static_cast<float>(count - 1) - 1));
  return values;
}

double value_of(const sim::Operation& operation, float x, const sim::OperationOptions& options = {}) {
  return Evaluation(operation, {tensor_of({1}, {x})}, options).output.element(0);
}

}  // namespace

TEST_CASE("elementwise: value and gradient are those of the function") {
  // The functions' errors are some ulp, and sums of a few of them; a gradient from a stored output of
  // binary32 adds its rounding: 1 - y^2 near |y| = 1 loses against 1, not against itself.
  constexpr double tolerance = 32 * 0x1p-24;
  for (const Function& f : functions()) {
    const std::vector<float> x = grid(f, 257);
    Evaluation evaluated(f.operation, {tensor_of({x.size()}, x)}, f.options);
    const Tensor dy = tensor_of({x.size()}, std::vector<float>(x.size(), 1.0f));
    const Tensor dx = std::move(evaluated.backward(dy)[0]);
    for (std::size_t i = 0; i < x.size(); ++i) {
      INFO(f.operation.name, " at ", x[i]);
      const double y = f.exact(x[i]), slope = f.derivative(x[i]);
      CHECK(std::abs(evaluated.output.element(i) - y) <= tolerance * std::max(1.0, std::abs(y)));
      CHECK(std::abs(dx.element(i) - slope) <= tolerance * std::max(1.0, std::abs(slope)));
    }
  }
}

TEST_CASE("elementwise: in binary16 computed in binary32 and rounded once, forward and backward") {
  for (const Function& f : functions()) {
    const std::vector<float> x = grid(f, 3001);
    const sim::Shape shape{x.size()};
    for (const fp16::Format format : {fp16::binary16, fp16::bfloat16}) {
      Evaluation narrow(f.operation, {tensor_of(shape, x, format)}, f.options, {.output = format});
      Evaluation wide(f.operation, {tensor_of(shape, tensor_of(shape, x, format).to_floats())}, f.options);
      const Tensor rounded = tensor_of(shape, wide.output.to_floats(), format);
      INFO(f.operation.name, " ", fp16::name_of(format));
      CHECK(same_bytes(narrow.output, rounded));
      // Backward from what was stored: with the same output the gradients differ by one rounding.
      wide.output = tensor_of(shape, rounded.to_floats());
      const Tensor dy = normal_tensor(shape, "dy", format);
      const Tensor dx = std::move(narrow.backward(dy)[0]);
      const Tensor dx_wide = std::move(wide.backward(tensor_of(shape, dy.to_floats()))[0]);
      CHECK(same_bytes(dx, tensor_of(shape, dx_wide.to_floats(), format)));
    }
  }
}

TEST_CASE("elementwise: sums and products of two tensors are rounded once, each has its gradient") {
  const sim::Shape shape{1000};
  const Tensor a = normal_tensor(shape, "a", fp16::binary16), b = normal_tensor(shape, "b", fp16::binary16),
               dy = normal_tensor(shape, "dy", fp16::binary16);
  Evaluation sum(sim::add, {a, b}, {}, {.output = fp16::binary16}),
      product(sim::mul, {a, b}, {}, {.output = fp16::binary16});
  const std::vector<Tensor> of_sum = sum.backward(dy), of_product = product.backward(dy);
  for (std::size_t i = 0; i < a.size(); ++i) {
    const auto x = static_cast<float>(a.element(i)), y = static_cast<float>(b.element(i)),
               d = static_cast<float>(dy.element(i));
    REQUIRE(sum.output.element(i) == float(half(x) + half(y)));
    REQUIRE(product.output.element(i) == float(half(x) * half(y)));
    REQUIRE(of_product[0].element(i) == float(half(d) * half(y)));
    REQUIRE(of_product[1].element(i) == float(half(d) * half(x)));
  }
  CHECK(same_bytes(of_sum[0], dy));
  CHECK(same_bytes(of_sum[1], dy));
}

TEST_CASE("elementwise: special values") {
  for (const sim::Operation* operation :
       {&sim::relu, &sim::gelu, &sim::tanh, &sim::sigmoid, &sim::exp, &sim::log, &sim::pow, &sim::scale}) {
    INFO(operation->name);
    CHECK(std::isnan(value_of(*operation, not_a_number)));
  }
  CHECK(value_of(sim::relu, infinity) == infinity);
  CHECK(value_of(sim::relu, -infinity) == 0);
  CHECK(value_of(sim::gelu, infinity) == infinity);
  CHECK(value_of(sim::gelu, -40) == 0);
  CHECK(value_of(sim::tanh, infinity) == 1);
  CHECK(value_of(sim::tanh, -infinity) == -1);
  CHECK(value_of(sim::sigmoid, infinity) == 1);
  CHECK(value_of(sim::sigmoid, -infinity) == 0);
  CHECK(value_of(sim::exp, 1000) == infinity);
  CHECK(value_of(sim::exp, -infinity) == 0);
  CHECK(value_of(sim::log, 0) == -infinity);
  CHECK(std::isnan(value_of(sim::log, -1)));
  CHECK(value_of(sim::pow, 0, sim::PowOptions{.exponent = -1}) == infinity);
  CHECK(std::isnan(value_of(sim::pow, -8, sim::PowOptions{.exponent = 0.5})));
  CHECK(value_of(sim::pow, not_a_number, sim::PowOptions{.exponent = 0}) == 1);
  CHECK(value_of(sim::pow, -3, sim::PowOptions{.exponent = 3}) == -27);
  Evaluation constant(sim::pow, {tensor_of({2}, {0, 3}, fp16::binary32)}, sim::PowOptions{.exponent = 0}, {});
  for (const Tensor& gradient : constant.backward(tensor_of({2}, {1, 1}, fp16::binary32))) {
    CHECK(gradient.element(0) == 0);
    CHECK(gradient.element(1) == 0);
  }
}

TEST_CASE("elementwise: overflow and underflow of binary16 are counted where they happen") {
  const Evaluation e(sim::exp, {tensor_of({5}, {20, -20, -16, 0, 1}, fp16::binary16)}, {},
                     {.output = fp16::binary16});
  CHECK(e.output.element(0) == infinity);
  CHECK(e.output.element(1) == 0);
  CHECK(e.counts.overflowed == 1);
  CHECK(e.counts.flushed == 1);
  CHECK(e.counts.subnormal == 1);
}

TEST_CASE("elementwise: one thread and two give the same bytes and counts") {
  const sim::Shape shape{200'003};
  for (const Function& f : functions()) {
    const auto evaluate = [&](int threads) {
      Evaluation e(f.operation, {normal_tensor(shape, "x", fp16::binary16, 1, f.centre)}, f.options,
                   {.output = fp16::binary16, .threads = threads});
      Tensor dx = std::move(e.backward(normal_tensor(shape, "dy", fp16::binary16, 0x1p-12f))[0]);
      return std::tuple(std::move(e.output), std::move(dx), e.counts.flushed, e.counts.subnormal);
    };
    const auto [y1, dx1, flushed1, subnormal1] = evaluate(1);
    const auto [y2, dx2, flushed2, subnormal2] = evaluate(2);
    INFO(f.operation.name);
    CHECK(same_bytes(y1, y2));
    CHECK(same_bytes(dx1, dx2));
    CHECK(flushed1 == flushed2);
    CHECK(subnormal1 == subnormal2);
    CHECK(subnormal1 > 0);
  }
}

TEST_CASE("cast: rounds once either way and counts it, wider formats lose nothing") {
  const Tensor x = tensor_of({4}, {1 + 0x1p-12f, 0x1p-26f, 1e6f, -2});
  Evaluation down(sim::cast, {x}, sim::CastOptions{.format = fp16::binary16});
  CHECK(values_of(down.output) == Values{1, 0, infinity, -2});
  CHECK(down.counts.flushed == 1);
  CHECK(down.counts.overflowed == 1);
  CHECK(values_of(down.backward(tensor_of({4}, {1, 2, 3, 4}, fp16::binary16))[0]) == Values{1, 2, 3, 4});
  Evaluation up(sim::cast, {tensor_of({2}, {0.1f, 65504}, fp16::binary16)},
                sim::CastOptions{.format = fp16::binary64});
  CHECK(up.output.format() == fp16::binary64);
  CHECK(up.output.element(0) == float(half(0.1f)));
  CHECK(values_of(up.backward(tensor_of({2}, {0x1p-30f, 1}, fp16::binary64))[0]) == Values{0, 1});
}

TEST_CASE("dropout: so many elements vanish as was asked for, the others make up for them") {
  const sim::Shape shape{100'000};
  const Tensor ones = tensor_of(shape, std::vector<float>(100'000, 1.0f));
  for (const double p : {0.0, 0.1, 0.5, 0.9}) {
    Evaluation e(sim::dropout, {ones}, sim::DropoutOptions{.probability = p});
    const Tensor dx = std::move(e.backward(ones)[0]);
    CHECK(same_bytes(e.output, dx));  // the same elements
    double zeros = 0;
    const auto kept = static_cast<float>(1 / (1 - p));
    for (std::size_t i = 0; i < ones.size(); ++i) {
      zeros += e.output.element(i) == 0;
      REQUIRE((e.output.element(i) == 0 || e.output.element(i) == kept));
    }
    INFO(p);
    // Five standard deviations of a binomial count: by chance once in a million.
    CHECK(std::abs(zeros - 1e5 * p) <= 5 * std::sqrt(1e5 * p * (1 - p)));
    const Evaluation at_rest(sim::dropout, {ones}, sim::DropoutOptions{.probability = p},
                             {.training = false});
    CHECK(same_bytes(at_rest.output, ones));
  }
  const Evaluation nearly_all(sim::dropout, {ones}, sim::DropoutOptions{.probability = 1 - 0x1p-40});
  CHECK(std::ranges::all_of(values_of(nearly_all.output), [](double y) { return y == 0; }));
}

TEST_CASE("dropout: two threads drop what one does") {
  const auto drop = [](int threads) {
    return Evaluation(sim::dropout, {normal_tensor({200'003}, "x", fp16::binary16)},
                      sim::DropoutOptions{.probability = 0.3}, {.output = fp16::binary16, .threads = threads})
        .output;
  };
  CHECK(same_bytes(drop(1), drop(2)));
}

TEST_CASE("embedding: rows by index, gradients of the same entry add up in order, as the policy's sums do") {
  const Tensor table = tensor_of({3, 2}, {1, 2, 3, 4, 5, 6}, fp16::binary16);
  const std::vector<std::int32_t> labels{2, 0, 2, 2};
  const auto gradient = [&](fp16::Format reductions) {
    Evaluation e(sim::embedding, {table}, sim::EmbeddingOptions{.labels = labels},
                 {.output = fp16::binary16, .reductions = reductions});
    CHECK(e.output.shape() == sim::Shape{4, 2});
    CHECK(values_of(e.output) == Values{5, 6, 1, 2, 5, 6, 5, 6});
    return values_of(e.backward(tensor_of({4, 2}, {2048, 1, 7, 8, 1, 2, 1, 3}, fp16::binary16))[0]);
  };
  CHECK(gradient(fp16::binary32) == Values{7, 8, 0, 0, 2050, 6});
  CHECK(gradient(fp16::binary16) == Values{7, 8, 0, 0, 2048, 6});
}

TEST_CASE("embedding: a label outside the table is refused with its row") {
  for (const std::int32_t wrong : {-1, 3}) {
    CHECK_THROWS_WITH_AS(
        Evaluation(sim::embedding, {tensor_of({3, 1}, {1, 2, 3})},
                   sim::EmbeddingOptions{.labels = {0, wrong}}),
        ("embedding: label " + std::to_string(wrong) + " of row 1; allowed are 0 to 2").c_str(),
        std::invalid_argument);
  }
}

TEST_CASE("channels_last: pixels keep their channels together, in rows of the length asked for") {
  const Tensor x = tensor_of({1, 2, 1, 3}, {1, 2, 3, 10, 20, 30});
  for (const auto& [row_length, shape] :
       {std::pair{std::size_t{0}, sim::Shape{3, 2}}, {2, sim::Shape{3, 2}}, {1, sim::Shape{6, 1}}}) {
    Evaluation e(sim::channels_last, {x}, sim::ChannelsLastOptions{.row_length = row_length});
    CHECK(e.output.shape() == shape);
    CHECK(values_of(e.output) == Values{1, 10, 2, 20, 3, 30});
    CHECK(values_of(e.backward(e.output)[0]) == Values{1, 2, 3, 10, 20, 30});
  }
  CHECK_THROWS_WITH_AS(Evaluation(sim::channels_last, {x}, sim::ChannelsLastOptions{.row_length = 3}),
                       "channels_last: row_length 3 for 2 channels; allowed are divisors of that",
                       std::invalid_argument);
}

TEST_CASE("stochastic rounding: either neighbour, in proportion, the same on every repetition") {
  const sim::PrecisionPolicy policy = sim::make_precision_policy("O3:activation_rounding=stochastic");
  constexpr std::size_t count = 100'000;
  const Tensor x = tensor_of({count}, std::vector<float>(count, 1.0f), fp16::binary16);
  const auto scaled = [&](std::uint64_t seed, std::uint64_t step, int threads) {
    sim::Tape tape(policy, {.seed = seed, .step = step, .threads = threads});
    // A quarter of the way from 1 to 1 + 2^-10.
    return tape.value(
        tape.apply(sim::scale, {tape.constant(x)}, {}, sim::ScaleOptions{.forward_factor = 1 + 0x1p-12}));
  };
  const Tensor y = scaled(1, 1, 1);
  double up = 0;
  for (std::size_t i = 0; i < count; ++i) {
    REQUIRE((y.element(i) == 1 || y.element(i) == 1 + 0x1p-10));
    up += y.element(i) > 1;
  }
  CHECK(std::abs(up - count / 4.0) <= 5 * std::sqrt(count * 0.25 * 0.75));  // five standard deviations
  CHECK(same_bytes(y, scaled(1, 1, 1)));
  CHECK(same_bytes(y, scaled(1, 1, 2)));
  CHECK(!same_bytes(y, scaled(1, 2, 1)));
  CHECK(!same_bytes(y, scaled(2, 1, 1)));
}
