#include <vector>

#include "sim/ops/matrix_product.h"
#include "sim/ops/operation.h"

namespace sim {
namespace {

/// x: batch x in_channels x height x width; w: out_channels x in_channels x kernel x kernel; b: out_channels.
/// A patch is what one output pixel sees, in the order (channel, kernel row, kernel column): the order of the
/// chains.
struct Geometry {
  std::size_t batch, in_channels, height, width, out_channels, kernel, stride, padding, out_height, out_width;
  std::size_t image() const { return in_channels * height * width; }
  std::size_t patch() const { return in_channels * kernel * kernel; }
  std::size_t pixels() const { return out_height * out_width; }
};

Geometry geometry_of(std::span<const Tensor* const> inputs, const OperationOptions& options) {
  const Shape &x = inputs[0]->shape(), &w = inputs[1]->shape();
  const auto out_extent = [&](std::size_t in) {
    return (in + 2 * options.padding - w[2]) / options.stride + 1;
  };
  return {.batch = x[0],
          .in_channels = x[1],
          .height = x[2],
          .width = x[3],
          .out_channels = w[0],
          .kernel = w[2],
          .stride = options.stride,
          .padding = options.padding,
          .out_height = out_extent(x[2]),
          .out_width = out_extent(x[3])};
}

/// Calls visit(index in the patch x pixels matrix, index in the image) in the order of the patch, leaving out
/// the padding.
template <class Visit>
void for_each_patch_element(const Geometry& s, Visit visit) {
  std::size_t element = 0;
  for (std::size_t channel = 0; channel < s.in_channels; ++channel) {
    for (std::size_t i = 0; i < s.kernel; ++i) {
      for (std::size_t j = 0; j < s.kernel; ++j, ++element) {
        for (std::size_t row = 0; row < s.out_height; ++row) {
          const std::size_t y = row * s.stride + i;  // in the padded image
          if (y < s.padding || y >= s.height + s.padding) continue;
          const std::size_t image_row = (channel * s.height + y - s.padding) * s.width;
          for (std::size_t column = 0; column < s.out_width; ++column) {
            const std::size_t x = column * s.stride + j;
            if (x < s.padding || x >= s.width + s.padding) continue;
            visit(element * s.pixels() + row * s.out_width + column, image_row + x - s.padding);
          }
        }
      }
    }
  }
}

/// patches (patch x pixels) of one image; padding is zero. `buffer` holds at least an image.
template <class Real>
void gather_patches(const Geometry& s, const Tensor& x, std::size_t image, std::vector<Real>& buffer,
                    std::vector<Real>& patches) {
  const Real* pixels = read(x, image * s.image(), s.image(), buffer);
  patches.assign(s.patch() * s.pixels(), Real{0});
  for_each_patch_element(s, [&](std::size_t to, std::size_t from) { patches[to] = pixels[from]; });
}

template <class Real>
Tensor forward_in(OperationCall& call, const Geometry& s) {
  Tensor output({s.batch, s.out_channels, s.out_height, s.out_width}, call.output_format);
  const fp16::MatrixOperand w = call.inputs[1]->matrix(s.out_channels, s.patch());
  std::vector<Real> patches, image_buffer(s.image()), bias_buffer(s.out_channels),
      sums(s.out_channels * s.pixels());
  const Real* b = read(*call.inputs[2], 0, s.out_channels, bias_buffer);
  for (std::size_t image = 0; image < s.batch; ++image) {
    gather_patches(s, *call.inputs[0], image, image_buffer, patches);
    chains(w, operand(patches, s.patch(), s.pixels()), sums.data(), call.accumulation);
    for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += b[i / s.pixels()];
    store({&output}, image * sums.size(), std::span<const Real>(sums));
  }
  return output;
}

Tensor forward(OperationCall& call) {
  const Geometry s = geometry_of(call.inputs, call.options);
  return with_real(is_binary64(*call.inputs[0]),
                   [&](auto real) { return forward_in<decltype(real)>(call, s); });
}

/// One chain per weight through all images in order, pixels in row-major order within each.
template <class Real>
void weight_gradient(const OperationGradient& g, const Geometry& s) {
  std::vector<Real> patches, buffer(s.image()), sums(s.out_channels * s.patch());
  for (std::size_t image = 0; image < s.batch; ++image) {
    gather_patches(s, *g.inputs[0], image, buffer, patches);
    chains(g.output_gradient.matrix(s.out_channels, s.pixels(), image * s.out_channels * s.pixels()),
           operand(patches, s.patch(), s.pixels()).transposed(), sums.data(), g.accumulation,
           image == 0 ? fp16::ChainStart::zero : fp16::ChainStart::from_output);
  }
  store(g.input_gradients[1], 0, std::span<const Real>(sums));
}

/// One chain per channel through all images in order, pixels in row-major order within each.
template <class Real>
void bias_gradient(const OperationGradient& g, const Geometry& s) {
  std::vector<Real> buffer(s.pixels()), sums(s.out_channels);
  for (std::size_t image = 0; image < s.batch; ++image) {
    for (std::size_t channel = 0; channel < s.out_channels; ++channel) {
      const Real* dy =
          read(g.output_gradient, (image * s.out_channels + channel) * s.pixels(), s.pixels(), buffer);
      for (std::size_t pixel = 0; pixel < s.pixels(); ++pixel)
        add_term(sums[channel], dy[pixel], g.accumulation);
    }
  }
  store(g.input_gradients[2], 0, std::span<const Real>(sums));
}

/// Chains over the output channels give a gradient for every patch element; those that share an input pixel
/// are then added in the order of the patch.
template <class Real>
void input_gradient(const OperationGradient& g, const Geometry& s) {
  const fp16::MatrixOperand w = g.inputs[1]->matrix(s.out_channels, s.patch());
  std::vector<Real> patches(s.patch() * s.pixels()), sums(s.image());
  for (std::size_t image = 0; image < s.batch; ++image) {
    chains(w.transposed(),
           g.output_gradient.matrix(s.out_channels, s.pixels(), image * s.out_channels * s.pixels()),
           patches.data(), g.accumulation);
    sums.assign(s.image(), Real{0});
    for_each_patch_element(
        s, [&](std::size_t from, std::size_t to) { add_term(sums[to], patches[from], g.accumulation); });
    store(g.input_gradients[0], image * s.image(), std::span<const Real>(sums));
  }
}

void backward(const OperationGradient& g) {
  const Geometry s = geometry_of(g.inputs, g.options);
  with_real(is_binary64(g.output_gradient), [&](auto real) {
    using Real = decltype(real);
    if (g.input_gradients[0].tensor) input_gradient<Real>(g, s);
    if (g.input_gradients[1].tensor) weight_gradient<Real>(g, s);
    if (g.input_gradients[2].tensor) bias_gradient<Real>(g, s);
  });
}

}  // namespace

constinit const Operation conv2d{
    .name = "conv2d",
    .description = "two-dimensional convolution with stride, padding and bias, rounded once",
    .autocast = AutocastClass::lower_precision,
    .is_layer = true,
    .forward = forward,
    .backward = backward};

}  // namespace sim
