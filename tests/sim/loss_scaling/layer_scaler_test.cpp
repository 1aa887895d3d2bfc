#include "sim/loss_scaling/layer_scaler.h"

#include <doctest/doctest.h>

#include <stdexcept>

using sim::joined_scale;

TEST_CASE("branches are joined at the largest scale that keeps the largest unscaled value below the limit") {
  // Unscaled maxima 100 and 50, so the scale must be below 600 for the limit 6e4.
  CHECK(joined_scale({{{.scale = 512, .max_abs = 51200}, {.scale = 4, .max_abs = 200}}}, 6e4) == 512);
  // 1024 * 100 is too much; the next smaller one of the branches' own scales is taken, not one between.
  CHECK(joined_scale({{{.scale = 4, .max_abs = 400}, {.scale = 1024, .max_abs = 51200}}}, 6e4) == 4);
  CHECK(joined_scale({{{.scale = 2, .max_abs = 1}, {.scale = 8, .max_abs = 8}, {.scale = 4, .max_abs = 4}}},
                     8.0) == 4);  // 8 * 1 = 8 is not below 8
}

TEST_CASE("where no branch's scale will do the smallest is halved, but not once it is below an eighth") {
  CHECK(joined_scale({{{.scale = 4, .max_abs = 400000}, {.scale = 16, .max_abs = 1}}}, 6e4) == 0.5);
  CHECK(joined_scale({{{.scale = 1, .max_abs = 6e5F}}}, 6e4) == 0.0625);  // 1/8 would be 75000
  CHECK(joined_scale({{{.scale = 1, .max_abs = 1e30F}}}, 6e4) == 0.0625);
  CHECK(joined_scale({{{.scale = 0.1, .max_abs = 1e30F}}}, 6e4) == 0.1);
}

TEST_CASE("branches of zeros keep the largest scale, and there must be one") {
  CHECK(joined_scale({{{.scale = 4}, {.scale = 32}, {.scale = 8}}}, 6e4) == 32);
  CHECK_THROWS_WITH_AS(joined_scale({}, 6e4), "joined_scale: no branch given; allowed: at least one",
                       std::invalid_argument);
}
