#include "experiments/training/counted_gradients.h"

#include <doctest/doctest.h>

#include <array>
#include <limits>
#include <span>
#include <string>

namespace {

template <std::size_t N>
fp16::ExponentHistogram histogram_of(const std::array<float, N>& values) {
  fp16::ExponentHistogram histogram;
  histogram.add(std::span<const float>(values));
  return histogram;
}

}  // namespace

TEST_CASE("counted gradients: shares are over the finite non-zero ones, and 0 where there is none") {
  constexpr float inf = std::numeric_limits<float>::infinity();
  const auto mixed = histogram_of(std::array{0.0f, 1.0f, -2.0f, 3.0f, 4.0f, inf, -inf});
  CHECK(experiments::share_of_nonzero(mixed, 1) == 0.25);
  CHECK(experiments::share_of_nonzero(mixed, 4) == 1);
  CHECK(experiments::share_of_nonzero(histogram_of(std::array{0.0f, inf}), 0) == 0);
}

TEST_CASE("counted gradients: the recommended scale leaves the largest an octave below 65504") {
  const auto recommended = [](float largest) {
    return experiments::recommended_scale_log2(histogram_of(std::array{largest, 0x1p-30f})).value();
  };
  CHECK(recommended(1.0f) == 14);      // 2^14 <= 32752 < 2^15
  CHECK(recommended(65504.0f) == -1);  // 32752 = 65504 / 2
  CHECK(recommended(65505.0f) == -2);
  CHECK(recommended(-0x1p-20f) == 34);
  CHECK(!experiments::recommended_scale_log2(histogram_of(std::array{0.0f})));
}

TEST_CASE("counted gradients: what is not finite is told, with how many of all it is") {
  constexpr float inf = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  CHECK(experiments::nonfinite_clause(histogram_of(std::array{0.0f, 1.0f})).empty());
  CHECK(experiments::nonfinite_clause(histogram_of(std::array{0.0f, 1.0f, inf, -inf, nan})) ==
        "3 of 5 gradients are infinite or NaN in FP32 already, which no loss scale cures");
}

TEST_CASE("counted gradients: no value is written as none") {
  CHECK(experiments::value_or_none(std::optional(-3)).text() == "-3");
  CHECK(experiments::value_or_none(std::optional<std::size_t>(7)).text() == "7");
  CHECK(experiments::value_or_none(std::optional<int>()).text() == "none");
}

TEST_CASE("counted gradients: octaves alive are told by exponent, and never as -0") {
  CHECK(experiments::octaves_alive_clause("hidden2", 15.25) ==
        "the largest gradient of hidden2 is 2^-9.8, 15.2 octaves above the 2^-25 where nearest-even rounding "
        "reaches zero");
  CHECK(experiments::octaves_alive_clause("bias", 24.97).find(" is 2^0.0, 25.0 octaves above ") !=
        std::string::npos);
  CHECK(experiments::octaves_alive_clause("encoder1", -6.3).find("2^-31.3, 6.3 octaves below") !=
        std::string::npos);
}
