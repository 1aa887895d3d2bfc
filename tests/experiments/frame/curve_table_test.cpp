#include "experiments/frame/curve_table.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

using experiments::Point;
using experiments::thinned;

namespace {

/// A noisy descent with a peak and a trough of one step each.
std::vector<Point> long_run(std::size_t steps) {
  std::vector<Point> points;
  for (std::size_t i = 0; i < steps; ++i) {
    const double x = static_cast<double>(i);
    points.push_back({x, 2 + std::sin(0.37 * x * x)});
  }
  points[steps / 3].y = 99;
  points[steps / 2 + 1].y = -99;
  return points;
}

}  // namespace

TEST_CASE("curve table: few points are kept as they are") {
  CHECK(thinned(long_run(2000), 2000).size() == 2000);
  CHECK(thinned({}, 2000).empty());
}

TEST_CASE(
    "curve table: of 100,000 points at most 2,000 are kept, ends and every stretch's extremes among them") {
  const std::vector<Point> points = long_run(100'000), kept = thinned(points, 2000);
  CHECK(kept.size() <= 2000);
  CHECK(kept.size() > 1900);
  CHECK(std::ranges::is_sorted(kept, {}, &Point::x));
  CHECK(kept.front().x == 0);
  CHECK(kept.back().x == 99'999);
  for (const Point& point : kept) CHECK(points[static_cast<std::size_t>(point.x)].y == point.y);
  constexpr double stretch = 101;  // (100,000 - 2) / 999 points, rounded up
  for (const Point& point : points) {
    const auto begin = std::ranges::lower_bound(kept, point.x - stretch, {}, &Point::x),
               end = std::ranges::upper_bound(kept, point.x + stretch, {}, &Point::x);
    const auto [low, high] =
        std::minmax_element(begin, end, [](const Point& a, const Point& b) { return a.y < b.y; });
    REQUIRE(low->y <= point.y);
    REQUIRE(high->y >= point.y);
  }
}

TEST_CASE("curve table: a stretch keeps finite values, and a gap where it has none") {
  constexpr double nan = std::numeric_limits<double>::quiet_NaN();
  std::vector<Point> points = long_run(100);
  for (std::size_t i = 10; i < 20; ++i) points[i].y = nan;
  for (std::size_t i = 45; i < 95; ++i) points[i].y = nan;  // a stretch is some 20 points
  const std::vector<Point> kept = thinned(points, 12);
  CHECK(kept.size() <= 12);
  CHECK(std::ranges::any_of(kept, [](const Point& p) { return std::isnan(p.y) && p.x >= 45 && p.x < 95; }));
  CHECK(std::ranges::none_of(kept, [](const Point& p) { return std::isnan(p.y) && p.x < 40; }));
}

TEST_CASE("curve table: excesses are of the reference's own, over the steps that both have") {
  const std::vector<Point> excess = experiments::excess_percent({{0, 3}, {1, 1}, {2, 5}}, {{0, 2}, {1, 2}});
  REQUIRE(excess.size() == 2);
  CHECK(excess[0].y == 50);
  CHECK(excess[1].y == -50);
}

TEST_CASE("curve table: excesses of long runs are those of the means of 50 stretches") {
  std::vector<Point> curve, reference;
  for (int step = 0; step < 120; ++step) {
    curve.push_back({static_cast<double>(step), step % 2 == 0 ? 1.0 : 5.0});
    reference.push_back({static_cast<double>(step), step % 2 == 0 ? 3.0 : 1.0});
  }
  const std::vector<Point> excess = experiments::excess_percent(curve, reference);
  REQUIRE(excess.size() == 50);
  CHECK(excess[0].x == 0.5);
  CHECK(excess[0].y == 50);  // 1 + 5 over 3 + 1
  CHECK(excess[49].x == 118);
  CHECK(excess[49].y == doctest::Approx(100 * (11.0 / 5 - 1)));  // steps 117 to 119
  curve.resize(53);                                              // a run that was ended
  const std::vector<Point> ended = experiments::excess_percent(curve, reference);
  REQUIRE(ended.size() == 23);
  CHECK(ended[21].x == excess[21].x);
  CHECK(ended[22].x == 52);  // step 52 alone
  CHECK(experiments::stretch_text(51) == ", each point the mean of 1 or 2 steps");
  CHECK(experiments::stretch_text(120) == ", each point the mean of 2 or 3 steps");
  CHECK(experiments::stretch_text(500) == ", each point the mean of 10 steps");
  CHECK(experiments::stretch_text(50).empty());
}
