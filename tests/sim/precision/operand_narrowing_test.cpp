/// Linear maps on narrow operands, held to the bit against the scalar encoders of fp16/ and sums written out
/// in plain loops.

#include "sim/precision/operand_narrowing.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "fp16/block.h"
#include "fp16/codec.h"
#include "sim/loss_scaling/current_scaling.h"
#include "sim/loss_scaling/delayed_scaling.h"
#include "sim/ops/conv2d.h"
#include "sim/ops/linear.h"
#include "sim/ops/mul.h"
#include "sim/ops/operation.h"
#include "sim/ops/sum.h"
#include "sim/tape/tape.h"

namespace {

using sim::Operand;
using sim::OperandUse;
using sim::Product;
using sim::Shape;
using sim::Tensor;

const std::vector<std::string> narrow_policies{"fp8", "mxfp8", "mxfp4", "nvfp4"};

float to_bfloat16(float value) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(fp16::encode<fp16::bfloat16>(value).bits) << 16);
}

/// bfloat16 numbers whose sizes differ by some octaves from one index of the first dimension to the next.
Tensor uneven_values(const Shape& shape, std::string_view purpose) {
  const sim::RandomStream random(5, purpose);
  std::vector<float> values(sim::element_count(shape));
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::size_t row = i * shape[0] / values.size();
    values[i] = std::ldexp(random.normal(i), -static_cast<int>(row * 5 % 7));
  }
  Tensor tensor(shape, fp16::bfloat16);
  sim::store({&tensor}, 0, std::span<const float>(values));
  return tensor;
}

std::vector<std::uint16_t> codes_of(const Tensor& tensor) {
  const auto codes = tensor.elements<std::uint16_t>();
  return {codes.begin(), codes.end()};
}

/// Values in the place of an operand, and what their products are multiplied by.
struct Numbers {
  std::vector<float> values;
  double factor = 1;
};

/// The recipes once more, one number or one line at a time.
struct Recipe {
  std::string policy;
  const sim::RandomStream& random;
  std::map<std::string, float> scales;  ///< per tensor; 1 where there is none

  bool draws(const OperandUse& use) const {
    return (policy == "mxfp4" || policy == "nvfp4") && use.operand == Operand::gradients;
  }
  std::uint32_t drawn(const OperandUse& use, std::size_t index) const {
    const std::uint64_t part =
        static_cast<std::uint64_t>(use.product) * 3 + static_cast<std::uint64_t>(use.operand);
    return random.bits(part * (std::uint64_t{1} << 48) + index);
  }

  template <const fp16::Format& F>
  Numbers cast(const std::vector<float>& values, std::string_view tensor) const {
    const auto found = scales.find(std::string(tensor));
    const float scale = found == scales.end() ? 1 : found->second;
    Numbers result{.values = values, .factor = 1.0 / scale};
    for (float& value : result.values) {
      const auto code = fp16::encode<F>(value * scale, {.saturate = true}).bits;
      value = std::bit_cast<float>(fp16::convert<fp16::binary32, F>(code).bits);
    }
    return result;
  }

  template <const fp16::BlockFormat& B>
  Numbers in_blocks(std::vector<float> values, const OperandUse& use, const fp16::BlockAxis& axis) const {
    fp16::BlockOptions options{.scale_rule = fp16::ScaleRule::rceil};
    if constexpr (B.has_tensor_scale)
      options.tensor_scale = fp16::tensor_scale<B>(fp16::absolute_maximum(values));
    std::vector<float> line(axis.length);
    std::vector<fp16::ElementBits<B>> elements(axis.length);
    std::vector<fp16::ScaleBits<B>> block_scales(B.block_count(axis.length));
    std::vector<std::uint64_t> bits(draws(use) ? axis.length : 0);
    if (draws(use)) options.element.rounding = fp16::Rounding::stochastic;
    options.random_bits = bits;
    for (std::size_t first = 0; first < values.size(); ++first) {
      if (first / axis.inner % axis.length != 0) continue;
      for (std::size_t i = 0; i < axis.length; ++i) {
        const std::size_t index = first + i * axis.inner;
        line[i] = values[index];
        if (draws(use)) bits[i] = std::uint64_t{drawn(use, index)} << 32 | 0xffffffffu;
      }
      fp16::encode_blocks<B>(line, block_scales, elements, options);
      fp16::decode_blocks<B>(elements, block_scales, std::span(line));
      for (std::size_t i = 0; i < axis.length; ++i) values[first + i * axis.inner] = line[i];
    }
    return {std::move(values), options.tensor_scale};
  }

  Numbers narrow(const Tensor& tensor, const OperandUse& use, const fp16::BlockAxis& axis) const {
    const std::vector<float> values = tensor.to_floats();
    if (policy == "mxfp8") return in_blocks<fp16::mxfp8_e4m3>(values, use, axis);
    if (policy == "mxfp4") return in_blocks<fp16::mxfp4>(values, use, axis);
    if (policy == "nvfp4") return in_blocks<fp16::nvfp4>(values, use, axis);
    if (use.operand == Operand::gradients) return cast<fp16::e5m2>(values, "layer.gradients");
    return cast<fp16::e4m3>(values, use.operand == Operand::weights ? "layer.weights" : "layer.activations");
  }
};

/// A finished sum on its way to bfloat16.
std::uint16_t completed(float sum, double factor, const float* bias = nullptr) {
  float value = static_cast<float>(sum * factor);
  if (bias) value += *bias;
  return static_cast<std::uint16_t>(fp16::encode<fp16::bfloat16>(value).bits);
}

using Codes = std::vector<std::uint16_t>;

struct Results {
  Codes output, input_gradient, weight_gradient;
};

/// An operation with x, w, b and the gradient of its output.
struct Layer {
  const sim::Operation& operation;
  std::vector<Tensor> inputs;
  Tensor dy;
  sim::OperationOptions options = {};

  Results run(const sim::OperandNarrowing* narrowing, int threads = 1) const {
    std::vector<const Tensor*> pointers;
    for (const Tensor& input : inputs) pointers.push_back(&input);
    const sim::Arithmetic arithmetic{.threads = threads};
    const sim::RandomStream unused(0, "unused");
    sim::OperationCall call{.inputs = pointers,
                            .options = options,
                            .arithmetic = arithmetic,
                            .output_format = fp16::bfloat16,
                            .training = true,
                            .random = unused,
                            .narrowing = narrowing};
    const Tensor output = operation.forward(call);
    std::vector<Tensor> gradients;
    for (const Tensor& input : inputs) gradients.emplace_back(input.shape(), fp16::bfloat16);
    std::vector<sim::RoundedOutput> places;
    for (Tensor& gradient : gradients) places.push_back({&gradient});
    operation.backward({.inputs = pointers,
                        .output = output,
                        .saved = {},
                        .options = options,
                        .arithmetic = arithmetic,
                        .training = true,
                        .random = unused,
                        .narrowing = narrowing,
                        .output_gradient = dy,
                        .input_gradients = places});
    return {codes_of(output), codes_of(gradients[0]), codes_of(gradients[1])};
  }
};

constexpr std::size_t batch = 37, in_features = 45, out_features = 35;

Layer linear_layer() {
  return {sim::linear,
          {uneven_values({batch, in_features}, "x"), uneven_values({out_features, in_features}, "w"),
           uneven_values({out_features}, "b")},
          uneven_values({batch, out_features}, "dy")};
}

Results linear_by_hand(const Layer& layer, const Recipe& recipe) {
  const Tensor &x = layer.inputs[0], &w = layer.inputs[1], &dy = layer.dy;
  const std::vector<float> b = layer.inputs[2].to_floats();
  Results results;
  Numbers left = recipe.narrow(x, {Product::output, Operand::activations}, {in_features});
  Numbers right = recipe.narrow(w, {Product::output, Operand::weights}, {in_features});
  for (std::size_t i = 0; i < batch; ++i) {
    for (std::size_t j = 0; j < out_features; ++j) {
      float sum = 0;
      for (std::size_t k = 0; k < in_features; ++k)
        sum = std::fma(left.values[i * in_features + k], right.values[j * in_features + k], sum);
      results.output.push_back(completed(sum, left.factor * right.factor, &b[j]));
    }
  }
  left = recipe.narrow(dy, {Product::input_gradient, Operand::gradients}, {out_features});
  right = recipe.narrow(w, {Product::input_gradient, Operand::weights}, {out_features, in_features});
  for (std::size_t i = 0; i < batch; ++i) {
    for (std::size_t j = 0; j < in_features; ++j) {
      float sum = 0;
      for (std::size_t k = 0; k < out_features; ++k)
        sum = std::fma(left.values[i * out_features + k], right.values[k * in_features + j], sum);
      results.input_gradient.push_back(completed(sum, left.factor * right.factor));
    }
  }
  left = recipe.narrow(dy, {Product::weight_gradient, Operand::gradients}, {batch, out_features});
  right = recipe.narrow(x, {Product::weight_gradient, Operand::activations}, {batch, in_features});
  for (std::size_t i = 0; i < out_features; ++i) {
    for (std::size_t j = 0; j < in_features; ++j) {
      float sum = 0;
      for (std::size_t k = 0; k < batch; ++k)
        sum = std::fma(left.values[k * out_features + i], right.values[k * in_features + j], sum);
      results.weight_gradient.push_back(completed(sum, left.factor * right.factor));
    }
  }
  return results;
}

constexpr std::size_t images = 35, in_channels = 18, out_channels = 20, extent = 5, kernel = 3;

/// A convolution with padding 1.
struct Convolution {
  std::size_t stride;

  std::size_t out_extent() const { return (extent + 2 - kernel) / stride + 1; }
  std::size_t pixels() const { return out_extent() * out_extent(); }

  Layer layer() const {
    const sim::Conv2dOptions options{.stride = stride, .padding = 1};
    return {
        sim::conv2d,
        {uneven_values({images, in_channels, extent, extent}, "x"),
         uneven_values({out_channels, in_channels, kernel, kernel}, "w"), uneven_values({out_channels}, "b")},
        uneven_values({images, out_channels, out_extent(), out_extent()}, "dy"),
        options};
  }

  /// Calls visit(index into an image, index into a filter) for what one pixel sees, padding left out.
  template <class Visit>
  void for_each_seen(std::size_t pixel, Visit visit) const {
    for (std::size_t channel = 0; channel < in_channels; ++channel) {
      for (std::size_t i = 0; i < kernel; ++i) {
        for (std::size_t j = 0; j < kernel; ++j) {
          const std::size_t y = pixel / out_extent() * stride + i, x = pixel % out_extent() * stride + j;
          if (y < 1 || y > extent || x < 1 || x > extent) continue;
          visit((channel * extent + y - 1) * extent + x - 1, (channel * kernel + i) * kernel + j);
        }
      }
    }
  }
};

constexpr std::size_t image_size = in_channels * extent * extent, filter_size = in_channels * kernel * kernel;

Codes convolution_output(const Convolution& c, const Layer& layer, const Recipe& recipe) {
  const Numbers x =
      recipe.narrow(layer.inputs[0], {Product::output, Operand::activations}, {in_channels, extent * extent});
  const Numbers w =
      recipe.narrow(layer.inputs[1], {Product::output, Operand::weights}, {in_channels, kernel * kernel});
  const std::vector<float> b = layer.inputs[2].to_floats();
  Codes output;
  for (std::size_t image = 0; image < images; ++image) {
    for (std::size_t channel = 0; channel < out_channels; ++channel) {
      for (std::size_t pixel = 0; pixel < c.pixels(); ++pixel) {
        float sum = 0;
        c.for_each_seen(pixel, [&](std::size_t at, std::size_t weight) {
          sum = std::fma(w.values[channel * filter_size + weight], x.values[image * image_size + at], sum);
        });
        output.push_back(completed(sum, x.factor * w.factor, &b[channel]));
      }
    }
  }
  return output;
}

/// Sums over the channels for each element of each patch; they are added up in the order of the patch, where
/// several pixels see one input.
Codes convolution_input_gradient(const Convolution& c, const Layer& layer, const Recipe& recipe) {
  const Numbers dy =
      recipe.narrow(layer.dy, {Product::input_gradient, Operand::gradients}, {out_channels, c.pixels()});
  const Numbers w = recipe.narrow(layer.inputs[1], {Product::input_gradient, Operand::weights},
                                  {out_channels, filter_size});
  Codes gradient;
  for (std::size_t image = 0; image < images; ++image) {
    std::vector<float> sums(image_size);
    for (std::size_t element = 0; element < filter_size; ++element) {
      for (std::size_t pixel = 0; pixel < c.pixels(); ++pixel) {
        c.for_each_seen(pixel, [&](std::size_t at, std::size_t weight) {
          if (weight != element) return;
          float term = 0;
          for (std::size_t channel = 0; channel < out_channels; ++channel)
            term = std::fma(w.values[channel * filter_size + weight],
                            dy.values[(image * out_channels + channel) * c.pixels() + pixel], term);
          sums[at] += term;
        });
      }
    }
    for (const float sum : sums) gradient.push_back(completed(sum, dy.factor * w.factor));
  }
  return gradient;
}

Codes convolution_weight_gradient(const Convolution& c, const Layer& layer, const Recipe& recipe) {
  const Numbers x =
      recipe.narrow(layer.inputs[0], {Product::weight_gradient, Operand::activations}, {images, image_size});
  const Numbers dy = recipe.narrow(layer.dy, {Product::weight_gradient, Operand::gradients},
                                   {images, out_channels * c.pixels()});
  std::vector<float> sums(out_channels * filter_size);
  for (std::size_t image = 0; image < images; ++image) {
    for (std::size_t pixel = 0; pixel < c.pixels(); ++pixel) {
      c.for_each_seen(pixel, [&](std::size_t at, std::size_t weight) {
        for (std::size_t channel = 0; channel < out_channels; ++channel) {
          float& sum = sums[channel * filter_size + weight];
          sum = std::fma(x.values[image * image_size + at],
                         dy.values[(image * out_channels + channel) * c.pixels() + pixel], sum);
        }
      });
    }
  }
  Codes gradient;
  for (const float sum : sums) gradient.push_back(completed(sum, x.factor * dy.factor));
  return gradient;
}

void check_equal(const Results& results, const Results& expected) {
  CHECK(results.output == expected.output);
  CHECK(results.input_gradient == expected.input_gradient);
  CHECK(results.weight_gradient == expected.weight_gradient);
}

TEST_CASE("linear under each narrow policy is that of narrowed operands, forward and backward") {
  const sim::RandomStream random(9, "linear");
  const Layer layer = linear_layer();
  const Results wide = layer.run(nullptr);
  for (const std::string& name : narrow_policies) {
    CAPTURE(name);
    const sim::OperandNarrowing narrowing(sim::find_precision_policy(name).operands,
                                          {.layer = "layer", .random = random});
    const Results results = layer.run(&narrowing);
    check_equal(results, linear_by_hand(layer, {name, random}));
    CHECK(results.output != wide.output);
    CHECK(results.weight_gradient != wide.weight_gradient);
  }
}

TEST_CASE("conv2d under each narrow policy is that of narrowed operands, forward and backward") {
  const sim::RandomStream random(9, "conv2d");
  for (const std::size_t stride : {1, 2}) {
    const Convolution convolution{stride};
    const Layer layer = convolution.layer();
    for (const std::string& name : narrow_policies) {
      CAPTURE(name);
      CAPTURE(stride);
      const Recipe recipe{name, random};
      const sim::OperandNarrowing narrowing(sim::find_precision_policy(name).operands,
                                            {.layer = "layer", .random = random, .threads = 2});
      const Results expected{convolution_output(convolution, layer, recipe),
                             convolution_input_gradient(convolution, layer, recipe),
                             convolution_weight_gradient(convolution, layer, recipe)};
      check_equal(layer.run(&narrowing, 1), expected);
      check_equal(layer.run(&narrowing, 2), expected);
    }
  }
}

/// A layer whose tensors have the largest magnitudes given.
Layer layer_with_maxima(float x_max, float w_max, float dy_max) {
  Layer layer = linear_layer();
  const auto rescale = [](const Tensor& tensor, float maximum) {
    std::vector<float> values = tensor.to_floats();
    const float largest = fp16::absolute_maximum(values);
    for (float& value : values) value = to_bfloat16(value / largest * maximum);
    *std::ranges::max_element(values) = maximum;
    Tensor result(tensor.shape(), fp16::bfloat16);
    sim::store({&result}, 0, std::span<const float>(values));
    return result;
  };
  layer.inputs[0] = rescale(layer.inputs[0], x_max);
  layer.inputs[1] = rescale(layer.inputs[1], w_max);
  layer.dy = rescale(layer.dy, dy_max);
  return layer;
}

struct StepScales {
  float x_max, w_max, dy_max;
  float activations, weights, gradients;
};

void check_scales(sim::TensorScaler& scaler, const std::vector<StepScales>& steps) {
  const sim::RandomStream random(9, "fp8");
  for (const StepScales& step : steps) {
    CAPTURE(step.x_max);
    const Layer layer = layer_with_maxima(step.x_max, step.w_max, step.dy_max);
    const sim::OperandNarrowing narrowing(
        sim::find_precision_policy("fp8").operands,
        {.scaler = &scaler, .layer = "layer", .random = random, .threads = 2});
    check_equal(layer.run(&narrowing), linear_by_hand(layer, {"fp8",
                                                              random,
                                                              {{"layer.activations", step.activations},
                                                               {"layer.weights", step.weights},
                                                               {"layer.gradients", step.gradients}}}));
    scaler.end_step();
  }
}

TEST_CASE("fp8 with delayed scales: those of the steps before, and saturation where they are too large") {
  sim::DelayedScaling scaler({.amax_history_length = 2});
  check_scales(scaler, {{2, 0.5f, 0x1p-20f, 1, 1, 1},
                        {7, 0.5f, 0x1p-18f, 224, 896, 0x1.cp35f},
                        {1, 0.25f, 0x1p-30f, 64, 896, 0x1.cp33f},
                        {1, 0.25f, 0x1p-30f, 64, 896, 0x1.cp33f},
                        {1, 0.25f, 0x1p-30f, 448, 1792, 0x1.cp45f}});
  const names::NamedValues state = scaler.state();
  const auto has = [&](const std::string& name) {
    return std::ranges::any_of(state, [&](const auto& entry) { return entry.first == name; });
  };
  CHECK(has("layer.activations/scale"));
  CHECK(has("layer.weights/scale"));
  CHECK(has("layer.gradients/scale"));
}

TEST_CASE("fp8 with current scales: those of the very tensors") {
  sim::CurrentScaling scaler;
  check_scales(scaler, {{2, 0.5f, 0x1p-20f, 224, 896, 0x1.cp35f},
                        {7, 0.5f, 0x1p-18f, 64, 896, 0x1.cp33f},
                        {1, 0.25f, 0x1p-30f, 448, 1792, 0x1.cp45f}});
}

TEST_CASE("NaNs stay and do not count for the scale, infinities saturate") {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  const Tensor tensor =
      Tensor::from({4}, std::vector<float>{2, -infinity, std::numeric_limits<float>::quiet_NaN(), -0.0f});
  sim::CurrentScaling scaler;
  const sim::RandomStream random(1, "special");
  const sim::OperandNarrowing narrowing(sim::find_precision_policy("fp8").operands,
                                        {.scaler = &scaler, .random = random});
  const auto narrowed = narrowing.narrow(tensor, {Product::output, Operand::weights}, {.length = 4});
  const std::vector<float> values = narrowed.tensor().to_floats();
  CHECK(narrowed.factor() == 1);  // of an infinite maximum
  CHECK(values[0] == 2);
  CHECK(values[1] == -448);
  CHECK(std::isnan(values[2]));
  CHECK(std::signbit(values[3]));

  const Tensor with_nan =
      Tensor::from({2}, std::vector<float>{1.75f, std::numeric_limits<float>::quiet_NaN()});
  const auto scaled = narrowing.narrow(with_nan, {Product::output, Operand::weights}, {.length = 2});
  CHECK(scaled.factor() == 1.0 / 256);
  CHECK(scaled.tensor().element(0) == 448);
}

TEST_CASE("large operands, narrowed on several threads, are those of the scalar encoders") {
  const Tensor tensor = uneven_values({300, 301}, "large");
  const sim::RandomStream random(2, "large");
  for (const std::string& name : narrow_policies) {
    for (const fp16::BlockAxis axis : {fp16::BlockAxis{301}, fp16::BlockAxis{300, 301}}) {
      CAPTURE(name);
      CAPTURE(axis.inner);
      const OperandUse use{Product::input_gradient, Operand::gradients};
      const sim::OperandNarrowing narrowing(sim::find_precision_policy(name).operands,
                                            {.layer = "layer", .random = random, .threads = 3});
      const sim::NarrowedOperand narrowed = narrowing.narrow(tensor, use, axis);
      const Numbers expected = Recipe{name, random}.narrow(tensor, use, axis);
      CHECK(narrowed.tensor().to_floats() == expected.values);
      CHECK(narrowed.factor() == expected.factor);
    }
  }
}

/// The mean of n independent roundings differs from the value by more than t units with a probability below
/// 2 exp(-2 n t^2) (Hoeffding), plus the 2^-32 by which 32 random bits may be off. With n = 4096 and 70
/// values, t = 0.06 is exceeded with a probability below 3e-11; a value rounded to nearest is off by up to
/// half a unit. In NVFP4 the largest values of a block may lie above 6 scales, where they saturate.
TEST_CASE("gradients rounded stochastically are reproducible and unbiased") {
  const Tensor tensor = uneven_values({2, 35}, "gradients");
  const std::vector<float> exact = tensor.to_floats();
  const OperandUse use{Product::weight_gradient, Operand::gradients};
  for (const std::string name : {"mxfp4", "nvfp4"}) {
    CAPTURE(name);
    const sim::OperandFormats& formats = sim::find_precision_policy(name).operands;
    const auto narrow = [&](int step) {
      const sim::RandomStream random(3, "step " + std::to_string(step));
      return sim::OperandNarrowing(formats, {.random = random}).narrow(tensor, use, {.length = 35});
    };
    CHECK(narrow(1).tensor().to_floats() == narrow(1).tensor().to_floats());
    CHECK(narrow(1).tensor().to_floats() != narrow(2).tensor().to_floats());

    constexpr int draws = 4096;
    std::vector<double> sums(exact.size());
    std::vector<float> lowest(exact.size(), 1e9f), highest(exact.size(), -1e9f);
    for (int step = 0; step < draws; ++step) {
      const sim::NarrowedOperand narrowed = narrow(step);
      for (std::size_t i = 0; i < exact.size(); ++i) {
        const auto value = static_cast<float>(narrowed.tensor().element(i) * narrowed.factor());
        sums[i] += value;
        lowest[i] = std::min(lowest[i], value);
        highest[i] = std::max(highest[i], value);
      }
    }
    std::size_t rounded = 0;
    for (std::size_t i = 0; i < exact.size(); ++i) {
      const double unit = highest[i] - lowest[i];
      if (unit == 0) continue;  // exact, or above 6 scales
      ++rounded;
      CHECK(std::fabs(sums[i] / draws - exact[i]) < 0.06 * unit);
    }
    CHECK(rounded > 40);
  }
}

/// x w^T, summed up: the gradient of the output is one everywhere.
struct OneLayer {
  Tensor x = uneven_values({batch, in_features}, "x");
  Tensor w = uneven_values({out_features, in_features}, "w");

  sim::SiteGradients gradients(const sim::PrecisionPolicy& policy, const sim::TapeOptions& options,
                               const sim::BackwardOptions& backward = {}) const {
    sim::Tape tape(policy, options);
    const sim::Variable input = tape.constant(x), weight = tape.parameter("w", w);
    const sim::Variable y = tape.apply(sim::linear, {input, weight}, "layer");
    const sim::Variable loss = tape.apply(sim::sum, {tape.apply(sim::mul, {y, y})});
    return tape.backward(loss, backward);
  }
  Codes codes(const sim::PrecisionPolicy& policy, const sim::TapeOptions& options = {}) const {
    return codes_of(gradients(policy, options).gradients[0]);
  }
};

TEST_CASE("the tape narrows by the policy, keyed by seed and step, and shows the scaler every operand") {
  const OneLayer layer;
  const auto& mxfp4 = sim::find_precision_policy("mxfp4");
  CHECK(layer.codes(mxfp4, {.seed = 1, .step = 1}) ==
        layer.codes(mxfp4, {.seed = 1, .step = 1, .threads = 2}));
  CHECK(layer.codes(mxfp4, {.seed = 1, .step = 1}) != layer.codes(mxfp4, {.seed = 1, .step = 2}));
  CHECK(layer.codes(mxfp4, {.seed = 1, .step = 1}) != layer.codes(mxfp4, {.seed = 2, .step = 1}));

  sim::DelayedScaling scaler;
  layer.codes(sim::find_precision_policy("fp8"), {.tensor_scaler = &scaler});
  std::vector<std::string> seen;
  for (const auto& [name, value] : scaler.state()) {
    if (name.ends_with("/amax") && value > 0) seen.push_back(name);
  }
  CHECK(seen ==
        std::vector<std::string>{"layer.activations/amax", "layer.gradients/amax", "layer.weights/amax"});
}

TEST_CASE("a twin narrows nothing and is not shown to the scaler") {
  const OneLayer layer;
  sim::PrecisionPolicy policy = sim::find_precision_policy("fp8");
  policy.operands.activations = policy.operands.weights = {};  // the same forward values as under bf16
  sim::DelayedScaling scaler;
  const sim::TapeOptions options{.tensor_scaler = &scaler};
  const auto twin = layer.gradients(policy, options, {.twin = fp16::binary32}).gradients[0].to_floats();
  CHECK(twin == layer.gradients(sim::find_precision_policy("bf16"), {}, {.twin = fp16::binary32})
                    .gradients[0]
                    .to_floats());
  CHECK(scaler.state().empty());
  CHECK(layer.codes(policy) != layer.codes(sim::find_precision_policy("bf16")));
}

TEST_CASE("operands that are multiplied as stored are the very tensors, and change no bit") {
  const Layer layer = linear_layer();
  const sim::RandomStream random(1, "unused");
  const sim::OperandFormats as_stored;
  CHECK_FALSE(as_stored.narrows());
  const sim::OperandNarrowing narrowing(as_stored, {.random = random});
  const auto operand = narrowing.narrow(layer.dy, {Product::output, Operand::gradients}, {.length = 1});
  CHECK(&operand.tensor() == &layer.dy);
  CHECK(operand.factor() == 1);
  check_equal(layer.run(&narrowing), layer.run(nullptr));
  for (const sim::PrecisionPolicy& policy : sim::precision_policies()) {
    CAPTURE(policy.name);
    const bool narrow = std::ranges::count(narrow_policies, policy.name) != 0;
    CHECK(policy.operands.narrows() == narrow);
  }
}

TEST_CASE("narrow policies are bf16 but for their operands") {
  const auto bf16 = sim::roles_of(sim::find_precision_policy("bf16"));
  const std::map<std::string, std::vector<std::string>> expected{
      {"fp8", {"e4m3 per tensor", "e4m3 per tensor", "e5m2 per tensor"}},
      {"mxfp8", {"mxfp8_e4m3 rceil", "mxfp8_e4m3 rceil", "mxfp8_e4m3 rceil"}},
      {"mxfp4", {"mxfp4 rceil", "mxfp4 rceil", "mxfp4 rceil, stochastic"}},
      {"nvfp4", {"nvfp4", "nvfp4", "nvfp4, stochastic"}}};
  for (const auto& [name, operands] : expected) {
    CAPTURE(name);
    const auto roles = sim::roles_of(sim::find_precision_policy(name));
    std::vector<std::string> found;
    for (std::size_t i = 0; i < roles.size(); ++i) {
      if (roles[i].first.starts_with("operand_")) {
        found.push_back(roles[i].second);
        CHECK(bf16[i].second == "as stored");
      } else if (roles[i].first != "loss_scaling") {
        CHECK(roles[i] == bf16[i]);
      }
    }
    CHECK(found == operands);
  }
  CHECK(sim::find_precision_policy("fp8").scaler_spec() == "delayed");
  CHECK(sim::find_precision_policy("nvfp4").scaler_spec() == "none");
}

}  // namespace
