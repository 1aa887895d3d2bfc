#include "sim/optimizers/adam.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <stdexcept>
#include <vector>

#include "sim/tensor/integer_power.h"
#include "tests/sim/optimizers/rounding_model.h"
#include "tests/sim/optimizers/tensors.h"

using test::follow;
using test::fused_half;
using test::pure_half;
using test::step;
using test::tensor_of;
using test::values_of;

namespace {

sim::AdamWOptions with_decay(sim::AdamOptions options, double weight_decay) {
  sim::AdamWOptions all;
  static_cast<sim::AdamOptions&>(all) = options;
  all.weight_decay = weight_decay;
  return all;
}

/// The greatest distance in 20 steps between the optimizer and the paper's formulas in long double.
double greatest_error(sim::Optimizer& optimizer, long double weight_decay, bool decoupled,
                      fp16::Format format) {
  sim::Tensor weight = tensor_of({1.5}, format);
  long double w = 1.5L, m = 0, v = 0;
  double error = 0;
  for (int t = 1; t <= 20; ++t) {
    const double gradient = (t % 3 == 0 ? -1.0 : 1.0) * (1 + t / 32.0);  // the same in both formats
    step(optimizer, weight, tensor_of({gradient}, format));
    const long double g = gradient + (decoupled ? 0 : weight_decay * w);
    if (decoupled) w *= 1 - 0.01L * weight_decay;
    m = 0.9L * m + 0.1L * g;
    v = 0.999L * v + 0.001L * g * g;
    w -= 0.01L * (m / (1 - std::pow(0.9L, t))) / (std::sqrt(v / (1 - std::pow(0.999L, t))) + 1e-8L);
    error = std::fmax(error, static_cast<double>(std::fabs(values_of(weight).front() - w)));
  }
  CHECK(std::fabs(w - 1.5L) > 0.05L);  // the bounds below are far from what the steps moved
  return error;
}

enum class Decay { none, in_gradient, decoupled };

/// Adam over many weights by the documented formulas, operation by operation, in doubles that are rounded to
/// binary32 and then to the format of the tensor operation.
struct Model {
  fp16::Format operations, format;
  double beta1;
  Decay decay;
  static constexpr std::size_t size = 500;
  static constexpr int steps = 4;
  static constexpr double rate = 0.01, beta2 = 0.99, epsilon = 1e-3, weight_decay = 0.05;

  static std::vector<double> gradients(int t) { return test::spread_values(size, static_cast<unsigned>(t)); }
  static std::vector<double> first_weights() { return test::spread_values(size, 99); }
  static double f(double value) { return test::rounded(value, fp16::binary32); }
  double r(double value) const { return test::rounded(f(value), operations); }

  std::vector<double> trained_weights() const {
    const sim::AdamOptions options{.learning_rate = rate, .beta1 = beta1, .beta2 = beta2, .epsilon = epsilon};
    sim::Adam adam(with_decay(options, decay == Decay::none ? 0 : weight_decay),
                   {.operations = operations, .state = format},
                   decay == Decay::decoupled ? sim::WeightDecay::decoupled : sim::WeightDecay::in_gradient);
    sim::Tensor weights = tensor_of(first_weights(), format);
    for (int t = 1; t <= steps; ++t) step(adam, weights, tensor_of(gradients(t)));
    return values_of(weights);
  }

  std::vector<double> expected_weights() const {
    std::vector<double> w = values_of(tensor_of(first_weights(), format)), m(size), v(size);
    for (int t = 1; t <= steps; ++t) {
      const double step_size = f(-rate / (1 - sim::integer_power(beta1, t)));
      const double correction = f(std::sqrt(1 - sim::integer_power(beta2, t)));
      const std::vector<double> g = gradients(t);
      for (std::size_t i = 0; i < size; ++i) update(w[i], m[i], v[i], g[i], step_size, correction);
    }
    return w;
  }

  void update(double& w, double& m, double& v, double g, double step_size, double correction) const {
    const double keep1 = f(1 - beta1), keep2 = f(1 - beta2);
    if (decay == Decay::in_gradient) g = r(g + f(f(weight_decay) * w));
    if (decay == Decay::decoupled) w = r(w * f(1 - rate * weight_decay));
    const double mean = r(keep1 < 0.5 ? m + f(keep1 * f(g - m)) : g - f(f(g - m) * f(1 - keep1)));
    const double square = r(r(f(beta2) * v) + f(f(keep2 * g) * g));
    const double divisor = r(r(r(std::sqrt(square)) / correction) + f(epsilon));
    w = test::rounded(w + f(step_size * f(mean / divisor)), format);
    m = test::rounded(mean, format);
    v = test::rounded(square, format);
  }
};

}  // namespace

TEST_CASE("adam: the first step is learning_rate / (1 + epsilon / |g|) against the gradient's sign") {
  // beta1 = beta2 = 0: m = g, v = g^2, no correction, so every step is g / (|g| + epsilon) times the rate.
  sim::Adam optimizer({.learning_rate = 0.5, .beta1 = 0, .beta2 = 0, .epsilon = 1});
  sim::Tensor weight = tensor_of({1});
  for (const auto& [gradient, expected] : {std::pair{1.0, 0.75}, std::pair{-3.0, 1.125}}) {
    step(optimizer, weight, tensor_of({gradient}));
    CHECK(values_of(weight).front() == expected);
  }
}

TEST_CASE("adamw: decay shrinks the weight first, adam's adds to the gradient") {
  const sim::AdamOptions options{.learning_rate = 0.5, .beta1 = 0, .beta2 = 0, .epsilon = 1};
  sim::AdamW decoupled(with_decay(options, 0.5));
  sim::Tensor weight = tensor_of({1});
  step(decoupled, weight, tensor_of({1}));  // 1 * (1 - 0.25) - 0.5 * 1 / (1 + 1)
  CHECK(values_of(weight).front() == 0.5);
  sim::Adam in_gradient(with_decay(options, 2));
  weight = tensor_of({1});
  step(in_gradient, weight, tensor_of({1}));  // g = 3: 1 - 0.5 * 3 / (3 + 1)
  CHECK(values_of(weight).front() == 0.625);
}

// All literals come from a separate program that rounds the double result of each single operation to
// binary32 (which is exact rounding for + - * / sqrt) and, where a tensor operation ends, to binary16. The
// gradients and options are such that another order (beta2-weighted square, lerp, place of either correction)
// would show.
TEST_CASE("adam: every operation rounds once in the stated order") {
  const sim::AdamOptions options{.learning_rate = 1, .beta1 = 0.9, .beta2 = 0.7};
  sim::Adam adam(options);
  CHECK(follow(adam, 0.6f) ==
        std::vector{0x1.99999ap+0, 0x1.ed01bp+0, 0x1.86aecap+0, 0x1.e1cff6p-1, 0x1.884d08p-2});
  sim::Adam decayed(with_decay(options, 0.3));
  CHECK(follow(decayed, 0.6f) ==
        std::vector{0x1.99999cp+0, 0x1.8adda6p+0, 0x1.045654p+0, 0x1.674438p-2, -0x1.3046cp-2});
  sim::AdamW decoupled(with_decay(options, 0.3));
  CHECK(follow(decoupled, 0.6f) ==
        std::vector{0x1.6b852p+0, 0x1.51dedep+0, 0x1.0c5f04p-1, -0x1.bec608p-3, -0x1.6bd8e6p-1});
  sim::Adam forgetful({.learning_rate = 1, .beta1 = 0.3, .beta2 = 0.7});  // torch.lerp's other formula
  CHECK(follow(forgetful, 0.6f) ==
        std::vector{0x1.99999ap+0, 0x1.714584p+0, 0x1.bce53p-2, -0x1.42dc0cp-1, -0x1.0aca04p+0});
}

TEST_CASE("adam: what is rounded to binary16 differs between the two ways of updating in it") {
  const sim::AdamOptions options{.learning_rate = 0.3, .beta1 = 0.9, .beta2 = 0.7, .epsilon = 1e-4};
  sim::Adam fused(options, fused_half);
  CHECK(follow(fused, 0.3f, fp16::binary16) ==
        std::vector{0x1.334p-1, 0x1.654p-1, 0x1.27cp-1, 0x1.9bcp-2, 0x1.e0cp-3});
  sim::Adam pure(options, pure_half);
  CHECK(follow(pure, 0.3f, fp16::binary16) ==
        std::vector{0x1.33p-1, 0x1.65p-1, 0x1.278p-1, 0x1.9b4p-2, 0x1.dfcp-3});
  sim::AdamW fused_w(with_decay(options, 0.3), fused_half);
  CHECK(follow(fused_w, 0.3f, fp16::binary16) ==
        std::vector{0x1.258p-1, 0x1.3dp-1, 0x1.c64p-2, 0x1.d34p-3, 0x1.498p-5});
  sim::AdamW pure_w(with_decay(options, 0.3), pure_half);
  CHECK(follow(pure_w, 0.3f, fp16::binary16) ==
        std::vector{0x1.254p-1, 0x1.3ccp-1, 0x1.c5cp-2, 0x1.d28p-3, 0x1.46cp-5});
}

TEST_CASE("adam: many weights follow the formulas bit for bit, in every format") {
  for (const fp16::Format format : {fp16::binary32, fp16::binary16, fp16::bfloat16}) {
    for (const fp16::Format operations : {fp16::binary32, format}) {
      for (const double beta1 : {0.9, 0.3}) {
        for (const Decay decay : {Decay::none, Decay::in_gradient, Decay::decoupled}) {
          Model model{.operations = operations, .format = format, .beta1 = beta1, .decay = decay};
          CHECK(model.trained_weights() == model.expected_weights());
        }
      }
    }
  }
}

// u is the unit roundoff, 1 <= |g| <= 2, |w| <= 2, T = 20 steps. With weight decay of 0.1 in it the gradient
// is at most 2.2 and carries at most 3u more, and the weight's own error times 0.1. Each step brings into m
// at most |g - m| (2u + u) 0.1 + |m| u + 0.3u <= 4u, which then decays by 0.9, so m is off by at most 40u. v
// is a sum of positive terms, off by at most 8u T relative, and after correction v lies in [0.8, 5]. So m /
// (sqrt(v) / c + epsilon) is off by at most 50u + 2.5 (8u T / 2 + 4u) <= 260u; its factor learning_rate / (1
// - 0.9^t) is at most 0.1, and that product brings 2u of its own. Decoupled decay rounds 2u, the new weight
// 2u: (26 + 0.5 + 4) u a step, 610u in all; the weight's error in the gradient adds at most 20 * 0.1 * 610u *
// 0.1 <= 130u.
TEST_CASE("adam: agrees with the paper's formulas in wider arithmetic") {
  const sim::AdamOptions options{.learning_rate = 0.01};
  const sim::UpdateArithmetic in_doubles{.operations = fp16::binary64, .state = fp16::binary64};
  for (const double weight_decay : {0.0, 0.1}) {
    CAPTURE(weight_decay);
    const sim::AdamWOptions all = with_decay(options, weight_decay);
    for (const bool wide : {false, true}) {
      const sim::UpdateArithmetic arithmetic = wide ? in_doubles : sim::UpdateArithmetic{};
      const fp16::Format format = wide ? fp16::binary64 : fp16::binary32;
      const double bound = 740 * (wide ? 0x1p-53 : 0x1p-24);
      sim::Adam adam(all, arithmetic);
      CHECK(greatest_error(adam, weight_decay, false, format) <= bound);
      sim::AdamW adamw(all, arithmetic);
      CHECK(greatest_error(adamw, weight_decay, true, format) <= bound);
    }
  }
}

TEST_CASE("adam: in binary16 an epsilon of up to 2^-25 is zero, and a weight without gradients becomes NaN") {
  const auto after_zero_gradient = [](double epsilon, const sim::UpdateArithmetic& arithmetic) {
    sim::Adam adam({.epsilon = epsilon}, arithmetic);
    sim::Tensor weight = tensor_of({1}, fp16::binary16);
    step(adam, weight, tensor_of({0}));
    return values_of(weight).front();
  };
  CHECK(std::isnan(after_zero_gradient(1e-8, pure_half)));
  CHECK(std::isnan(after_zero_gradient(0x1p-25, pure_half)));
  CHECK(after_zero_gradient(0x1.000002p-25, pure_half) == 1);
  CHECK(after_zero_gradient(1e-8, fused_half) == 1);
  CHECK(after_zero_gradient(1e-8, {}) == 1);
  const sim::UpdateArithmetic bfloat16{.operations = fp16::bfloat16, .state = fp16::bfloat16};
  sim::Adam adam({}, bfloat16);  // has the exponents of binary32
  sim::Tensor weight = tensor_of({1}, fp16::bfloat16);
  step(adam, weight, tensor_of({0}));
  CHECK(values_of(weight).front() == 1);
}

TEST_CASE(
    "adam: a second moment that underflows in binary16 makes steps infinite or a thousand times too large") {
  // g = 2^-10: 0.001 g^2 = 2^-30 rounds to 0 in binary16, m = 0.1 g does not.
  sim::Adam pure({}, pure_half);
  sim::Tensor weight = tensor_of({1}, fp16::binary16);
  step(pure, weight, tensor_of({0x1p-10}));
  CHECK(values_of(weight).front() == -HUGE_VAL);
  // Fused, a step still sees its own v; the next one divides 0.9 m by no more than epsilon.
  sim::Adam fused({}, fused_half);
  weight = tensor_of({1}, fp16::binary16);
  step(fused, weight, tensor_of({0x1p-10}));
  CHECK(values_of(weight).front() == doctest::Approx(1 - 0.001).epsilon(0.0005));
  step(fused, weight, tensor_of({0}));
  CHECK(values_of(weight).front() < -4);
  sim::Adam exact;
  weight = tensor_of({1}, fp16::binary16);
  for (const double gradient : {0x1p-10, 0.0}) step(exact, weight, tensor_of({gradient}));
  CHECK(values_of(weight).front() > 0.997);
}

TEST_CASE("adam: impossible options are refused") {
  for (const double bad : {0.0, -0.1, HUGE_VAL, std::nan("")})
    CHECK_THROWS_AS(sim::Adam({.learning_rate = bad}), std::invalid_argument);
  for (const double bad : {-0.1, 1.0, 1.5, std::nan("")}) {
    CHECK_THROWS_AS(sim::Adam({.beta1 = bad}), std::invalid_argument);
    CHECK_THROWS_AS(sim::Adam({.beta2 = bad}), std::invalid_argument);
  }
  CHECK_THROWS_WITH_AS(sim::Adam({.epsilon = -1e-8}),
                       "optimizer 'adam': epsilon = -1e-08 is not allowed; allowed: numbers in [0, inf)",
                       std::invalid_argument);
  CHECK_THROWS_WITH_AS(sim::AdamW(with_decay({}, -1)),
                       "optimizer 'adamw': weight_decay = -1 is not allowed; allowed: numbers in [0, inf)",
                       std::invalid_argument);
  CHECK_NOTHROW(sim::Adam({.beta1 = 0, .beta2 = 0, .epsilon = 0}));
}
