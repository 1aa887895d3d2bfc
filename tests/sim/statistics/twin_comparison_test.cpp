#include "sim/statistics/twin_comparison.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "sim/ops/batch_norm.h"
#include "sim/ops/linear.h"
#include "sim/ops/softmax_cross_entropy.h"
#include "tests/sim/training_runs.h"

using sim::Tensor;

TEST_CASE("twin comparison: every count and sum on a tensor small enough to work out by hand") {
  const float inf = std::numeric_limits<float>::infinity();
  // S = 4:              exact     flushed     subnormal  overflow  zero in both  NaN where the twin is zero
  const std::vector<float> twin{0.5f, 0x1p-28f, 0x1p-20f, 30000.0f, 0.0f, 0.0f};
  const std::vector<float> run{2.0f, 0.0f, 0x1p-18f, inf, 0.0f, std::numeric_limits<float>::quiet_NaN()};
  fp16::RoundingCounts rounding;
  rounding.flushed = 1;
  const sim::TwinComparison c = sim::compare(Tensor::from({6}, run), 4, Tensor::from({6}, twin), rounding);
  CHECK(c.total == 6);
  CHECK(c.nonzero == 4);
  CHECK(c.flushed == 1);
  CHECK(c.flushed_at_cast == 1);
  CHECK(c.subnormal == 1);
  CHECK(c.overflow == 1);
  CHECK(c.nonfinite == 2);
  CHECK(c.nan == 1);
  CHECK(c.infinite() == 1);
  CHECK(c.native_zero() == 2);
  CHECK(c.same_sign == 3);  // an infinity has a sign, what was flushed has none
  CHECK(c.sign_agreement() == 0.75);
  CHECK(c.fraction_flushed() == 0.25);
  CHECK(c.twin_max_abs == 30000);
  CHECK(c.octaves_alive() == doctest::Approx(std::log2(30000.0) + 25));
  CHECK(!std::isfinite(c.relative_error()));
}

TEST_CASE("twin comparison: element i is added to partial sum i mod 8, whatever the length") {
  const sim::RandomStream random(5, "twin comparison");
  const float inf = std::numeric_limits<float>::infinity();
  for (const std::size_t size : {1, 7, 8, 9, 2047, 2048, 2057, 5003}) {
    std::vector<float> twin(size), run(size);
    for (std::size_t i = 0; i < size; ++i) {
      twin[i] = random.below(i, 9) == 0 ? 0 : std::ldexp(random.normal(i), -static_cast<int>(i % 30));
      const std::uint64_t fate = random.below(size + i, 12);
      run[i] = fate == 0 ? 0 : fate == 1 ? inf : fate == 2 ? -inf : std::ldexp(twin[i] * (1 + 0x1p-11f), 3);
    }
    if (size % 2 == 0)
      std::ranges::replace_if(
          run, [](float x) { return !std::isfinite(x); }, 1.0f);
    sim::TwinComparison expected{.total = size};
    std::array<std::array<double, 8>, 5> sums{};
    for (std::size_t i = 0; i < size; ++i) {
      const double t = twin[i], r = run[i];
      expected.nonzero += t != 0;
      expected.flushed += t != 0 && r == 0;
      expected.subnormal += t != 0 && r != 0 && std::abs(r) < 0x1p-14;
      expected.overflow += t != 0 && std::isinf(r);
      expected.nonfinite += std::isinf(r);
      expected.same_sign += t * r > 0;
      expected.twin_max_abs = std::max(expected.twin_max_abs, std::abs(t));
      const double terms[] = {t * t, (r / 8 - t) * (r / 8 - t), r == 0 ? t * t : 0, r / 8 * (r / 8),
                              r / 8 * t};
      for (std::size_t k = 0; k < 5; ++k) sums[k][i % 8] += terms[k];
    }
    const auto total = [&](std::size_t k) { return std::accumulate(sums[k].begin(), sums[k].end(), 0.0); };
    const sim::TwinComparison c = sim::compare(Tensor::from({size}, run), 8, Tensor::from({size}, twin), {});
    INFO(size);
    CHECK(c.total == size);
    CHECK(c.nonzero == expected.nonzero);
    CHECK(c.flushed == expected.flushed);
    CHECK(c.subnormal == expected.subnormal);
    CHECK(c.overflow == expected.overflow);
    CHECK(c.nonfinite == expected.nonfinite);
    CHECK(c.nan == 0);
    CHECK(c.same_sign == expected.same_sign);
    CHECK(c.twin_max_abs == expected.twin_max_abs);
    CHECK(c.twin_square == total(0));
    CHECK(c.flushed_square == total(2));
    if (size % 2 != 0) continue;  // the others have infinities in these sums
    CHECK(c.error_square == total(1));
    CHECK(c.run_square == total(3));
    CHECK(c.product == total(4));
  }
}

TEST_CASE("twin comparison: norms add up over tensors") {
  const auto compare = [](std::vector<float> run, std::vector<float> twin) {
    return sim::compare(Tensor::from({run.size()}, run), 2, Tensor::from({twin.size()}, twin), {});
  };
  sim::TwinComparison total = compare({6, 0}, {3, 4});
  CHECK(total.relative_error() == doctest::Approx(4.0 / 5));
  CHECK(total.norm_share_flushed() == doctest::Approx(4.0 / 5));
  CHECK(total.cosine() == doctest::Approx(3.0 / 5));
  total += compare({0, 24}, {0, 12});
  CHECK(total.relative_error() == doctest::Approx(4.0 / 13));
  CHECK(total.nonzero == 3);
  const sim::TwinComparison nothing = compare({0}, {0});
  CHECK(nothing.relative_error() == 0);
  CHECK(nothing.cosine() == 0);
  CHECK(nothing.octaves_alive() == -std::numeric_limits<double>::infinity());
}

TEST_CASE("twin comparison: each site is divided by what its gradient is a multiple of") {
  sim::SiteGradients run, twin;
  for (const auto& [gradient, scale] : {std::pair{12.0f, 4.0}, {12.0f, 8.0}}) {
    run.gradients.push_back(Tensor::from({1}, std::vector<float>{gradient}));
    run.scales.push_back(scale);
    run.rounding.emplace_back();
    twin.gradients.push_back(Tensor::from({1}, std::vector<float>{3}));
    twin.scales.push_back(1);
  }
  const std::vector<sim::GradientSite> names(2, {"layer", sim::GradientSite::Kind::activation, {0}});
  const std::vector<sim::TwinComparison> sites = sim::compare_sites(names, run, twin);
  REQUIRE(sites.size() == 2);
  CHECK(sites[0].error_square == 0);
  CHECK(sites[1].error_square == 2.25);
  CHECK(sim::total_of(sites).relative_error() == doctest::Approx(1.5 / std::sqrt(18.0)));
}

TEST_CASE("twin comparison: signs") {
  const Tensor run = Tensor::from({6}, std::vector<float>{1, -1, 1, -1, -0.0f, 5});
  const Tensor twin = Tensor::from({6}, std::vector<float>{2, -3, -1, 1, -1, 0});
  const sim::TwinComparison c = sim::compare(run, 1, twin, {});
  CHECK(c.same_sign == 2);
  CHECK(c.sign_agreement() == doctest::Approx(2.0 / 5));
  CHECK(c.twin_norm() == doctest::Approx(4));
  CHECK(c.run_norm() == doctest::Approx(std::sqrt(29.0)));
}

namespace {

struct Measured {
  std::vector<sim::GradientSite> sites;
  std::vector<sim::TwinComparison> comparisons;
};

/// One batch after a few steps, against a twin of `twin_format`.
Measured measure(const sim::ModelRow& row, const std::string& policy, fp16::Format twin_format) {
  training_runs::Run run = training_runs::run(
      {.model = training_runs::small_spec(row.name), .policy = "fp32", .scaler = "none"}, 10);
  const sim::PrecisionPolicy chosen = sim::find_precision_policy(policy);
  const sim::RecordedStep step =
      sim::record_step(*run.model, run.trainer.state(), run.trainer.next_batch(), chosen);
  const sim::Tape& tape = step.tape;
  return {tape.sites(),
          sim::compare_sites(tape.sites(),
                             tape.backward(step.forward.loss, {.loss_scale = 64, .count_rounding = true}),
                             tape.backward(step.forward.loss, {.twin = twin_format}))};
}

bool is_key_bias(const sim::GradientSite& site) {
  return site.name.ends_with("key.bias");
}

}  // namespace

TEST_CASE(
    "twin comparison: rounding noise is what attention key biases have, and nothing else in any model") {
  for (const sim::ModelRow& row : sim::models()) {
    for (const std::string policy : {"fp32", "amp", "bf16", "fp16", "O1", "O2", "O3"}) {
      for (const fp16::Format twin : {fp16::binary32, fp16::binary64}) {
        const Measured measured = measure(row, policy, twin);
        for (std::size_t site = 0; site < measured.sites.size(); ++site) {
          INFO(row.name, " ", policy, " ", measured.sites[site].name);
          CHECK(measured.comparisons[site].is_rounding_noise == is_key_bias(measured.sites[site]));
        }
      }
    }
  }
}

TEST_CASE("twin comparison: a bias before batch norm is rounding noise") {
  const sim::PrecisionPolicy& policy = sim::find_precision_policy("amp");
  const Tensor weight = normal_tensor({8, 16}, "weight"), bias = normal_tensor({8}, "bias"),
               gain = normal_tensor({8}, "gain"), shift = normal_tensor({8}, "shift");
  Tensor mean = Tensor::zeros({8}, fp16::binary32), variance = Tensor::zeros({8}, fp16::binary32);
  sim::Tape tape(policy);
  const sim::Variable x = tape.constant(normal_tensor({32, 16}, "x"));
  const sim::Variable w = tape.parameter("layer.weight", weight), b = tape.parameter("layer.bias", bias);
  const sim::Variable y = tape.apply(sim::linear, {x, w, b}, "layer");
  const sim::Variable normed = tape.apply(
      sim::batch_norm, {y, tape.parameter("norm.weight", gain), tape.parameter("norm.bias", shift)}, {},
      sim::BatchNormOptions{.running_mean = &mean, .running_variance = &variance});
  const sim::Variable loss =
      tape.apply(sim::softmax_cross_entropy, {normed}, {},
                 sim::SoftmaxCrossEntropyOptions{.labels = std::vector<std::int32_t>(32, 3)});
  const std::vector<sim::TwinComparison> sites =
      sim::compare_sites(tape.sites(), tape.backward(loss, {.loss_scale = 64, .count_rounding = true}),
                         tape.backward(loss, {.twin = fp16::binary32}));
  for (std::size_t site = 0; site < sites.size(); ++site) {
    INFO(tape.sites()[site].name);
    CHECK(sites[site].is_rounding_noise == (tape.sites()[site].name == "layer.bias"));
  }
}

TEST_CASE("twin comparison: totals leave rounding noise out, but for what is not finite") {
  const auto compare = [](std::vector<float> run, std::vector<float> twin) {
    return sim::compare(Tensor::from({run.size()}, run), 1, Tensor::from({twin.size()}, twin), {});
  };
  sim::TwinComparison noise =
      compare({-1, std::numeric_limits<float>::infinity(), std::nanf("")}, {1e-9f, 1e-9f, 1e-9f});
  noise.is_rounding_noise = true;
  const sim::TwinComparison total = sim::total_of({compare({3, 4}, {3, 4}), noise});
  CHECK(total.relative_error() == 0);
  CHECK(total.cosine() == doctest::Approx(1));
  CHECK(total.nonzero == 2);
  CHECK(total.nonfinite == 2);
  CHECK(total.nan == 1);
}
