#include "sim/tape/gradients.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "tests/sim/ops/evaluation.h"

namespace {

using sim::GradientSite;
using sim::Tensor;

constexpr float infinity = std::numeric_limits<float>::infinity();
constexpr float not_a_number = std::numeric_limits<float>::quiet_NaN();

struct Site {
  GradientSite::Kind kind;
  Tensor gradient;
  double scale = 1;
};

sim::ScaledGradients gradients_of(std::vector<Site> sites) {
  sim::ScaledGradients gradients;
  for (Site& site : sites) {
    const std::size_t index = gradients.sites.size();
    gradients.sites.push_back({"site" + std::to_string(index), site.kind, {index}});
    gradients.values.gradients.push_back(std::move(site.gradient));
    gradients.values.scales.push_back(site.scale);
  }
  return gradients;
}

using enum GradientSite::Kind;
using Values = std::vector<double>;

}  // namespace

TEST_CASE("gradients: accumulation rounds each sum to the gradient's format, and leaves activations alone") {
  const auto gradients = [](float a, float b, float c) {
    return gradients_of({{weight, tensor_of({2}, {a, b}, fp16::binary16)},
                         {activation, tensor_of({1}, {c}, fp16::binary16)},
                         {weight, tensor_of({2}, {a, b})}});
  };
  sim::ScaledGradients sum = gradients(2048, 60000, 1);
  sim::accumulate(sum.sites, sum.values, gradients(1, 60000, 5).values);
  CHECK(values_of(sum.values.gradients[0]) == Values{2048, infinity});
  CHECK(values_of(sum.values.gradients[1]) == Values{1});
  CHECK(values_of(sum.values.gradients[2]) == Values{2049, 120000});
  sim::accumulate(sum.sites, sum.values, gradients(3, -infinity, 5).values);
  CHECK(sum.values.gradients[0].element(0) == 2052);  // 2051 is a tie, to even
  CHECK(std::isnan(sum.values.gradients[0].element(1)));
}

TEST_CASE("gradients: unscaling multiplies parameters by the inverse of each one's own scale") {
  const sim::ScaledGradients scaled = gradients_of({{weight, tensor_of({2}, {8, -3}, fp16::binary16), 4},
                                                    {activation, tensor_of({1}, {8}, fp16::binary16), 4},
                                                    {weight, tensor_of({1}, {8}), 32}});
  const sim::Gradients gradients = sim::unscale(scaled);
  REQUIRE(gradients.parameters.size() == 2);
  CHECK(values_of(gradients.parameters[0]) == Values{2, -0.75});
  CHECK(values_of(gradients.parameters[1]) == Values{0.25});
  CHECK(gradients.parameters[0].format() == fp16::binary32);
  CHECK(values_of(sim::unscale(scaled, {.divisor_ratio = 2}).parameters[0]) == Values{1, -0.375});

  // PyTorch rounds the inverse to binary32 first.
  const sim::ScaledGradients by_3 = gradients_of({{weight, tensor_of({1}, {7}), 3}});
  CHECK(sim::unscale(by_3).parameters[0].element(0) == 7 * (1.0f / 3));
  CHECK(7 * (1.0f / 3) != 7.0f / 3);
}

TEST_CASE("gradients: unscaling rounds once to the format asked for, wider gradients keep theirs") {
  const sim::ScaledGradients scaled =
      gradients_of({{weight, tensor_of({4}, {0x1p-20f, 3 * 0x1p-15f, 1, 60000}, fp16::binary16), 1024},
                    {weight, tensor_of({1}, {1 + 0x1p-20f}), 1024}});
  const sim::Gradients in_half = sim::unscale(scaled, {.format = fp16::binary16});
  CHECK(values_of(in_half.parameters[0]) == Values{0, 2 * 0x1p-24, 0x1p-10, 58.59375});
  CHECK(in_half.parameters[1].format() == fp16::binary32);
  CHECK(in_half.parameters[1].element(0) == (1 + 0x1p-20) / 1024);
  const sim::Gradients wide = sim::unscale(scaled, {.format = fp16::binary64});
  CHECK(values_of(wide.parameters[0]) == Values{0x1p-30, 3 * 0x1p-25, 0x1p-10, 58.59375});
}

TEST_CASE("gradients: one thread and two unscale and accumulate alike") {
  const auto large = [](std::string_view purpose) {
    return gradients_of({{weight, normal_tensor({100'003}, purpose, fp16::binary16), 8}});
  };
  sim::ScaledGradients one = large("a"), two = large("a");
  sim::accumulate(one.sites, one.values, large("b").values, 1);
  sim::accumulate(two.sites, two.values, large("b").values, 2);
  CHECK(same_bytes(one.values.gradients[0], two.values.gradients[0]));
  const sim::UnscaleOptions threaded{.format = fp16::binary16, .threads = 2};
  CHECK(same_bytes(sim::unscale(one, {.format = fp16::binary16}).parameters[0],
                   sim::unscale(two, threaded).parameters[0]));
}

TEST_CASE("gradients: the summary tells of weights what is largest and whether all is finite") {
  const auto summary = [](float of_weight, float of_activation, fp16::Format format) {
    return sim::summarise(gradients_of({{weight, tensor_of({3}, {1, -of_weight, 0.5f}, format)},
                                        {activation, tensor_of({1}, {of_activation}, format)}}),
                          nullptr);
  };
  for (const fp16::Format format : {fp16::binary16, fp16::bfloat16, fp16::binary32, fp16::binary64}) {
    INFO(fp16::name_of(format));
    CHECK(summary(8, 100, format).max_abs == 8);
    CHECK(!summary(8, infinity, format).found_nonfinite);
    for (const float bad : {infinity, -infinity, not_a_number}) {
      CHECK(summary(bad, 0, format).found_nonfinite);
      CHECK(summary(bad, 0, format).max_abs == 1);  // of what is finite
    }
    CHECK(summary(0.25f, 0, format).max_abs == 1);
    CHECK(summary(8, 0, format).exponents == nullptr);
    CHECK(sim::has_nonfinite(tensor_of({2}, {1, not_a_number}, format)));
    CHECK(sim::has_nonfinite(tensor_of({2}, {-infinity, 1}, format)));
    CHECK(!sim::has_nonfinite(tensor_of({2}, {-1, 1}, format)));
  }
  Tensor huge({2}, fp16::binary64);
  huge.elements<double>()[0] = 1e300;
  huge.elements<double>()[1] = 1e-300;
  const sim::GradientSummary rounded = sim::summarise(gradients_of({{weight, huge}}), nullptr);
  CHECK(!rounded.found_nonfinite);
  CHECK(rounded.max_abs == std::numeric_limits<float>::max());
}

TEST_CASE("gradients: the summary adds exponents of all sites, whatever their format") {
  std::vector<Site> sites;
  for (const fp16::Format format : {fp16::binary16, fp16::bfloat16, fp16::binary32, fp16::binary64})
    sites.push_back(
        {format == fp16::binary32 ? activation : weight, tensor_of({4}, {1, -1.5f, 0, 0x1p-14f}, format)});
  fp16::ExponentHistogram exponents;
  const sim::GradientSummary summary = sim::summarise(gradients_of(std::move(sites)), &exponents);
  CHECK(summary.exponents == &exponents);
  CHECK(exponents.total() == 16);
  CHECK(exponents.zero() == 4);
  CHECK(exponents.octave(0).total == 8);
  CHECK(exponents.octave(0).powers_of_two == 4);
  CHECK(exponents.octave(-14).total == 4);
}

TEST_CASE("gradients: clipping sees all tensors together, and rounds 16-bit ones back") {
  sim::Gradients gradients;
  gradients.parameters.push_back(tensor_of({2}, {3, 0}, fp16::binary16));
  gradients.parameters.push_back(tensor_of({1}, {-4}));
  const sim::ClippingResult none = sim::clip(gradients, {});
  CHECK(none.norm.norm == 0);
  CHECK(none.norm.coefficient == 1);
  CHECK(sim::clip(gradients, {.max_norm = 100}).norm.norm == 5);
  CHECK(values_of(gradients.parameters[0]) == Values{3, 0});

  const sim::ClippingResult both = sim::clip(gradients, {.max_norm = 1, .max_value = 0.625});
  CHECK(both.norm.norm == 5);
  CHECK(both.norm.coefficient == 1 / (5 + 1e-6));
  CHECK(both.clipped_values == 1);  // 0.8, after the norm had made it so
  CHECK(gradients.parameters[0].format() == fp16::binary16);
  CHECK(gradients.parameters[0].element(0) == float(fp16::half(3 * float(1 / (5 + 1e-6)))));
  CHECK(gradients.parameters[1].element(0) == -0.625);

  sim::Gradients mixed;
  mixed.parameters.push_back(tensor_of({1}, {3}, fp16::binary64));
  mixed.parameters.push_back(tensor_of({1}, {4}));
  CHECK(sim::clip(mixed, {.max_norm = 2.5}).norm.norm == 5);
  CHECK(mixed.parameters[0].element(0) == 3 * (2.5 / (5 + 1e-6)));
  CHECK(mixed.parameters[1].element(0) == static_cast<float>(4 * (2.5 / (5 + 1e-6))));
  CHECK_THROWS_WITH_AS(sim::clip(mixed, {.max_norm = 0}), doctest::Contains("max_norm"),
                       std::invalid_argument);
}
