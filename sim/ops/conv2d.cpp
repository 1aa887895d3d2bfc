#include "sim/ops/conv2d.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include "fp16/vector/threads.h"
#include "sim/ops/channels.h"
#include "sim/ops/matrix_product.h"
#include "sim/ops/patches.h"
#include "sim/ops/sums.h"

namespace sim {
namespace {

/// So many images that their patches stay in the second-level cache, or a single one that has pixels enough.
/// A weight gradient runs through all images, and a tensor core's steps with it: chunks end where a step
/// does.
template <class Real>
std::size_t images_at_a_time(const ConvolutionSizes& s, const Arithmetic& arithmetic) {
  constexpr std::size_t bytes = 512 * 1024, enough_pixels = 512;
  const auto& tensor_core = arithmetic.products.tensor_core;
  const std::size_t step = tensor_core ? static_cast<std::size_t>(tensor_core->core.products_per_step) : 1;
  const std::size_t granule = step / std::gcd(step, s.pixels());
  const std::size_t images =
      s.pixels() >= enough_pixels
          ? 1
          : std::clamp<std::size_t>(bytes / (s.patch() * s.pixels() * sizeof(Real)), 1, s.batch);
  return (images + granule - 1) / granule * granule;
}

template <class Visit>
void for_each_chunk(Range images, std::size_t capacity, Visit visit) {
  for (std::size_t first = images.first; first < images.last; first += capacity)
    visit(Range{first, std::min(first + capacity, images.last)});
}

/// Between tensors of images x channels x pixels and matrices of channels x (images x pixels). A single image
/// is a matrix where it is.
template <class Real>
class ChannelRows {
 public:
  void shape(const ConvolutionSizes& s, std::size_t capacity) {
    sizes_ = s;
    capacity_ = capacity;
    rows_.resize(std::max(rows_.size(), s.out_channels * row_stride()));
    image_.resize(std::max(image_.size(), s.out_image()));
  }

  std::size_t row_stride() const { return capacity_ * sizes_.pixels(); }

  fp16::MatrixOperand gather(const Tensor& images_of_channels, Range images) {
    const std::size_t size = sizes_.out_image(), pixels = sizes_.pixels();
    if (capacity_ == 1) return images_of_channels.matrix(sizes_.out_channels, pixels, images.first * size);
    for (std::size_t image = 0; image < images.count(); ++image) {
      const Real* values = read(images_of_channels, (images.first + image) * size, size, std::span(image_));
      for (std::size_t channel = 0; channel < sizes_.out_channels; ++channel)
        std::copy_n(values + channel * pixels, pixels, row(channel) + image * pixels);
    }
    fp16::MatrixOperand matrix = operand(rows_, sizes_.out_channels, images.count() * pixels);
    matrix.row_stride = row_stride();
    return matrix;
  }

  /// Where to form the sums of some images.
  Real* sums(const RoundedOutput& out, Range images) {
    return capacity_ == 1 ? image_sums(out, images.first).data() : rows_.data();
  }

  /// Multiplies them by `factor`, adds b to each row, if there is one, and rounds.
  void scatter(const RoundedOutput& out, Range images, double factor, const Real* b) {
    const std::size_t pixels = sizes_.pixels();
    for (std::size_t image = 0; image < images.count(); ++image) {
      const std::span<Real> values = image_sums(out, images.first + image);
      for (std::size_t channel = 0; channel < sizes_.out_channels; ++channel) {
        const std::span<Real> plane = values.subspan(channel * pixels, pixels);
        if (capacity_ != 1) std::copy_n(row(channel) + image * pixels, pixels, plane.data());
        multiply_each(plane, factor);
        for (std::size_t i = 0; b != nullptr && i < pixels; ++i) plane[i] += b[channel];
      }
      store(out, (images.first + image) * sizes_.out_image(), std::span<const Real>(values));
    }
  }

 private:
  Real* row(std::size_t channel) { return rows_.data() + channel * row_stride(); }
  std::span<Real> image_sums(const RoundedOutput& out, std::size_t image) {
    return sums_of(out, image * sizes_.out_image(), sizes_.out_image(), image_);
  }

  ConvolutionSizes sizes_ = {};
  std::size_t capacity_ = 0;
  std::vector<Real> rows_, image_;
};

template <class Real>
struct Workspace {
  Patches<Real> patches;
  ChannelRows<Real> rows;
};

/// Each thread keeps its own: a step asks for the same room again and again.
template <class Real>
Workspace<Real>& workspace(const ConvolutionSizes& s, Range channels, std::size_t capacity) {
  thread_local Workspace<Real> work;
  work.patches.shape(s, channels, capacity);
  work.rows.shape(s, capacity);
  return work;
}

/// What one of the three products multiplies, and how. Operands are narrowed with blocks along the channels
/// that are summed over or, of the weight gradient, along the images of the batch, as in Microsoft's
/// microxcaling: a value is in the same block in every patch that it is part of.
struct Factors {
  NarrowedOperand images;   ///< x; of the input gradient, the gradient of the output
  NarrowedOperand partner;  ///< w; of the weight gradient, the gradient of the output
  Arithmetic arithmetic;

  double factor() const { return images.factor() * partner.factor(); }
};

template <class Real>
void forward_images(const RoundedOutput& out, const Factors& of, const Tensor* bias,
                    const ConvolutionSizes& s, Range images) {
  const std::size_t capacity = std::min(images_at_a_time<Real>(s, of.arithmetic), images.count());
  const Arithmetic arithmetic = with_one_thread(of.arithmetic);
  const fp16::MatrixOperand w = of.partner.tensor().matrix(s.out_channels, s.patch());
  std::vector<Real> bias_buffer(s.out_channels);
  const Real* b = bias ? read(*bias, 0, s.out_channels, std::span(bias_buffer)) : nullptr;
  Workspace<Real>& work = workspace<Real>(s, {0, s.in_channels}, capacity);
  for_each_chunk(images, capacity, [&](Range chunk) {
    chains(w, work.patches.gather(of.images.tensor(), chunk), work.rows.sums(out, chunk),
           work.rows.row_stride(), arithmetic);
    work.rows.scatter(out, chunk, of.factor(), b);
  });
}

Tensor forward(OperationCall& call) {
  const ConvolutionSizes s = convolution_sizes(call.inputs, call.options.get<Conv2dOptions>());
  Tensor output({s.batch, s.out_channels, s.out_height, s.out_width}, call.output_format);
  const Factors factors{
      .images = narrowed(call.narrowing, *call.inputs[0], {Product::output, Operand::activations},
                         {.length = s.in_channels, .inner = s.plane()}),
      .partner = narrowed(call.narrowing, *call.inputs[1], {Product::output, Operand::weights},
                          {.length = s.in_channels, .inner = s.kernel * s.kernel}),
      .arithmetic = call.arithmetic};
  const Tensor* bias = call.inputs.size() == 3 ? call.inputs[2] : nullptr;
  with_real(is_binary64(*call.inputs[0]), [&](auto real) {
    for_each_part(call.into(output), s.batch, threads_for(s.products(), call.arithmetic.threads), 1,
                  [&](const RoundedOutput& part, std::size_t first, std::size_t last) {
                    forward_images<decltype(real)>(part, factors, bias, s, {first, last});
                  });
  });
  return output;
}

/// One chain per weight through all images in order, pixels in row-major order within each. The chains of a
/// weight matrix (patch x out_channels) are formed, its transpose is the gradient.
template <class Real>
void weight_gradient(const OperationGradient& g, const ConvolutionSizes& s) {
  const Factors of{
      .images = narrowed(g.narrowing, *g.inputs[0], {Product::weight_gradient, Operand::activations},
                         {.length = s.batch, .inner = s.image()}),
      .partner = narrowed(g.narrowing, g.output_gradient, {Product::weight_gradient, Operand::gradients},
                          {.length = s.batch, .inner = s.out_image()}),
      .arithmetic = with_one_thread(g.arithmetic)};
  const std::size_t capacity = images_at_a_time<Real>(s, g.arithmetic);
  std::vector<Real> transposed(s.patch() * s.out_channels);
  const auto of_channels = [&](std::size_t first, std::size_t last) {
    Workspace<Real>& work = workspace<Real>(s, {first, last}, capacity);
    Real* sums = transposed.data() + first * s.kernel * s.kernel * s.out_channels;
    for_each_chunk({0, s.batch}, capacity, [&](Range chunk) {
      chains(work.patches.gather(of.images.tensor(), chunk),
             work.rows.gather(of.partner.tensor(), chunk).transposed(), sums, s.out_channels, of.arithmetic,
             chunk.first == 0 ? fp16::ChainStart::zero : fp16::ChainStart::from_output);
    });
  };
  fp16::detail::for_each_part(s.in_channels, threads_for(s.products(), g.arithmetic.threads), 1, of_channels);
  std::vector<Real> scratch;
  const std::span<Real> gradient = sums_of(g.input_gradients[1], 0, transposed.size(), scratch);
  for (std::size_t channel = 0; channel < s.out_channels; ++channel) {
    for (std::size_t element = 0; element < s.patch(); ++element)
      gradient[channel * s.patch() + element] = transposed[element * s.out_channels + channel];
  }
  multiply_each(gradient, of.factor());
  store(g.input_gradients[1], 0, std::span<const Real>(gradient));
}

/// The interleaved sum of the pixels of a channel, one image after the other.
template <class Real>
void bias_gradient(const OperationGradient& g) {
  const Channels layout(g.output_gradient);
  std::vector<Real> values, sums(layout.channels);
  for (std::size_t channel = 0; channel < layout.channels; ++channel) {
    layout.gather(g.output_gradient, channel, 1, values);
    sums[channel] = interleaved_sum(g.arithmetic.reductions, std::span<const Real>(values));
  }
  store(g.input_gradients[2], 0, std::span<const Real>(sums));
}

/// Chains over the output channels give a gradient for every patch element; those that share an input pixel
/// are then added in the order of the patch.
template <class Real>
void input_gradient(const RoundedOutput& out, const Factors& of, const ConvolutionSizes& s, Range images) {
  const std::size_t capacity = std::min(images_at_a_time<Real>(s, of.arithmetic), images.count());
  const Arithmetic arithmetic = with_one_thread(of.arithmetic);
  const fp16::MatrixOperand w = of.partner.tensor().matrix(s.out_channels, s.patch());
  Workspace<Real>& work = workspace<Real>(s, {0, s.in_channels}, capacity);
  for_each_chunk(images, capacity, [&](Range chunk) {
    chains(w.transposed(), work.rows.gather(of.images.tensor(), chunk), work.patches.data(),
           work.patches.row_stride(), arithmetic);
    work.patches.scatter(out, chunk, arithmetic.reductions, of.factor());
  });
}

void backward(const OperationGradient& g) {
  const ConvolutionSizes s = convolution_sizes(g.inputs, g.options.get<Conv2dOptions>());
  with_real(is_binary64(g.output_gradient) || is_binary64(*g.inputs[0]), [&](auto real) {
    using Real = decltype(real);
    if (g.input_gradients[0].tensor) {
      const Factors factors{
          .images = narrowed(g.narrowing, g.output_gradient, {Product::input_gradient, Operand::gradients},
                             {.length = s.out_channels, .inner = s.pixels()}),
          .partner = narrowed(g.narrowing, *g.inputs[1], {Product::input_gradient, Operand::weights},
                              {.length = s.out_channels, .inner = s.patch()}),
          .arithmetic = g.arithmetic};
      for_each_part(g.input_gradients[0], s.batch, threads_for(s.products(), g.arithmetic.threads), 1,
                    [&](const RoundedOutput& part, std::size_t first, std::size_t last) {
                      input_gradient<Real>(part, factors, s, {first, last});
                    });
    }
    if (g.input_gradients[1].tensor) weight_gradient<Real>(g, s);
    if (g.inputs.size() == 3 && g.input_gradients[2].tensor) bias_gradient<Real>(g);
  });
}

UnitMultipliers unit_multipliers(UnitScaledCall& call) {
  const ConvolutionSizes s = convolution_sizes(call.inputs, call.options.get<Conv2dOptions>());
  return call.rule.conv2d({.batch = s.batch,
                           .in_channels = s.in_channels,
                           .out_channels = s.out_channels,
                           .kernel_area = s.kernel * s.kernel,
                           .output_pixels = s.pixels(),
                           .stride = s.stride});
}

}  // namespace

constinit const Operation conv2d{
    .name = "conv2d",
    .description = "convolution with stride and padding, plus b where there is one; rounded once",
    .casts = CastClasses{.torch_autocast = AutocastClass::lower_precision,
                         .apex_o1 = AutocastClass::lower_precision},
    .is_layer = true,
    .forward = forward,
    .backward = backward,
    .unit_multipliers = unit_multipliers};

}  // namespace sim
