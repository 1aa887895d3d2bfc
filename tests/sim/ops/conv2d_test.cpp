/// Convolution and its gradients, held to the bit against sums written out.

#include "sim/ops/conv2d.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/sim/ops/linear_maps.h"
#include "tests/sim/ops/sum_oracle.h"

namespace {

using linear_maps::backward_settings;
using linear_maps::check;
using linear_maps::Evaluation;
using linear_maps::Expected;
using linear_maps::normal_values;
using linear_maps::plus;
using linear_maps::Reduction;
using linear_maps::Setting;
using linear_maps::settings;
using linear_maps::Sum;
using linear_maps::wrong_elements;
using sim::Shape;
using sim::Tensor;

struct Convolution {
  std::size_t batch, in_channels, height, width, out_channels, kernel, stride, padding;

  std::size_t out_height() const { return (height + 2 * padding - kernel) / stride + 1; }
  std::size_t out_width() const { return (width + 2 * padding - kernel) / stride + 1; }
  std::size_t pixels() const { return out_height() * out_width(); }
  std::size_t patch() const { return in_channels * kernel * kernel; }
  Shape x() const { return {batch, in_channels, height, width}; }
  Shape w() const { return {out_channels, in_channels, kernel, kernel}; }
  Shape y() const { return {batch, out_channels, out_height(), out_width()}; }

  static constexpr std::size_t in_padding = static_cast<std::size_t>(-1);

  /// The element of x that element `element` of the patch of a pixel is.
  std::size_t source(std::size_t image, std::size_t pixel, std::size_t element) const {
    const std::size_t channel = element / (kernel * kernel), i = element / kernel % kernel,
                      j = element % kernel;
    const std::size_t row = pixel / out_width() * stride + i, column = pixel % out_width() * stride + j;
    if (row < padding || row >= height + padding || column < padding || column >= width + padding)
      return in_padding;
    return ((image * in_channels + channel) * height + row - padding) * width + column - padding;
  }
  double seen(const Tensor& values, std::size_t image, std::size_t pixel, std::size_t element) const {
    const std::size_t index = source(image, pixel, element);
    return index == in_padding ? 0 : values.element(index);
  }
};

/// Every element; of long chains some.
constexpr std::size_t most_checked_outputs = 4000;

void check_some(const Tensor& got, const Setting& setting, const std::string& what,
                const Expected& expected) {
  const std::size_t step = 1 + got.size() / most_checked_outputs;
  INFO(setting.name, ": ", what);
  REQUIRE(got.format() == setting.format);
  CHECK(wrong_elements(got, expected, step) == 0);
}

void check_convolution(const Convolution& c, const Setting& setting, bool with_bias) {
  INFO(c.batch, " images of ", c.in_channels, "x", c.height, "x", c.width, ", ", c.out_channels,
       " channels, kernel ", c.kernel, ", stride ", c.stride, ", padding ", c.padding);
  Evaluation layer{sim::conv2d,
                   {normal_values(c.x(), setting.format, "x"), normal_values(c.w(), setting.format, "w")},
                   sim::Conv2dOptions{.stride = c.stride, .padding = c.padding}};
  if (with_bias) layer.inputs.push_back(normal_values({c.out_channels}, setting.format, "b"));
  const Tensor &x = layer.inputs[0], &w = layer.inputs[1];
  const Tensor y = layer.forward(setting);
  REQUIRE(y.shape() == c.y());
  check_some(y, setting, "y", [&](std::size_t i) {
    const std::size_t pixel = i % c.pixels(), channel = i / c.pixels() % c.out_channels,
                      image = i / c.pixels() / c.out_channels;
    Sum sum{setting.arithmetic, setting.format == fp16::binary64};
    for (std::size_t e = 0; e < c.patch(); ++e)
      sum.add(w.element(channel * c.patch() + e), c.seen(x, image, pixel, e));
    return with_bias ? plus(sum.value(), layer.inputs[2].element(channel), setting) : sum.value();
  });
  for (const Setting& back : backward_settings(setting)) {
    const Tensor dy = normal_values(c.y(), back.format, "dy");
    const auto dy_at = [&](std::size_t image, std::size_t channel, std::size_t pixel) {
      return dy.element((image * c.out_channels + channel) * c.pixels() + pixel);
    };
    const bool binary64 = back.format == fp16::binary64;
    const std::vector<Tensor> gradients = layer.backward(back, y, dy);

    std::vector<Reduction> dx(x.size(), Reduction{back.arithmetic.reductions});
    for (std::size_t image = 0; image < c.batch; ++image) {
      for (std::size_t e = 0; e < c.patch(); ++e) {
        for (std::size_t pixel = 0; pixel < c.pixels(); ++pixel) {
          const std::size_t index = c.source(image, pixel, e);
          if (index == Convolution::in_padding) continue;
          Sum sum{back.arithmetic, binary64};
          for (std::size_t channel = 0; channel < c.out_channels; ++channel)
            sum.add(w.element(channel * c.patch() + e), dy_at(image, channel, pixel));
          dx[index].add(sum.value());
        }
      }
    }
    check(gradients[0], back, "dx", [&](std::size_t i) { return dx[i].sum; });
    check_some(gradients[1], back, "dw", [&](std::size_t i) {
      Sum sum{back.arithmetic, binary64};
      for (std::size_t image = 0; image < c.batch; ++image) {
        for (std::size_t pixel = 0; pixel < c.pixels(); ++pixel)
          sum.add(dy_at(image, i / c.patch(), pixel), c.seen(x, image, pixel, i % c.patch()));
      }
      return sum.value();
    });
    if (!with_bias) continue;
    check(gradients[2], back, "db", [&](std::size_t channel) {
      std::vector<double> terms;
      for (std::size_t image = 0; image < c.batch; ++image) {
        for (std::size_t pixel = 0; pixel < c.pixels(); ++pixel)
          terms.push_back(dy_at(image, channel, pixel));
      }
      return sum_oracle::along_row(back.arithmetic.reductions, terms);
    });
  }
}

}  // namespace

TEST_CASE(
    "conv2d: patches in the order channel, row, column, and images in order, whatever is gathered at a "
    "time") {
  constexpr Convolution shapes[] = {
      {2, 3, 6, 5, 4, 3, 1, 1},    // no square
      {3, 2, 7, 7, 3, 3, 2, 0},    // a stride that skips nothing
      {2, 1, 5, 8, 2, 2, 3, 2},    // a stride wider than the kernel, padding as wide as it
      {2, 3, 4, 4, 17, 1, 1, 0},   // no neighbours
      {1, 2, 3, 3, 2, 3, 1, 0},    // a single pixel
      {2, 2, 3, 14, 2, 3, 1, 1},   // rows of two blocks
      {2, 1, 2, 19, 2, 3, 1, 2},   // of three
      {1, 2, 3, 28, 3, 3, 1, 0},   // of four
      {3, 1, 23, 24, 2, 3, 1, 1},  // pixels enough for one image at a time
  };
  for (const Setting& setting : settings()) {
    for (const Convolution& shape : shapes) {
      check_convolution(shape, setting, true);
      check_convolution(shape, setting, false);
    }
  }
}

TEST_CASE("conv2d: more images than are gathered at a time") {
  // 16 x 9 x 49 floats an image: 18 images in 512 KiB. 49 pixels are no multiple of a tensor core's step, and
  // the images of hopper's steps of 16 are 32.
  constexpr Convolution shape{41, 16, 7, 7, 3, 3, 1, 1};
  for (const Setting& setting : settings()) check_convolution(shape, setting, setting.name == "fp16");
}

TEST_CASE("conv2d: padding is multiplied like any zero") {
  const float infinity = std::numeric_limits<float>::infinity();
  const Evaluation layer{sim::conv2d,
                         {Tensor::from({1, 1, 3, 3}, std::vector<float>(9, 1)),
                          Tensor::from({1, 1, 3, 3}, std::vector<float>{infinity, 0, 0, 0, 0, 0, 0, 0, 0})},
                         sim::Conv2dOptions{.padding = 1}};
  const Tensor y = layer.forward(settings().front());
  for (std::size_t pixel = 0; pixel < 9; ++pixel) {
    const bool sees_padding = pixel / 3 == 0 || pixel % 3 == 0;
    CHECK(std::isnan(y.element(pixel)) == sees_padding);
    if (!sees_padding) CHECK(y.element(pixel) == infinity);
  }
}

TEST_CASE("conv2d: what cannot be convolved is refused") {
  const auto forward = [](const sim::Conv2dOptions& options) {
    return Evaluation{
        sim::conv2d,
        {Tensor::zeros({1, 1, 2, 4}, fp16::binary32), Tensor::zeros({1, 1, 5, 5}, fp16::binary32)},
        options}
        .forward(settings().front());
  };
  CHECK_THROWS_WITH_AS(forward({.padding = 1}), "conv2d: a kernel of 5 does not fit into a padded image of 4",
                       std::invalid_argument);
  CHECK_THROWS_WITH_AS(forward({.stride = 0, .padding = 2}), "conv2d: stride: 0 is not allowed; at least 1",
                       std::invalid_argument);
}
