/// Pools and channels_last: small maps by hand, ties, NaNs and what no window covers.

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <vector>

#include "sim/ops/average_pool2d.h"
#include "sim/ops/channels_last.h"
#include "sim/ops/global_average_pool.h"
#include "sim/ops/max_pool2d.h"
#include "tests/sim/ops/evaluation.h"

namespace {

using fp16::binary16;
using fp16::binary32;
using fp16::half;
using sim::Tensor;

constexpr float infinity = std::numeric_limits<float>::infinity();
constexpr float not_a_number = std::numeric_limits<float>::quiet_NaN();

}  // namespace

TEST_CASE("max_pool2d: the largest of each window, what no window covers is left out and has gradient 0") {
  const Tensor x = tensor_of({1, 2, 3, 5}, {1, 2, 3, 4, 99,   //
                                            5, 0, 9, -1, 99,  //
                                            99, 99, 99, 99, 99,
                                            //
                                            -4, -3, -2, -1, 0,  //
                                            -8, -7, -6, -5, 0,  //
                                            0, 0, 0, 0, 0});
  Evaluation e(sim::max_pool2d, {x});
  CHECK(e.output.shape() == sim::Shape{1, 2, 1, 2});
  CHECK(values_of(e.output) == std::vector<double>{5, 9, -3, -1});
  CHECK(values_of(e.backward(tensor_of({1, 2, 1, 2}, {10, 20, 30, 40}))[0]) ==
        std::vector<double>{0, 0,  0, 0,  0, 10, 0, 20, 0, 0, 0, 0, 0, 0, 0,  //
                            0, 30, 0, 40, 0, 0,  0, 0,  0, 0, 0, 0, 0, 0, 0});
}

TEST_CASE("max_pool2d: the gradient goes to the first largest, row by row") {
  for (const std::size_t window : {2, 3}) {
    for (std::size_t first = 0; first < window * window; ++first) {
      Tensor x = Tensor::zeros({1, 1, window, window}, binary32);
      for (std::size_t i = 0; i < x.size(); ++i) x.elements<float>()[i] = i < first ? -1.0f : 0.0f;
      if (first + 1 < x.size()) x.elements<float>()[first + 1] = -0.0f;  // equal to 0, and later
      Evaluation e(sim::max_pool2d, {x}, sim::PoolingOptions{.window = window});
      CHECK(e.output.element(0) == 0);
      const std::vector<double> dx = values_of(e.backward(tensor_of({1, 1, 1, 1}, {7}))[0]);
      for (std::size_t i = 0; i < dx.size(); ++i) CHECK(dx[i] == (i == first ? 7 : 0));
    }
  }
}

TEST_CASE("max_pool2d: a NaN is larger than all, the first of them takes the gradient") {
  const Tensor x = tensor_of({1, 1, 2, 6}, {1, not_a_number, infinity, 2, -infinity, -infinity,  //
                                            not_a_number, 3, 5, not_a_number, -infinity, -infinity});
  Evaluation e(sim::max_pool2d, {x});
  CHECK(std::isnan(e.output.element(0)));
  CHECK(std::isnan(e.output.element(1)));
  CHECK(e.output.element(2) == -infinity);
  CHECK(values_of(e.backward(tensor_of({1, 1, 1, 3}, {1, 2, 3}))[0]) ==
        std::vector<double>{0, 1, 0, 0, 3, 0, 0, 0, 0, 2, 0, 0});
}

TEST_CASE("max_pool2d: planes and windows of every size, element by element") {
  for (std::size_t width = 1; width <= 21; ++width) {
    for (std::size_t window = 1; window <= std::min<std::size_t>(width, 4); ++window) {
      const std::size_t height = window + width % 7, rows = height / window, columns = width / window;
      Tensor x = normal_tensor({2, 3, height, width}, "x"), dy = normal_tensor({2, 3, rows, columns}, "dy");
      for (float& value : x.elements<float>()) value = std::round(2 * value);  // ties
      Evaluation e(sim::max_pool2d, {x}, sim::PoolingOptions{.window = window});
      std::vector<double> dx(x.size());
      for (std::size_t i = 0; i < e.output.size(); ++i) {
        const std::size_t plane = i / (rows * columns), row = i / columns % rows, column = i % columns;
        std::size_t largest = (plane * height + row * window) * width + column * window;
        const std::size_t first = largest;
        for (std::size_t k = 0; k < window * window; ++k) {
          const std::size_t element = first + k / window * width + k % window;
          if (x.element(element) > x.element(largest)) largest = element;
        }
        REQUIRE(e.output.element(i) == x.element(largest));
        dx[largest] = dy.element(i);
      }
      REQUIRE(values_of(e.backward(dy)[0]) == dx);
    }
  }
}

TEST_CASE("max_pool2d keeps the bits of halves and passes any gradient on, a NaN too") {
  Evaluation e(sim::max_pool2d, {tensor_of({1, 1, 2, 2}, {0x1p-24f, 0, -1, -2}, binary16)}, {},
               {.output = binary16});
  CHECK(e.output.elements<std::uint16_t>()[0] == 1);
  const Tensor dx = e.backward(tensor_of({1, 1, 1, 1}, {not_a_number}, binary16))[0];
  CHECK(std::isnan(dx.element(0)));
  for (std::size_t i = 1; i < 4; ++i) CHECK(dx.element(i) == 0);
}

TEST_CASE("average_pool2d: the mean of each window, its gradient shared alike") {
  const Tensor x = tensor_of({1, 1, 3, 5}, {1, 2, 3, 4, 99,   //
                                            5, 0, 9, -2, 99,  //
                                            99, 99, 99, 99, 99});
  Evaluation e(sim::average_pool2d, {x});
  CHECK(e.output.shape() == sim::Shape{1, 1, 1, 2});
  CHECK(values_of(e.output) == std::vector<double>{2, 3.5});
  CHECK(values_of(e.backward(tensor_of({1, 1, 1, 2}, {4, 8}))[0]) ==
        std::vector<double>{1, 1, 2, 2, 0, 1, 1, 2, 2, 0, 0, 0, 0, 0, 0});
  CHECK(values_of(Evaluation(sim::average_pool2d, {x}, sim::PoolingOptions{.window = 3}).output) ==
        std::vector<double>{(1 + 2 + 3 + 5 + 0 + 9 + 99 * 3) / 9.0f});
}

TEST_CASE("average_pool2d in binary16: a window row by row, every partial sum a half") {
  for (const std::size_t window : {2, 3}) {
    const Tensor x = normal_tensor({3, 4, 9, 11}, "x", binary16, 1000);
    const Evaluation e(sim::average_pool2d, {x}, sim::PoolingOptions{.window = window},
                       {.output = binary16, .reductions = binary16});
    const std::size_t rows = 9 / window, columns = 11 / window;
    for (std::size_t i = 0; i < e.output.size(); ++i) {
      const std::size_t plane = i / (rows * columns), row = i / columns % rows, column = i % columns;
      half sum(0.0f);
      for (std::size_t k = 0; k < window * window; ++k) {
        sum += half(x.element((plane * 9 + row * window + k / window) * 11 + column * window + k % window));
      }
      REQUIRE(e.output.element(i) == float(half(float(sum) / static_cast<float>(window * window))));
    }
  }
}

TEST_CASE("global_average_pool: a mean for each plane, in binary16 in the interleaved order") {
  Evaluation e(sim::global_average_pool, {tensor_of({1, 2, 2, 2}, {1, 2, 3, 6, -1, -1, 0, 0})});
  CHECK(e.output.shape() == sim::Shape{1, 2});
  CHECK(values_of(e.output) == std::vector<double>{3, -0.5});
  CHECK(values_of(e.backward(tensor_of({1, 2}, {4, 8}))[0]) == std::vector<double>{1, 1, 1, 1, 2, 2, 2, 2});

  const Tensor x = normal_tensor({4, 3, 5, 7}, "x", binary16, 100);
  const std::vector<float> values = x.to_floats();
  const Evaluation narrow(sim::global_average_pool, {x}, {}, {.output = binary16, .reductions = binary16});
  for (std::size_t plane = 0; plane < 12; ++plane) {
    const half sum = interleaved_half_sum(std::span(values).subspan(plane * 35, 35));
    CHECK(narrow.output.element(plane) == float(half(float(sum) / 35)));
  }
}

TEST_CASE("channels_last: rows of channels, pixel by pixel, or of a part of them, and gradients back") {
  const Tensor x = normal_tensor({2, 6, 4, 5}, "x", binary16);
  for (const std::size_t row_length : {0, 6, 3, 1}) {
    Evaluation e(sim::channels_last, {x}, sim::ChannelsLastOptions{.row_length = row_length},
                 {.output = binary16});
    const std::size_t columns = row_length == 0 ? 6 : row_length;
    REQUIRE(e.output.shape() == sim::Shape{240 / columns, columns});
    for (std::size_t i = 0; i < x.size(); ++i) {
      const std::size_t image = i / 120, channel = i / 20 % 6, pixel = i % 20;
      REQUIRE(e.output.element((image * 20 + pixel) * 6 + channel) == x.element(i));
    }
    CHECK(same_bytes(e.backward(e.output)[0], x));
  }
  CHECK_THROWS_WITH_AS(Evaluation(sim::channels_last, {x}, sim::ChannelsLastOptions{.row_length = 4}),
                       "channels_last: row_length 4 for 6 channels; allowed are divisors of that",
                       std::invalid_argument);
}

TEST_CASE("pools refuse windows that do not fit") {
  const Tensor x = Tensor::zeros({1, 1, 3, 5}, binary32);
  CHECK_THROWS_WITH_AS(Evaluation(sim::max_pool2d, {x}, sim::PoolingOptions{.window = 0}),
                       "max_pool2d: window = 0 is not allowed; allowed: whole numbers in [1, 3]",
                       std::invalid_argument);
  CHECK_THROWS_WITH_AS(Evaluation(sim::average_pool2d, {x}, sim::PoolingOptions{.window = 4}),
                       "average_pool2d: window = 4 is not allowed; allowed: whole numbers in [1, 3]",
                       std::invalid_argument);
}

TEST_CASE("pools: the same bytes and counts for 1 and 2 threads") {
  for (const fp16::Format format : {binary16, binary32}) {
    const Tensor x = normal_tensor({8, 8, 51, 52}, "x", format);
    const auto check = [&](const sim::Operation& operation, const sim::OperationOptions& options) {
      Evaluation one(operation, {x}, options, {.output = format, .reductions = format}),
          two(operation, {x}, options, {.output = format, .reductions = format, .threads = 2});
      CHECK(same_bytes(one.output, two.output));
      const Tensor dy = normal_tensor(one.output.shape(), "dy", format, 1e-4f);
      CHECK(same_bytes(one.backward(dy)[0], two.backward(dy)[0]));
      CHECK(one.counts == two.counts);
    };
    check(sim::max_pool2d, sim::PoolingOptions{.window = 2});
    check(sim::max_pool2d, sim::PoolingOptions{.window = 5});
    check(sim::average_pool2d, sim::PoolingOptions{.window = 2});
    check(sim::average_pool2d, sim::PoolingOptions{.window = 5});
    check(sim::global_average_pool, {});
    check(sim::channels_last, {});
  }
}
