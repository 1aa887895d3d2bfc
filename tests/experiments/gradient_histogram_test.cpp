#include <doctest/doctest.h>

#include <cmath>
#include <string>
#include <vector>

#include "experiments/gradient_histogram/paper3.h"
#include "experiments/gradient_histogram/paper_figures.h"

namespace gradient_histogram = experiments::gradient_histogram;
using gradient_histogram::Bin;
using gradient_histogram::Pooled;

namespace {

Pooled pooled_of(const std::vector<float>& values) {
  Pooled pooled;
  pooled.add(values);
  return pooled;
}

/// By the definition, value by value.
double percent_within(const std::vector<float>& values, double scale, const Bin& bin) {
  int count = 0;
  for (const float value : values) {
    const double magnitude = std::fabs(value * scale);
    count += magnitude >= std::ldexp(1.0, bin.lower) && magnitude < std::ldexp(1.0, bin.upper);
  }
  return 100.0 * count / static_cast<double>(values.size());
}

}  // namespace

TEST_CASE("gradient_histogram: bars are two octaves wide below 2^-24 and one above, at every scale") {
  std::vector<float> values{0, 0, 0x1p-24f, -0x1.fffffep-25f, 0x1p-26f, 0x1.8p-27f, 0x1p-23f};
  for (int i = 0; i < 500; ++i)
    values.push_back(std::ldexp(1.0f + 0.001f * static_cast<float>(i), -40 + i % 37));
  const Pooled pooled = pooled_of(values);
  for (const int scale_log2 : {0, 1, 3, 15}) {
    CAPTURE(scale_log2);
    const std::vector<Bin> bins = gradient_histogram::paper_bins(pooled.exponents, scale_log2);
    double sum = 100 * pooled.fraction_zero();
    for (std::size_t i = 0; i < bins.size(); ++i) {
      CAPTURE(bins[i].lower);
      CHECK(bins[i].upper - bins[i].lower == (bins[i].lower < -24 ? 2 : 1));
      if (i > 0) CHECK(bins[i].lower == bins[i - 1].upper);
      CHECK(bins[i].percent == doctest::Approx(percent_within(values, std::ldexp(1.0, scale_log2), bins[i])));
      sum += bins[i].percent;
    }
    CHECK(sum == doctest::Approx(100));
  }
  CHECK(gradient_histogram::paper_bins(pooled_of({0, 0}).exponents, 0).empty());
}

TEST_CASE("gradient_histogram: a detector's figure names what its loss is divided by") {
  using gradient_histogram::normaliser_sentence;
  const auto says = [](const char* model, const char* words) {
    return normaliser_sentence(model).find(words) != std::string::npos;
  };
  CHECK(says("ssd:normaliser=0", "divided by the matched anchors (normaliser 0), as in SSD."));
  CHECK(says("ssd:channels=4:normaliser=1", "divided by all anchors (normaliser 1), where SSD divides by"));
  CHECK(says("ssd", "divided by all values of the heads (normaliser 2)"));  // the default
  CHECK(normaliser_sentence("lstm:width=256").empty());
}

TEST_CASE("gradient_histogram: pooled tensors add up as their values do") {
  const std::vector<float> first{0, 0x1p-25f, 0x1.8p-25f, 1, 70000}, second{-0x1p-30f, 2};
  Pooled sum = pooled_of(first);
  sum += pooled_of(second);
  CHECK(sum.fraction_zero() == doctest::Approx(1.0 / 7));
  CHECK(sum.fraction_flushed(0) == doctest::Approx(2.0 / 6));  // 2^-25 and 2^-30
  CHECK(sum.fraction_flushed(6) == doctest::Approx(0));        // 2^-24 is left of 2^-30
  CHECK(sum.fraction_overflow(0) == doctest::Approx(1.0 / 6));
  CHECK(sum.fraction_subnormal_at_scale_1() == doctest::Approx(1.0 / 6));
  CHECK(sum.max_abs_log2() == doctest::Approx(std::log2(70000.0)));
  CHECK(sum.percent_at(-25) == doctest::Approx(200.0 / 7));
  CHECK(sum.square_at(-25) == 0x1p-50 + 0x1.8p-25 * 0x1.8p-25);
  CHECK(sum.square_at(-30) == 0x1p-60);
  CHECK(sum.square_at(-149) == 0);
  CHECK(sum.square_at(16) == 70000.0 * 70000.0);
  const double whole = 0x1p-50 + 0x1.8p-25 * 0x1.8p-25 + 1 + 70000.0 * 70000.0 + 0x1p-60 + 4;
  CHECK(sum.norm_share_flushed() == doctest::Approx(std::sqrt((0x1p-50 + 0x1p-60) / whole)));
}
