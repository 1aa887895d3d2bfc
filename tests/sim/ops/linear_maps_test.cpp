/// The linear maps and their gradients, held to the bit against sums written out in the order and arithmetic
/// that their headers state.

#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <functional>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

#include "fp16/codec.h"
#include "fp16/half.h"
#include "fp16/mma.h"
#include "sim/ops/operation.h"
#include "sim/random.h"

namespace {

using fp16::half;
using sim::Shape;
using sim::Tensor;

/// In what the operands are stored and how sums are formed.
struct Setting {
  std::string name;
  fp16::Format format;
  sim::Arithmetic arithmetic;
};

const std::vector<Setting>& settings() {
  using enum fp16::Accumulation;
  static const std::vector<Setting> all{
      {"fp32", fp16::binary32, {}},
      {"amp", fp16::binary16, {}},
      {"bf16", fp16::bfloat16, {}},
      {"fp16", fp16::binary16, {.products = {.chain = fp16_fma_chain}, .reductions = fp16::binary16}},
      {"mul_add", fp16::binary16, {.products = {.chain = fp16_mul_add_chain}, .reductions = fp16::binary16}},
      {"hopper",
       fp16::binary16,
       {.products = {.tensor_core = fp16::TensorCoreAccumulation{fp16::hopper, fp16::binary32}}}},
      {"volta",
       fp16::binary16,
       {.products = {.tensor_core = fp16::TensorCoreAccumulation{fp16::volta, fp16::binary16}},
        .reductions = fp16::binary16}},
      {"fp64", fp16::binary64, {.products = {.chain = fp64_fma_chain}, .reductions = fp16::binary64}},
  };
  return all;
}

Tensor normal_values(const Shape& shape, fp16::Format format, std::string_view purpose) {
  const sim::RandomStream random(5, purpose);
  std::vector<float> values(sim::element_count(shape));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = random.normal(i);
  Tensor tensor(shape, format);
  sim::store({&tensor}, 0, std::span<const float>(values));
  return tensor;
}

double rounded(double value, const fp16::Format& format) {
  if (format == fp16::binary16) return half(static_cast<float>(value));
  if (format == fp16::bfloat16) {
    const std::uint32_t code = fp16::encode<fp16::bfloat16>(static_cast<float>(value)).bits;
    return std::bit_cast<float>(code << 16);
  }
  return value;
}

/// One sum of products, term after term.
struct Sum {
  const sim::Arithmetic& arithmetic;
  bool binary64;
  std::vector<double> a = {}, b = {};

  void add(double x, double y) {
    a.push_back(x);
    b.push_back(y);
  }

  double chain() const {
    const fp16::Accumulation accumulation = arithmetic.products.chain;
    double in_double = 0;
    float in_float = 0;
    half in_half(0.0f);
    for (std::size_t k = 0; k < a.size(); ++k) {
      const auto x = static_cast<float>(a[k]), y = static_cast<float>(b[k]);
      in_double = std::fma(a[k], b[k], in_double);
      in_float = std::fma(x, y, in_float);
      if (accumulation == fp16::Accumulation::fp16_fma_chain) in_half = fp16::fma(half(x), half(y), in_half);
      if (accumulation == fp16::Accumulation::fp16_mul_add_chain) in_half = half(x) * half(y) + in_half;
    }
    if (binary64) return in_double;
    return accumulation == fp16::Accumulation::fp32_fma_chain ? in_float : float(in_half);
  }

  double on_tensor_core() const {
    const auto& [core, accumulator] = *arithmetic.products.tensor_core;
    std::vector<std::uint16_t> left, right;
    for (std::size_t k = 0; k < a.size(); ++k) {
      left.push_back(half(static_cast<float>(a[k])).bits());
      right.push_back(half(static_cast<float>(b[k])).bits());
    }
    if (accumulator == fp16::binary32)
      return std::bit_cast<float>(fp16::mma_dot<fp16::binary32>(core, left, right, 0));
    return half::from_bits(fp16::mma_dot<fp16::binary16>(core, left, right, 0));
  }

  double value() const { return arithmetic.products.tensor_core && !binary64 ? on_tensor_core() : chain(); }
};

/// Terms added one after another, each sum rounded to the format of reductions.
struct Reduction {
  fp16::Format format;
  double sum = 0;

  void add(double term) {
    sum += term;
    if (format != fp16::binary64) sum = static_cast<float>(sum);  // the double sum of two floats rounds alike
    if (format == fp16::binary16) sum = half(static_cast<float>(sum));
  }
};

/// An operation with its inputs, run forward and backward as the tape does it.
struct Evaluation {
  const sim::Operation& operation;
  std::vector<Tensor> inputs;
  sim::OperationOptions options = {};

  std::vector<const Tensor*> pointers() const {
    std::vector<const Tensor*> all;
    for (const Tensor& input : inputs) all.push_back(&input);
    return all;
  }

  Tensor forward(const Setting& setting, fp16::RoundingCounts* counts = nullptr) const {
    const std::vector<const Tensor*> values = pointers();
    sim::OperationCall call{.inputs = values,
                            .options = options,
                            .arithmetic = setting.arithmetic,
                            .output_format = setting.format,
                            .training = true,
                            .random = sim::RandomStream(0, "unused"),
                            .counts = counts};
    return operation.forward(call);
  }

  /// Gradients of all inputs in the setting's format.
  std::vector<Tensor> backward(const Setting& setting, const Tensor& output, const Tensor& dy,
                               fp16::RoundingCounts* counts = nullptr) const {
    const std::vector<const Tensor*> values = pointers();
    std::vector<Tensor> gradients;
    for (const Tensor& input : inputs) gradients.emplace_back(input.shape(), setting.format);
    std::vector<sim::RoundedOutput> outputs;
    for (Tensor& gradient : gradients) outputs.push_back({.tensor = &gradient, .counts = counts});
    operation.backward({.inputs = values,
                        .output = output,
                        .saved = {},
                        .options = options,
                        .arithmetic = setting.arithmetic,
                        .training = true,
                        .random = sim::RandomStream(0, "unused"),
                        .output_gradient = dy,
                        .input_gradients = outputs});
    return gradients;
  }
};

using Expected = std::function<double(std::size_t index)>;

void check(const Tensor& got, const Setting& setting, const std::string& what, const Expected& expected) {
  INFO(setting.name, ": ", what);
  REQUIRE(got.format() == setting.format);
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < got.size(); ++i) {
    const double value = rounded(expected(i), setting.format);
    wrong += std::bit_cast<std::uint64_t>(got.element(i)) != std::bit_cast<std::uint64_t>(value);
  }
  CHECK(wrong == 0);
}

/// Also the twins: gradients in binary32 and binary64 of forward values in binary16.
std::vector<Setting> backward_settings(const Setting& forward) {
  std::vector<Setting> all{forward};
  if (forward.name == "amp" || forward.name == "fp16") {
    for (const fp16::Format& format : {fp16::binary32, fp16::binary64}) {
      all.push_back({forward.name + " twin in " + std::string(fp16::name_of(format)), format,
                     sim::uniform_arithmetic(format, 1)});
    }
  }
  return all;
}

/// C = A B for matrices given by their elements.
struct MatrixProduct {
  const Setting& setting;
  std::size_t depth;
  std::function<double(std::size_t row, std::size_t k)> a;
  std::function<double(std::size_t k, std::size_t column)> b;

  double operator()(std::size_t row, std::size_t column) const {
    Sum sum{setting.arithmetic, setting.format == fp16::binary64};
    for (std::size_t k = 0; k < depth; ++k) sum.add(a(row, k), b(k, column));
    return sum.value();
  }
};

/// x + y as the finished sums are added to: in binary32, in binary64 for such tensors.
double plus(double x, double y, const Setting& setting) {
  return setting.format == fp16::binary64 ? x + y : static_cast<float>(x) + static_cast<float>(y);
}
double times(double x, double y, const Setting& setting) {
  return setting.format == fp16::binary64 ? x * y : static_cast<float>(x) * static_cast<float>(y);
}

}  // namespace

TEST_CASE("matmul: chains over k forward, over columns and rows backward") {
  constexpr std::size_t m = 7, k = 83, n = 37;
  for (const Setting& setting : settings()) {
    const Evaluation product{
        sim::matmul,
        {normal_values({m, k}, setting.format, "a"), normal_values({k, n}, setting.format, "b")}};
    const Tensor &a = product.inputs[0], &b = product.inputs[1];
    const Tensor y = product.forward(setting);
    REQUIRE(y.shape() == Shape{m, n});
    const MatrixProduct forward{setting, k, [&](auto i, auto l) { return a.element(i * k + l); },
                                [&](auto l, auto j) { return b.element(l * n + j); }};
    check(y, setting, "a b", [&](std::size_t i) { return forward(i / n, i % n); });
    for (const Setting& back : backward_settings(setting)) {
      const Tensor dy = normal_values({m, n}, back.format, "dy");
      const std::vector<Tensor> gradients = product.backward(back, y, dy);
      const MatrixProduct da{back, n, [&](auto i, auto l) { return dy.element(i * n + l); },
                             [&](auto l, auto j) { return b.element(j * n + l); }};
      const MatrixProduct db{back, m, [&](auto i, auto l) { return a.element(l * k + i); },
                             [&](auto l, auto j) { return dy.element(l * n + j); }};
      check(gradients[0], back, "da", [&](std::size_t i) { return da(i / k, i % k); });
      check(gradients[1], back, "db", [&](std::size_t i) { return db(i / n, i % n); });
    }
  }
}

TEST_CASE("linear: with and without a bias, which is added to the finished chain") {
  constexpr std::size_t batch = 70, in = 75, out = 13;
  for (const Setting& setting : settings()) {
    for (const bool with_bias : {false, true}) {
      Evaluation layer{
          sim::linear,
          {normal_values({batch, in}, setting.format, "x"), normal_values({out, in}, setting.format, "w")}};
      if (with_bias) layer.inputs.push_back(normal_values({out}, setting.format, "b"));
      const Tensor &x = layer.inputs[0], &w = layer.inputs[1];
      const Tensor y = layer.forward(setting);
      const MatrixProduct forward{setting, in, [&](auto i, auto l) { return x.element(i * in + l); },
                                  [&](auto l, auto j) { return w.element(j * in + l); }};
      check(y, setting, "y", [&](std::size_t i) {
        const double sum = forward(i / out, i % out);
        return with_bias ? plus(sum, layer.inputs[2].element(i % out), setting) : sum;
      });
      for (const Setting& back : backward_settings(setting)) {
        const Tensor dy = normal_values({batch, out}, back.format, "dy");
        const std::vector<Tensor> gradients = layer.backward(back, y, dy);
        const MatrixProduct dx{back, out, [&](auto i, auto l) { return dy.element(i * out + l); },
                               [&](auto l, auto j) { return w.element(l * in + j); }};
        const MatrixProduct dw{back, batch, [&](auto i, auto l) { return dy.element(l * out + i); },
                               [&](auto l, auto j) { return x.element(l * in + j); }};
        check(gradients[0], back, "dx", [&](std::size_t i) { return dx(i / in, i % in); });
        check(gradients[1], back, "dw", [&](std::size_t i) { return dw(i / in, i % in); });
        if (!with_bias) continue;
        check(gradients[2], back, "db", [&](std::size_t j) {
          Reduction sum{back.arithmetic.reductions};
          for (std::size_t row = 0; row < batch; ++row) sum.add(dy.element(row * out + j));
          return sum.sum;
        });
      }
    }
  }
}

TEST_CASE("bias: one addition forward, rows in ascending order backward") {
  constexpr std::size_t rows = 3000, columns = 5;  // more than one piece of rows
  for (const Setting& setting : settings()) {
    const Evaluation layer{
        sim::bias,
        {normal_values({rows, columns}, setting.format, "x"), normal_values({columns}, setting.format, "b")}};
    const Tensor &x = layer.inputs[0], &b = layer.inputs[1];
    const Tensor y = layer.forward(setting);
    REQUIRE(y.shape() == x.shape());
    check(y, setting, "y",
          [&](std::size_t i) { return plus(x.element(i), b.element(i % columns), setting); });
    const Tensor dy = normal_values({rows, columns}, setting.format, "dy");
    const std::vector<Tensor> gradients = layer.backward(setting, y, dy);
    check(gradients[0], setting, "dx", [&](std::size_t i) { return dy.element(i); });
    check(gradients[1], setting, "db", [&](std::size_t j) {
      Reduction sum{setting.arithmetic.reductions};
      for (std::size_t row = 0; row < rows; ++row) sum.add(dy.element(row * columns + j));
      return sum.sum;
    });
  }
}

namespace {

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
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < got.size(); i += step) {
    const double value = rounded(expected(i), setting.format);
    wrong += std::bit_cast<std::uint64_t>(got.element(i)) != std::bit_cast<std::uint64_t>(value);
  }
  CHECK(wrong == 0);
}

void check_convolution(const Convolution& c, const Setting& setting, bool with_bias) {
  INFO(c.batch, " images of ", c.in_channels, "x", c.height, "x", c.width, ", ", c.out_channels,
       " channels, kernel ", c.kernel, ", stride ", c.stride, ", padding ", c.padding);
  Evaluation layer{sim::conv2d,
                   {normal_values(c.x(), setting.format, "x"), normal_values(c.w(), setting.format, "w")},
                   {.stride = c.stride, .padding = c.padding}};
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
      Reduction sum{back.arithmetic.reductions};
      for (std::size_t image = 0; image < c.batch; ++image) {
        for (std::size_t pixel = 0; pixel < c.pixels(); ++pixel) sum.add(dy_at(image, channel, pixel));
      }
      return sum.sum;
    });
  }
}

}  // namespace

TEST_CASE(
    "conv2d: patches in the order channel, row, column; images in order, whatever is gathered at a time") {
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
                         {.padding = 1}};
  const Tensor y = layer.forward(settings().front());
  for (std::size_t pixel = 0; pixel < 9; ++pixel) {
    const bool sees_padding = pixel / 3 == 0 || pixel % 3 == 0;
    CHECK(std::isnan(y.element(pixel)) == sees_padding);
    if (!sees_padding) CHECK(y.element(pixel) == infinity);
  }
}

TEST_CASE("conv2d: what cannot be convolved is refused") {
  const auto forward = [](const sim::OperationOptions& options) {
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

namespace {

struct Heads {
  std::size_t batch = 3, heads = 2, context = 9, width = 14;

  std::size_t depth() const { return width / heads; }
  Shape tokens() const { return {batch * context, width}; }
  Shape scores() const { return {batch * heads, context, context}; }
  /// Elements of a head (counted through all sequences) in tokens and in scores.
  double token(const Tensor& t, std::size_t head, std::size_t row, std::size_t column) const {
    return t.element((head / heads * context + row) * width + head % heads * depth() + column);
  }
  double score(const Tensor& t, std::size_t head, std::size_t row, std::size_t column) const {
    return t.element((head * context + row) * context + column);
  }
  /// expected(head, row, column) of tensors like tokens and like scores.
  template <class Function>
  Expected of_tokens(Function expected) const {
    return [*this, expected](std::size_t i) {
      const std::size_t row = i / width, column = i % width;
      return expected(row / context * heads + column / depth(), row % context, column % depth());
    };
  }
  template <class Function>
  Expected of_scores(Function expected) const {
    return [*this, expected](std::size_t i) {
      return expected(i / context / context, i / context % context, i % context);
    };
  }
};

}  // namespace

TEST_CASE("attention_scores: q k^T of every head, its finished chains divided by the root of the depth") {
  const Heads h;
  const double factor = 1 / std::sqrt(7.0);
  for (const Setting& setting : settings()) {
    const Evaluation attention{
        sim::attention_scores,
        {normal_values(h.tokens(), setting.format, "q"), normal_values(h.tokens(), setting.format, "k")},
        {.heads = h.heads, .context = h.context}};
    const Tensor &q = attention.inputs[0], &k = attention.inputs[1];
    const Tensor y = attention.forward(setting);
    REQUIRE(y.shape() == h.scores());
    check(y, setting, "q k^T", h.of_scores([&](auto head, auto row, auto column) {
      return times(MatrixProduct{setting, h.depth(), [&](auto i, auto l) { return h.token(q, head, i, l); },
                                 [&](auto l, auto j) { return h.token(k, head, j, l); }}(row, column),
                   factor, setting);
    }));
    for (const Setting& back : backward_settings(setting)) {
      const Tensor dy = normal_values(h.scores(), back.format, "dy");
      const std::vector<Tensor> gradients = attention.backward(back, y, dy);
      check(gradients[0], back, "dq", h.of_tokens([&](auto head, auto row, auto column) {
        return times(MatrixProduct{back, h.context, [&](auto i, auto l) { return h.score(dy, head, i, l); },
                                   [&](auto l, auto j) { return h.token(k, head, l, j); }}(row, column),
                     factor, back);
      }));
      check(gradients[1], back, "dk", h.of_tokens([&](auto head, auto row, auto column) {
        return times(MatrixProduct{back, h.context, [&](auto i, auto l) { return h.score(dy, head, l, i); },
                                   [&](auto l, auto j) { return h.token(q, head, l, j); }}(row, column),
                     factor, back);
      }));
    }
  }
}

TEST_CASE("attention_context: p v of every head, side by side") {
  const Heads h;
  for (const Setting& setting : settings()) {
    const Evaluation attention{
        sim::attention_context,
        {normal_values(h.scores(), setting.format, "p"), normal_values(h.tokens(), setting.format, "v")},
        {.heads = h.heads, .context = h.context}};
    const Tensor &p = attention.inputs[0], &v = attention.inputs[1];
    const Tensor y = attention.forward(setting);
    REQUIRE(y.shape() == h.tokens());
    check(y, setting, "p v", h.of_tokens([&](auto head, auto row, auto column) {
      return MatrixProduct{setting, h.context, [&](auto i, auto l) { return h.score(p, head, i, l); },
                           [&](auto l, auto j) { return h.token(v, head, l, j); }}(row, column);
    }));
    for (const Setting& back : backward_settings(setting)) {
      const Tensor dy = normal_values(h.tokens(), back.format, "dy");
      const std::vector<Tensor> gradients = attention.backward(back, y, dy);
      check(gradients[0], back, "dp", h.of_scores([&](auto head, auto row, auto column) {
        return MatrixProduct{back, h.depth(), [&](auto i, auto l) { return h.token(dy, head, i, l); },
                             [&](auto l, auto j) { return h.token(v, head, j, l); }}(row, column);
      }));
      check(gradients[1], back, "dv", h.of_tokens([&](auto head, auto row, auto column) {
        return MatrixProduct{back, h.context, [&](auto i, auto l) { return h.score(p, head, l, i); },
                             [&](auto l, auto j) { return h.token(dy, head, l, j); }}(row, column);
      }));
    }
  }
}

TEST_CASE("attention: heads and context must divide what they share") {
  const auto forward = [](const sim::OperationOptions& options) {
    const Tensor tokens = Tensor::zeros({12, 10}, fp16::binary32);
    return Evaluation{sim::attention_scores, {tokens, tokens}, options}.forward(settings().front());
  };
  CHECK_THROWS_WITH_AS(forward({.heads = 3, .context = 4}),
                       "attention: heads: 3 is not allowed; a divisor of the width 10",
                       std::invalid_argument);
  CHECK_THROWS_WITH_AS(forward({.heads = 2, .context = 5}),
                       "attention: context: 5 is not allowed; a divisor of the number of tokens 12",
                       std::invalid_argument);
}

TEST_CASE("linear maps: threads change neither a bit nor a count") {
  const auto values = [](const Shape& shape) { return normal_values(shape, fp16::binary16, "value"); };
  // Each has enough products for threads to be started.
  const std::vector<Evaluation> evaluations{
      {sim::matmul, {values({70, 300}), values({300, 130})}},
      {sim::linear, {values({70, 300}), values({130, 300}), values({130})}},
      {sim::bias, {values({4100, 520}), values({520})}},
      {sim::conv2d, {values({23, 5, 14, 14}), values({16, 5, 3, 3}), values({16})}, {.padding = 1}},
      {sim::attention_scores, {values({5 * 80, 96}), values({5 * 80, 96})}, {.heads = 3, .context = 80}},
      {sim::attention_context, {values({15, 80, 80}), values({5 * 80, 96})}, {.heads = 3, .context = 80}},
  };
  const auto same = [](const Tensor& a, const Tensor& b) {
    return std::ranges::equal(a.elements<std::uint16_t>(), b.elements<std::uint16_t>());
  };
  for (const Evaluation& evaluation : evaluations) {
    for (const char* name : {"amp", "fp16", "hopper"}) {
      INFO(evaluation.operation.name, " ", name);
      const Setting one = *std::ranges::find(settings(), name, &Setting::name);
      Setting three = one;
      three.arithmetic.threads = 3;
      fp16::RoundingCounts one_counts, three_counts;
      const Tensor y = evaluation.forward(one, &one_counts);
      CHECK(same(y, evaluation.forward(three, &three_counts)));
      const Tensor dy = values(y.shape());
      const std::vector<Tensor> gradients = evaluation.backward(one, y, dy, &one_counts);
      const std::vector<Tensor> others = evaluation.backward(three, y, dy, &three_counts);
      std::uint64_t elements = y.size();
      for (std::size_t i = 0; i < gradients.size(); ++i) {
        CHECK(same(gradients[i], others[i]));
        elements += gradients[i].size();
      }
      CHECK(one_counts == three_counts);
      CHECK(one_counts.exact + one_counts.inexact + one_counts.overflowed == elements);
    }
  }
}
