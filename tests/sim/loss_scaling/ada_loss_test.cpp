#include "sim/loss_scaling/ada_loss.h"

#include <doctest/doctest.h>
#include <mpfr.h>

#include <cmath>
#include <random>
#include <stdexcept>
#include <vector>

using sim::AdaLoss;
using sim::AdaLossMethod;
using sim::AdaLossOptions;
using sim::LayerGradient;

namespace {

// With T = 1e-3 u_min / q is 4.78731e-5, so that sigma = 1e-5 asks for alpha = 4.78731.
constexpr double sigma = 1e-5;

LayerGradient normal_gradient(double standard_deviation, float max_abs = 1e-3F, double scale = 1) {
  return {.scale = scale, .gradient = {.standard_deviation = standard_deviation, .max_abs = max_abs}};
}

double alpha(const AdaLossOptions& options, const LayerGradient& gradient) {
  return AdaLoss(options).scale("layer", gradient).factor;
}

constexpr AdaLossOptions without_bounds(AdaLossMethod method) {
  return {.method = method, .scale_cap = 1e30, .accumulated_cap = 1e30, .power_of_two = false};
}

// |erf(y) - x| / |x|, and that divided by y erf'(y) / x, which is the relative error of y.
std::pair<double, double> errors_of_inverse(double x, double y) {
  mpfr_t root, difference, slope;
  mpfr_inits2(200, root, difference, slope, nullptr);
  mpfr_set_d(root, y, MPFR_RNDN);
  mpfr_erf(difference, root, MPFR_RNDN);
  mpfr_sub_d(difference, difference, x, MPFR_RNDN);
  const double backward = std::fabs(mpfr_get_d(difference, MPFR_RNDN) / x);
  mpfr_sqr(slope, root, MPFR_RNDN);
  mpfr_neg(slope, slope, MPFR_RNDN);
  mpfr_exp(slope, slope, MPFR_RNDN);
  mpfr_div(difference, difference, slope, MPFR_RNDN);
  const double half_sqrt_pi = 0.88622692545275801;
  const double forward = std::fabs(mpfr_get_d(difference, MPFR_RNDN) * half_sqrt_pi / y);
  mpfr_clears(root, difference, slope, nullptr);
  return {backward, forward};
}

}  // namespace

TEST_CASE("ada_loss: erfinv against MPFR's erf") {
  std::mt19937_64 random(1);
  double worst_backward = 0, worst_forward = 0;
  for (int i = 0; i < 20'000; ++i) {
    const double u = static_cast<double>(random() >> 11) * 0x1p-53;
    const double small = std::ldexp(1 + u, -static_cast<int>(random() % 60) - 2);
    const double x = i % 3 == 0 ? small : i % 3 == 1 ? std::fmax(u, small) : 1 - std::fmax(small, 0x1p-50);
    const auto [backward, forward] = errors_of_inverse(x, sim::erfinv(x));
    worst_backward = std::fmax(worst_backward, backward);
    if (x <= 0.9) worst_forward = std::fmax(worst_forward, forward);
  }
  CHECK(worst_backward < 0x1p-48);
  CHECK(worst_forward < 0x1p-48);
}

TEST_CASE("ada_loss: erfinv is odd, and gives the factor of the paper's default") {
  CHECK(sim::erfinv(0.0) == 0);
  CHECK(sim::erfinv(-0.75) == -sim::erfinv(0.75));
  CHECK(std::fabs(std::sqrt(2.0) * sim::erfinv(1e-3) - 0.00125331) < 5e-9);
  // The quantile of order 1/1000 of the normal distribution.
  CHECK(std::sqrt(2.0) * sim::erfinv(2 * 1e-3 - 1) == doctest::Approx(-3.0902323061678132).epsilon(1e-13));
}

TEST_CASE("ada_loss: the defaults are the original's") {
  CHECK(AdaLoss().options() == names::NamedValues{{"method", 0},
                                                  {"init_scale", 1},
                                                  {"underflow_probability", 1e-3},
                                                  {"u_min", 6e-8},
                                                  {"u_max", 6e4},
                                                  {"scale_cap", 16},
                                                  {"accumulated_cap", 1024},
                                                  {"fixed_scale", 1},
                                                  {"recompute_interval", 1},
                                                  {"power_of_two", 1},
                                                  {"skip_nonfinite", 0}});
  CHECK(AdaLoss().needs() == sim::LayerNeeds{.moments = true, .magnitudes = true});
  CHECK(AdaLoss().loss_scale() == 1);
  CHECK(AdaLoss({.init_scale = 8}).loss_scale() == 8);
}

TEST_CASE("ada_loss: alpha lifts all but one in a thousand normal values above u_min") {
  CHECK(alpha({}, normal_gradient(sigma)) == 4);  // 4.787 floored
  CHECK(alpha({.power_of_two = false}, normal_gradient(sigma)) == doctest::Approx(4.7873061).epsilon(1e-7));
  CHECK(alpha({}, normal_gradient(5.98e-6)) == 8);  // 8.0055
  CHECK(alpha({}, normal_gradient(5.99e-6)) == 4);  // 7.9921
  CHECK(alpha({}, normal_gradient(1)) == 1);        // never below 1 for underflow's sake
  CHECK(alpha({.underflow_probability = 0.1, .u_min = 1, .power_of_two = false}, normal_gradient(2)) ==
        doctest::Approx(1 / (0.12566134685507 * 2)).epsilon(1e-12));  // q(0.1) from tables
}

TEST_CASE("ada_loss: alpha keeps the largest value below u_max, below 1 if need be") {
  CHECK(alpha({}, normal_gradient(sigma, 2e4F)) == 2);    // 6e4 / 2e4 = 3
  CHECK(alpha({}, normal_gradient(1, 65504)) == 0.5);     // 0.916
  CHECK(alpha({}, normal_gradient(1e3, 3e5F)) == 0.125);  // 0.2
}

TEST_CASE("ada_loss: caps of one alpha and of the accumulated scale") {
  CHECK(alpha({}, normal_gradient(1e-7)) == 16);  // 478.7
  CHECK(alpha({.scale_cap = 1000}, normal_gradient(1e-7)) == 256);
  CHECK(alpha({}, normal_gradient(sigma, 1e-3F, 512)) == 2);  // 1024 / 512
  CHECK(alpha({}, normal_gradient(sigma, 1e-3F, 1000)) == 1);
  CHECK(alpha({}, normal_gradient(sigma, 1e-3F, 2048)) == 0.5);
  CHECK(alpha({.accumulated_cap = 4096}, normal_gradient(sigma, 1e-3F, 512)) == 4);
}

TEST_CASE("ada_loss: 1 where the gradient is zero, constant or not finite") {
  CHECK(alpha({}, normal_gradient(0, 0)) == 1);
  CHECK(alpha({}, normal_gradient(0, 1e-3F)) == 1);
  CHECK(alpha({}, normal_gradient(NAN, INFINITY)) == 1);
  CHECK(alpha({}, normal_gradient(sigma, INFINITY)) == 1);
  CHECK(alpha({}, normal_gradient(INFINITY, 1)) == 1);
}

TEST_CASE("ada_loss: a layer's own weight gradient knows nothing of its alpha") {
  CHECK(AdaLoss().scale("layer", normal_gradient(sigma, 1e-3F, 32)) ==
        sim::LayerScale{.factor = 4, .applies_to_weights = false, .divisor = 32});
}

TEST_CASE("ada_loss: the form for matrix products") {
  const AdaLossOptions options{.method = AdaLossMethod::approx_range_product};
  CHECK(AdaLoss(options).needs() == sim::LayerNeeds{.moments = true, .magnitudes = true, .weights = true});
  // sigma = 1e-5 * 0.1 * sqrt(200 / 2)
  LayerGradient layer{.gradient = {.standard_deviation = 1e-5, .max_abs = 1},
                      .weights = {.standard_deviation = 0.1, .max_abs = 1},
                      .fan_out = 200};
  CHECK(alpha(options, layer) == 4);
  layer.gradient.max_abs = 150;  // u_max / fan_out / (150 * 1) = 2
  CHECK(alpha(options, layer) == 2);
  layer.weights.max_abs = 0.25;
  CHECK(alpha(options, layer) == 4);
  // sigma = sqrt(3^2 + 4^2) e-5 * sqrt(0.06^2 + 0.08^2) * sqrt(8 / 2)
  const LayerGradient with_means{.gradient = {.mean = -4e-5, .standard_deviation = 3e-5, .max_abs = 1},
                                 .weights = {.mean = 0.08, .standard_deviation = 0.06, .max_abs = 1},
                                 .fan_out = 8};
  CHECK(alpha(without_bounds(options.method), with_means) == doctest::Approx(4.7873061).epsilon(1e-7));
  CHECK(alpha(options, {.gradient = {.standard_deviation = 1e-5, .max_abs = 1}, .fan_out = 8}) == 1);
}

TEST_CASE("ada_loss: the log-normal form lifts the quantile to u_min") {
  const AdaLossOptions options = without_bounds(AdaLossMethod::approx_range_lognormal);
  CHECK(AdaLoss(options).needs() == sim::LayerNeeds{.log_moments = true, .magnitudes = true});
  const auto lognormal = [](double log_mean, double log_deviation, float max_abs = 1) {
    return LayerGradient{
        .gradient = {.log_mean = log_mean, .log_standard_deviation = log_deviation, .max_abs = max_abs}};
  };
  // e^-3.09023 = 0.0454914: the quantiles are 4.54914e-8 and 2^10 times less.
  const double ln_millionth = -13.815510557964274;
  CHECK(alpha(options, lognormal(ln_millionth, 1)) == doctest::Approx(1.31893104).epsilon(1e-8));
  CHECK(alpha(options, lognormal(ln_millionth - 6.931471805599453, 1)) ==
        doctest::Approx(1350.58538).epsilon(1e-8));
  CHECK(alpha({.method = AdaLossMethod::approx_range_lognormal}, lognormal(-14.5, 1)) == 2);  // 2.6
  CHECK(alpha(options, lognormal(ln_millionth, 1, 1e5F)) == doctest::Approx(0.6));
  CHECK(alpha(options, lognormal(10, 1)) == 1);
  CHECK(alpha(options, lognormal(-20, 0)) == 1);  // all of one magnitude
  CHECK(alpha(options, lognormal(NAN, NAN)) == 1);
  CHECK(alpha(options, lognormal(INFINITY, 1)) == 1);
}

TEST_CASE("ada_loss: the range of all products") {
  const AdaLossOptions options = without_bounds(AdaLossMethod::element_wise_range);
  CHECK(AdaLoss(options).needs() == sim::LayerNeeds{.products = true});
  const auto products = [](float smallest, float largest) {
    return LayerGradient{.min_abs_product = smallest, .max_abs_product = largest, .fan_out = 100};
  };
  CHECK(alpha(options, products(0x1p-27F, 1)) == doctest::Approx(6e-8 * 0x1p27));
  CHECK(alpha(options, products(0x1p-27F, 128)) == doctest::Approx(600.0 / 128));
  CHECK(alpha(options, products(1e-3F, 1000)) == doctest::Approx(0.6));
  CHECK(alpha(options, products(1e-3F, 1)) == 1);
  CHECK(alpha(options, products(0, 0)) == 1);
}

TEST_CASE("ada_loss: the range of the extreme magnitudes") {
  const AdaLossOptions options = without_bounds(AdaLossMethod::abs_range);
  CHECK(AdaLoss(options).needs() == sim::LayerNeeds{.magnitudes = true, .weights = true});
  const auto extremes = [](float min_gradient, float max_gradient, float min_weight, float max_weight) {
    return LayerGradient{.gradient = {.min_abs = min_gradient, .max_abs = max_gradient},
                         .weights = {.min_abs = min_weight, .max_abs = max_weight},
                         .fan_out = 2};
  };
  CHECK(alpha(options, extremes(0x1p-20F, 1, 0x1p-8F, 1)) == doctest::Approx(3e-8 * 0x1p28));
  CHECK(alpha(options, extremes(0x1p-20F, 0x1p8F, 0x1p-8F, 0x1p5F)) == doctest::Approx(3e4 / 8192));
  CHECK(alpha(options, extremes(1e-20F, 1e-5F, 1e-5F, 1e-5F)) == doctest::Approx(3e-8 / 1e-15));
  CHECK(alpha(options, extremes(0, 0, 1e-5F, 1)) == 1);
  CHECK(alpha(options, extremes(1e-5F, 1, 0, 0)) == 1);
}

TEST_CASE("ada_loss: a fixed factor is bounded like the others") {
  const auto fixed = [](double scale) {
    return alpha({.method = AdaLossMethod::fixed, .fixed_scale = scale}, normal_gradient(1, 65504));
  };
  CHECK(fixed(8) == 8);
  CHECK(fixed(5) == 4);
  CHECK(fixed(100) == 16);
  CHECK(fixed(0.3) == 0.25);
  CHECK(AdaLoss({.method = AdaLossMethod::fixed}).needs() == sim::LayerNeeds{});
}

TEST_CASE("ada_loss: each layer keeps its alpha for the interval, and bounds it by the scale of the step") {
  AdaLoss scaler({.recompute_interval = 3});
  const auto alpha_at = [&](std::string_view layer, double standard_deviation, double scale = 1) {
    return scaler.scale(layer, normal_gradient(standard_deviation, 1e-3F, scale)).factor;
  };
  CHECK(alpha_at("first", 1) == 1);
  CHECK(alpha_at("first", sigma) == 4);  // another micro-batch of the step
  CHECK(alpha_at("second", sigma / 2) == 8);
  scaler.update({});
  CHECK(alpha_at("first", 1) == 4);
  CHECK(alpha_at("second", 1) == 8);
  scaler.update({});
  CHECK(alpha_at("first", 1, 512) == 2);
  scaler.update({});
  CHECK(alpha_at("first", sigma / 2) == 8);  // computed anew
  CHECK(alpha_at("second", 1) == 1);
}

TEST_CASE("ada_loss: no step is skipped unless asked for") {
  const std::vector<sim::LayerOutcome> bad{{"first", false}, {"second", true}};
  const std::vector<sim::LayerOutcome> clean{{"first", false}};
  CHECK(AdaLoss().update(bad) == sim::Decision::apply);
  CHECK(AdaLoss({.skip_nonfinite = true}).update(bad) == sim::Decision::skip);
  CHECK(AdaLoss({.skip_nonfinite = true}).update(clean) == sim::Decision::apply);
}

TEST_CASE("ada_loss: branches join below its own u_max") {
  const std::vector<sim::BranchGradient> branches{{.scale = 16, .max_abs = 62400},
                                                  {.scale = 2, .max_abs = 1}};
  CHECK(AdaLoss().joined(branches) == 2);
  CHECK(AdaLoss({.u_max = 65504}).joined(branches) == 16);
}

TEST_CASE("ada_loss: a restored state continues as the original") {
  AdaLoss original({.recompute_interval = 4}), resumed({.recompute_interval = 4});
  std::mt19937 random(1);
  const auto gradient = [&random] {
    return normal_gradient(std::ldexp(1.0, -static_cast<int>(random() % 24)), 1,
                           std::ldexp(1.0, static_cast<int>(random() % 12)));
  };
  for (int i = 0; i < 11; ++i) original.scale(i % 2 == 0 ? "a/b" : "c", gradient());
  resumed.restore(original.state());
  CHECK(resumed.state() == original.state());
  for (int i = 0; i < 20; ++i) {
    const LayerGradient next = gradient();
    REQUIRE(original.scale(i % 3 == 0 ? "a/b" : "c", next) == resumed.scale(i % 3 == 0 ? "a/b" : "c", next));
    REQUIRE(resumed.state() == original.state());
  }
}

TEST_CASE("ada_loss: impossible options and states are refused") {
  const AdaLossOptions impossible[] = {{.init_scale = 0},
                                       {.underflow_probability = 0},
                                       {.underflow_probability = 1},
                                       {.u_min = -1},
                                       {.u_min = 1, .u_max = 1},
                                       {.scale_cap = 0},
                                       {.accumulated_cap = NAN},
                                       {.fixed_scale = INFINITY},
                                       {.recompute_interval = 0},
                                       {.method = static_cast<AdaLossMethod>(6)}};
  for (const AdaLossOptions& options : impossible) CHECK_THROWS_AS(AdaLoss{options}, std::invalid_argument);
  CHECK_THROWS_WITH(AdaLoss({.scale_cap = -2}),
                    "scaler 'ada_loss': scale_cap = -2 is not allowed; allowed: numbers in (0, inf)");
  CHECK_THROWS_WITH(AdaLoss({.u_min = 7e4}),
                    "scaler 'ada_loss': u_min = 70000 is not allowed; allowed: below u_max = 60000");

  AdaLoss scaler;
  scaler.scale("layer", normal_gradient(sigma));
  const names::NamedValues before = scaler.state();
  for (const names::NamedValues& state :
       std::vector<names::NamedValues>{{{"alpha", 1}},
                                       {{"layer/alpha", 0}, {"layer/age", 0}},
                                       {{"layer/alpha", 1}},
                                       {{"layer/alpha", 1}, {"layer/age", 0.5}},
                                       {{"layer/scale", 1}}}) {
    CHECK_THROWS_AS(scaler.restore(state), std::invalid_argument);
    CHECK(scaler.state() == before);
  }
}
