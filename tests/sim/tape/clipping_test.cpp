#include "sim/tape/clipping.h"

#include <doctest/doctest.h>

#include <cmath>
#include <random>
#include <stdexcept>
#include <vector>

namespace {

using Gradients = std::vector<std::vector<float>>;

std::vector<std::span<float>> views(Gradients& gradients) {
  return {gradients.begin(), gradients.end()};
}

Gradients random_gradients(float scale) {
  std::mt19937 random(1);
  Gradients gradients{std::vector<float>(1000), std::vector<float>(37), {}, std::vector<float>(1)};
  for (std::vector<float>& gradient : gradients) {
    for (float& value : gradient)
      value = static_cast<float>(static_cast<int>(random() % 2001) - 1000) * scale;
  }
  return gradients;
}

}  // namespace

TEST_CASE("clipping: by the norm of all gradients together") {
  Gradients gradients{{3, 0}, {}, {-4}};
  const sim::NormClipping clipping = sim::clip_by_norm(views(gradients), 1);
  CHECK(clipping.norm == 5);
  CHECK(clipping.coefficient == 1 / (5 + 1e-6));
  const auto coefficient = static_cast<float>(1 / (5 + 1e-6));
  CHECK(gradients == Gradients{{3 * coefficient, 0}, {}, {-4 * coefficient}});
}

TEST_CASE("clipping: a norm within the limit changes nothing") {
  Gradients gradients{{3, -4}};
  const Gradients before = gradients;
  for (const double max_norm : {5.1, 1e30}) {
    const sim::NormClipping clipping = sim::clip_by_norm(views(gradients), max_norm);
    CHECK(clipping.norm == 5);
    CHECK(clipping.coefficient == 1);
    CHECK(gradients == before);
  }
  CHECK(sim::clip_by_norm(views(gradients), 5).coefficient == 5 / (5 + 1e-6));  // as torch's, just below 1
  Gradients none;
  CHECK(sim::clip_by_norm(views(none), 1).norm == 0);
}

TEST_CASE("clipping: the norm is added up in the stated order") {
  // Beside 2^54 the square of 1 is lost, four of them are not: only lane 0 has the large one.
  std::vector<float> gradient(64 * 16, 0.0f);
  gradient[0] = 0x1p27f;
  for (std::size_t i = 16; i < gradient.size(); i += 16) gradient[i] = gradient[i + 8] = 1;
  Gradients gradients{gradient, {0, 1}};
  CHECK(sim::clip_by_norm(views(gradients), 1e30).norm == std::sqrt(0x1p54 + 64));
}

// Squares of these floats (integers times a power of two) and their sums are exact, so the norm is the root
// of an exact integer, and one rounding away from it.
TEST_CASE("clipping: the norm agrees with exact sums") {
  Gradients gradients = random_gradients(0x1p-20f);
  std::int64_t sum = 0;
  for (const auto& gradient : gradients) {
    for (const float value : gradient) sum += std::llround(std::pow(value * 0x1p20, 2));
  }
  const double norm = sim::clip_by_norm(views(gradients), 1e30).norm;
  CHECK(norm == std::sqrt(static_cast<double>(sum)) * 0x1p-20);
}

TEST_CASE("clipping: before unscaling the limit is max_norm / S") {
  constexpr float scale = 1024;
  Gradients right = random_gradients(0x1p-10f), wrong = random_gradients(0x1p-10f * scale);
  const double norm = sim::clip_by_norm(views(right), 1).norm;
  CHECK(sim::clip_by_norm(views(wrong), 1).norm == norm * scale);
  for (auto& gradient : wrong) {
    for (float& value : gradient) value /= scale;
  }
  CHECK(sim::clip_by_norm(views(right), 1e30).norm == doctest::Approx(1));
  CHECK(sim::clip_by_norm(views(wrong), 1e30).norm == doctest::Approx(1 / scale));
}

TEST_CASE("clipping: values that are not finite") {
  Gradients infinite{{1, HUGE_VALF, -2}};
  const sim::NormClipping clipping = sim::clip_by_norm(views(infinite), 1);
  CHECK(clipping.norm == HUGE_VAL);
  CHECK(clipping.coefficient == 0);
  CHECK(infinite[0][0] == 0);
  CHECK(std::isnan(infinite[0][1]));
  Gradients nan{{1, NAN}};
  CHECK(std::isnan(sim::clip_by_norm(views(nan), 1).coefficient));
  CHECK(std::isnan(nan[0][0]));
}

TEST_CASE("clipping: by value") {
  Gradients gradients{{-2, -0.5f, 0, 0.5f}, {0.25f, HUGE_VALF, -HUGE_VALF, NAN}};
  CHECK(sim::clip_by_value(views(gradients), 0.5) == 3);
  CHECK(gradients[0] == std::vector<float>{-0.5f, -0.5f, 0, 0.5f});
  CHECK(std::vector(gradients[1].begin(), gradients[1].begin() + 3) ==
        std::vector<float>{0.25f, 0.5f, -0.5f});
  CHECK(std::isnan(gradients[1][3]));
}

TEST_CASE("clipping: binary64 gradients") {
  std::vector<double> first{3, 1e-300}, second{4};
  const std::vector<std::span<double>> gradients{first, second};
  CHECK(sim::clip_by_norm(gradients, 1).norm == 5);
  CHECK(first[0] == 3 * (1 / (5 + 1e-6)));
  CHECK(sim::clip_by_value(gradients, 0.1) == 2);
  CHECK(second[0] == 0.1);
}

TEST_CASE("clipping: impossible limits are refused") {
  Gradients gradients{{1}};
  for (const double bad : {0.0, -1.0, HUGE_VAL, std::nan("")}) {
    CHECK_THROWS_AS(sim::clip_by_norm(views(gradients), bad), std::invalid_argument);
    CHECK_THROWS_AS(sim::clip_by_value(views(gradients), bad), std::invalid_argument);
  }
  CHECK_THROWS_WITH_AS(sim::clip_by_norm(views(gradients), -1),
                       "clipping: max_norm = -1 is not allowed; allowed: numbers in (0, inf)",
                       std::invalid_argument);
}
