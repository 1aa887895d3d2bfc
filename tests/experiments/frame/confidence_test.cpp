#include "experiments/frame/confidence.h"

#include <doctest/doctest.h>

#include <boost/math/distributions/students_t.hpp>
#include <cmath>
#include <limits>
#include <vector>

using experiments::estimate;
using experiments::Estimate;
using experiments::estimate_difference;
using experiments::estimate_relative_difference;
using experiments::guessing_bound;
using experiments::percent_with_interval;
using experiments::signed_text;
using experiments::signed_with_interval;
using experiments::t_quantile_95;
using experiments::with_interval;

TEST_CASE("confidence: the quantiles of Student's t are those of the tables and of Boost.Math") {
  // Two-sided 5 %, as tables print them.
  const std::pair<int, double> table[] = {{1, 12.706}, {2, 4.303},  {3, 3.182},  {4, 2.776},  {5, 2.571},
                                          {9, 2.262},  {10, 2.228}, {30, 2.042}, {120, 1.980}};
  for (const auto& [degrees, quantile] : table) {
    INFO(degrees);
    CHECK(std::abs(t_quantile_95(degrees) - quantile) < 0.0005);
  }
  for (int degrees = 1; degrees <= 999; ++degrees) {
    INFO(degrees);
    const double expected = boost::math::quantile(boost::math::students_t(degrees), 0.975);
    CHECK(std::abs(t_quantile_95(degrees) / expected - 1) < 1e-12);
  }
}

TEST_CASE("confidence: mean, deviation and interval by hand") {
  const std::vector<double> values{1, 2, 3, 4, 10};
  const Estimate five = estimate(values);
  CHECK(five.count == 5);
  CHECK(five.mean == 4);
  CHECK(five.deviation == doctest::Approx(std::sqrt(50.0 / 4)).epsilon(1e-15));
  CHECK(five.half_width == doctest::Approx(2.7764451051977987 * std::sqrt(50.0 / 4 / 5)).epsilon(1e-12));
  CHECK(five.lower() == five.mean - five.half_width);
  CHECK(five.upper() == five.mean + five.half_width);

  const std::vector<double> one{3};
  CHECK(estimate(one).mean == 3);
  CHECK(std::isnan(estimate(one).deviation));
  CHECK(std::isnan(estimate(one).half_width));

  const std::vector<double> diverged{1, std::numeric_limits<double>::quiet_NaN()};
  CHECK(std::isnan(estimate(diverged).mean));
  CHECK(std::isnan(estimate(diverged).half_width));
}

TEST_CASE("confidence: an estimate as text has its 95 % interval, not its deviation") {
  // t for one degree of freedom is 12.706; the deviation of {1, 2} is sqrt(1/2).
  CHECK(with_interval(estimate(std::vector<double>{1, 2}), 1, 3) == "1.500 ± 6.353");
  CHECK(with_interval(estimate(std::vector<double>{0.01, 0.02}), 100, 1) == "1.5 ± 6.4");
  CHECK(with_interval(estimate(std::vector<double>{0.5}), 1, 2) == "0.50");
  CHECK(with_interval(estimate(std::vector<double>{1, std::numeric_limits<double>::quiet_NaN()}), 1, 2) ==
        "-");
}

TEST_CASE("confidence: what pairs share does not widen the interval of their difference") {
  const std::vector<double> first{10, 20, 60}, second{11, 21, 61};
  const Estimate difference = estimate_difference(first, second);
  CHECK(difference.mean == 1);
  CHECK(difference.deviation == 0);
  CHECK(difference.half_width == 0);
  CHECK(estimate(first).half_width > 10);
}

TEST_CASE("confidence: a relative difference is the mean of the pairs' own ratios") {
  // Twice as large in each pair, however far the pairs lie apart: no spread is left.
  const std::vector<double> first{1, 2, 6}, doubled{2, 4, 12};
  CHECK(estimate_relative_difference(first, doubled).mean == 1);
  CHECK(estimate_relative_difference(first, doubled).half_width == 0);
  // One more in each pair: +1, +1/2, +1/4, where differences over the mean of the first have no spread.
  const Estimate ratios =
      estimate_relative_difference(std::vector<double>{1, 2, 4}, std::vector<double>{2, 3, 5});
  CHECK(ratios.mean == doctest::Approx(1.75 / 3).epsilon(1e-15));
  CHECK(ratios.half_width == doctest::Approx(4.302652729911275 * std::sqrt(0.4375 / 3 / 3)).epsilon(1e-9));
}

TEST_CASE("confidence: signed texts have no sign where only the sign would be left") {
  CHECK(signed_text(0.123, 2) == "+0.12");
  CHECK(signed_text(-0.123, 2) == "-0.12");
  CHECK(signed_text(0, 1) == "0.0");
  CHECK(signed_text(-0.04, 1) == "0.0");
  CHECK(signed_text(0.04, 1) == "0.0");
  CHECK(signed_with_interval(estimate(std::vector<double>{-0.001, 0, 0.001}), 1, 1) == "0.0 [0.0, 0.0]");
  CHECK(signed_with_interval(estimate(std::vector<double>{1, 2, 3}), 1, 1) == "+2.0 [-0.5, 4.5]");
  CHECK(signed_with_interval(estimate(std::vector<double>{1, 2, 3}), 100, 0, -0.25) == "+200 [-25, 448]");
  // Two values are 12.7 standard errors of an interval: no evidence, and not shown.
  CHECK(signed_with_interval(estimate(std::vector<double>{1, 2}), 1, 1) == "+1.5");
}

TEST_CASE("confidence: no interval of shares leaves what shares can be") {
  CHECK(percent_with_interval(std::vector<double>{0.5, 0.51, 0.52}, 1) == "51.0 ± 2.5");
  CHECK(percent_with_interval(std::vector<double>{0.7, 0.9, 0.95}, 1) == "85.0 (70.0 to 95.0)");
  CHECK(percent_with_interval(std::vector<double>{0, 0.01, 0.1}, 1) == "3.7 (0.0 to 10.0)");
  CHECK(percent_with_interval(std::vector<double>{0.96}, 1) == "96.0");
  CHECK(percent_with_interval(std::vector<double>{0.96, std::nan("")}, 1) == "-");
}

TEST_CASE("confidence: what guessing reaches") {
  CHECK(guessing_bound(0.1, 900) == doctest::Approx(0.13).epsilon(1e-12));  // sqrt(0.1 0.9 / 900) is 0.01
}

TEST_CASE("confidence: two values are judged by no interval, nor are values that are all the same") {
  const auto of = [](std::vector<double> values) { return estimate(values); };
  CHECK(!of({0.05}).is_judged());
  CHECK(!of({0.05, 0.06}).is_judged());
  CHECK(of({0.05, 0.06, 0.05}).is_judged());
  CHECK(!of({0.05, 0.05, 0.05}).is_judged());
  CHECK(!of({0, 0, 0}).is_judged());
  // 0.05 each, but for how the differences round.
  const Estimate rounded =
      estimate_difference(std::vector<double>{0.1, 0.75, 0.9}, std::vector<double>{0.15, 0.8, 0.95});
  CHECK(rounded.half_width > 0);
  CHECK(!rounded.is_judged());
  CHECK(!of({1, 2, std::numeric_limits<double>::quiet_NaN()}).is_judged());
  CHECK(of({5, 6, 5}).excludes_zero());
  CHECK(of({-5, -6, -5}).excludes_zero());
  CHECK(!of({-5, 6, 5}).excludes_zero());
}
