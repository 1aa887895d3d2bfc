#include "sim/models/anchors.h"

#include <doctest/doctest.h>

#include <cmath>
#include <numeric>

namespace {

using sim::Anchor;
using sim::Box;

void check_equal(const Anchor& anchor, const Anchor& expected) {
  CHECK(anchor.x == doctest::Approx(expected.x));
  CHECK(anchor.y == doctest::Approx(expected.y));
  CHECK(anchor.width == doctest::Approx(expected.width));
  CHECK(anchor.height == doctest::Approx(expected.height));
}

}  // namespace

TEST_CASE("anchors: cells row by row, in each squares first, then aspects 2, 1/2, 3, 1/3 of the same area") {
  const std::vector<Anchor> anchors = sim::anchors_of_map(2, 6, 0.2f, 0.8f);
  REQUIRE(anchors.size() == 24);
  const float r2 = std::sqrt(2.0f), r3 = std::sqrt(3.0f);
  const Anchor first_cell[]{{0.25f, 0.25f, 0.2f, 0.2f},           {0.25f, 0.25f, 0.4f, 0.4f},
                            {0.25f, 0.25f, 0.2f * r2, 0.2f / r2}, {0.25f, 0.25f, 0.2f / r2, 0.2f * r2},
                            {0.25f, 0.25f, 0.2f * r3, 0.2f / r3}, {0.25f, 0.25f, 0.2f / r3, 0.2f * r3}};
  for (std::size_t i = 0; i < 6; ++i) {
    INFO(i);
    check_equal(anchors[i], first_cell[i]);
  }
  check_equal(anchors[6], {0.75f, 0.25f, 0.2f, 0.2f});   // to the right
  check_equal(anchors[12], {0.25f, 0.75f, 0.2f, 0.2f});  // below
  const std::vector<Anchor> one_each = sim::anchors_of_map(3, 1, 0.5f, 0.7f);
  REQUIRE(one_each.size() == 9);
  check_equal(one_each[4], {0.5f, 0.5f, 0.5f, 0.5f});
}

TEST_CASE("anchors: overlap is intersection over union") {
  const Anchor anchor{0.5f, 0.5f, 0.5f, 0.5f};  // 0.25 .. 0.75
  CHECK(sim::overlap(anchor, {0.25f, 0.25f, 0.75f, 0.75f}) == 1);
  CHECK(sim::overlap(anchor, {0.5f, 0.25f, 1, 0.75f}) == doctest::Approx(1.0 / 3));
  CHECK(sim::overlap(anchor, {0, 0, 1, 1}) == 0.25f);
  CHECK(sim::overlap(anchor, {0.375f, 0.375f, 0.625f, 0.625f}) == 0.25f);
  CHECK(sim::overlap(anchor, {0, 0, 0.5f, 0.5f}) == doctest::Approx(1.0 / 7));
  CHECK(sim::overlap(anchor, {0.75f, 0.25f, 1, 0.75f}) == 0);  // they share an edge
  CHECK(sim::overlap(anchor, {0, 0, 0.125f, 0.125f}) == 0);
}

TEST_CASE("anchors: one answers for what it overlaps most, from one half on, no object is left alone") {
  const std::vector<Anchor> anchors{
      {0.25f, 0.25f, 0.5f, 0.5f}, {0.75f, 0.25f, 0.5f, 0.5f}, {0.25f, 0.75f, 0.5f, 0.5f}, {0.5f, 0.5f, 1, 1}};
  const auto labels = [&](const std::vector<Box>& objects) {
    return sim::match_anchors(anchors, objects).labels;
  };
  using Labels = std::vector<std::int32_t>;
  CHECK(labels({}) == Labels{0, 0, 0, 0});
  CHECK(labels({{0, 0, 0.5f, 0.5f, 2}}) == Labels{3, 0, 0, 0});
  // The upper half: exactly one half of the whole image, so the last anchor answers for it, and with one half
  // of their union the first two do.
  CHECK(labels({{0, 0, 1, 0.5f, 1}}) == Labels{2, 2, 0, 2});
  // 1/16 at best, yet an object must have an anchor: the one it overlaps most.
  CHECK(labels({{0.5f, 0, 0.625f, 0.25f, 0}}) == Labels{0, 1, 0, 0});
  // Two objects in the same corner: the earlier takes the anchor both overlap most, and the later one, whose
  // next best is the whole image, that.
  CHECK(labels({{0, 0, 0.25f, 0.25f, 0}, {0, 0, 0.375f, 0.375f, 1}}) == Labels{1, 0, 0, 2});
  // An anchor that two objects overlap alike answers for the first of them.
  const std::vector<Anchor> whole{{0.5f, 0.5f, 1, 1}, {0.25f, 0.5f, 0.5f, 1}, {0.75f, 0.5f, 0.5f, 1}};
  CHECK(sim::match_anchors(whole, std::vector<Box>{{0, 0, 0.5f, 1, 0}, {0.5f, 0, 1, 1, 1}}).labels ==
        Labels{1, 1, 2});
  // More objects than anchors: the last go without.
  CHECK(sim::match_anchors(std::vector<Anchor>{anchors[0]},
                           std::vector<Box>{{0, 0, 0.5f, 0.5f, 0}, {0, 0, 0.5f, 0.5f, 1}})
            .labels == Labels{1});
}

TEST_CASE("anchors: offsets say how the object differs, in tenths of the size and fifths of logarithms") {
  const std::vector<Anchor> anchors{{0.5f, 0.5f, 0.5f, 0.25f}, {0.9f, 0.9f, 0.1f, 0.1f}};
  const sim::AnchorTargets targets =
      sim::match_anchors(anchors, std::vector<Box>{{0.25f, 0.375f, 0.875f, 0.625f, 0}});
  REQUIRE(targets.labels == std::vector<std::int32_t>{1, 0});
  // Centre 0.5625, 0.5; sizes 0.625, 0.25.
  CHECK(targets.offsets[0][0] == doctest::Approx(0.0625 / 0.05));
  CHECK(targets.offsets[0][1] == doctest::Approx(0));
  CHECK(targets.offsets[0][2] == doctest::Approx(std::log(1.25) / 0.2));
  CHECK(targets.offsets[0][3] == doctest::Approx(0));
  CHECK(targets.offsets[1] == sim::BoxOffsets{0, 0, 0, 0});
}

TEST_CASE("anchors: of the background the hardest are kept, three for each object, the first at a tie") {
  using Labels = std::vector<std::int32_t>;
  Labels labels{0, 2, 0, 0, 0, 0};
  sim::mine_hard_negatives(labels, std::vector<float>{1, 9, 3, 1, 2, 1}, 3);
  CHECK(labels == Labels{0, 2, 0, -1, 0, -1});
  Labels no_objects{0, 0, 0};
  sim::mine_hard_negatives(no_objects, std::vector<float>{1, 2, 3}, 3);
  CHECK(no_objects == Labels{-1, -1, -1});
  Labels few{1, 0, 3, 0};
  sim::mine_hard_negatives(few, std::vector<float>{0, 0, 0, 0}, 3);
  CHECK(few == Labels{1, 0, 3, 0});
  Labels pairs{1, 0, 0, 0, 1, 0};
  sim::mine_hard_negatives(pairs, std::vector<float>{0, 1, 5, 2, 0, 3}, 1);
  CHECK(pairs == Labels{1, -1, 0, -1, 1, 0});
  Labels diverged{1, 0, 0, 0, 0};
  sim::mine_hard_negatives(diverged, std::vector<float>{0, 1, std::nanf(""), 3, std::nanf("")}, 2);
  CHECK(diverged == Labels{1, -1, 0, -1, 0});
}
