#include "sim/ops/patches.h"

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <string>

#include "fp16/bulk.h"
#include "sim/ops/matrix_product.h"

namespace sim {
namespace {

// Short rows are copied in whole blocks. What is written beyond a row's end is overwritten by the next row.
constexpr std::size_t block = 8;

template <class Real>
void copy_row(const Real* from, std::size_t stride, std::size_t count, Real* to) {
  if (stride == 1) {
    for (std::size_t i = 0; i < count; i += block) std::memcpy(to + i, from + i, block * sizeof(Real));
  } else {
    for (std::size_t i = 0; i < count; ++i) to[i] = from[i * stride];
  }
}

template <class Real>
void add_row(const Real* terms, std::size_t stride, std::size_t count, Real* sums) {
  if (stride == 1) {
    for (std::size_t i = 0; i < count; ++i) sums[i] += terms[i];
  } else {
    for (std::size_t i = 0; i < count; ++i) sums[i * stride] += terms[i];
  }
}

/// What a format of sums keeps of them.
void round_to(fp16::Format reductions, std::span<float> sums, std::vector<std::uint16_t>& codes) {
  if (reductions != fp16::binary16) return;
  codes.resize(sums.size());
  fp16::float_to_half(sums, codes);
  fp16::half_to_float(codes, sums);
}
void round_to(fp16::Format, std::span<double>, std::vector<std::uint16_t>&) {}

std::size_t out_extent(std::size_t in, std::size_t kernel, const OperationOptions& options) {
  const std::size_t padded = in + 2 * options.padding;
  if (options.stride == 0) throw std::invalid_argument("conv2d: stride: 0 is not allowed; at least 1");
  if (kernel > padded) {
    throw std::invalid_argument("conv2d: a kernel of " + std::to_string(kernel) +
                                " does not fit into a padded image of " + std::to_string(padded));
  }
  return (padded - kernel) / options.stride + 1;
}

}  // namespace

ConvolutionSizes convolution_sizes(std::span<const Tensor* const> inputs, const OperationOptions& options) {
  const Shape &x = inputs[0]->shape(), &w = inputs[1]->shape();
  return {.batch = x[0],
          .in_channels = x[1],
          .height = x[2],
          .width = x[3],
          .out_channels = w[0],
          .kernel = w[2],
          .stride = options.stride,
          .padding = options.padding,
          .out_height = out_extent(x[2], w[2], options),
          .out_width = out_extent(x[3], w[2], options)};
}

template <class Real>
Patches<Real>::Patches(const ConvolutionSizes& sizes, Range channels, std::size_t capacity)
    : sizes_(sizes),
      channels_(channels),
      capacity_(capacity),
      planes_(channels.count() * capacity * padded_plane() + block),
      patches_(rows() * row_stride() + block),
      image_(channels.count() * sizes.plane()) {}

template <class Real>
template <class Visit>
void Patches<Real>::for_each_row(std::size_t element, std::size_t count, Visit visit) {
  const std::size_t kernel = sizes_.kernel, channel = element / (kernel * kernel),
                    i = element / kernel % kernel, j = element % kernel;
  Real* row = patches_.data() + element * row_stride();
  for (std::size_t image = 0; image < count; ++image) {
    Real* seen = plane(channel, image) + i * padded_width() + j;
    for (std::size_t y = 0; y < sizes_.out_height; ++y) {
      visit(row, seen);
      row += sizes_.out_width;
      seen += sizes_.stride * padded_width();
    }
  }
}

template <class Real>
fp16::MatrixOperand Patches<Real>::gather(const Tensor& x, Range images) {
  for (std::size_t image = 0; image < images.count(); ++image) {
    const std::size_t offset =
        ((images.first + image) * sizes_.in_channels + channels_.first) * sizes_.plane();
    const Real* row = read(x, offset, image_.size(), std::span(image_));
    for (std::size_t channel = 0; channel < channels_.count(); ++channel) {
      Real* to = plane(channel, image) + sizes_.padding * (padded_width() + 1);
      for (std::size_t y = 0; y < sizes_.height; ++y) {
        std::copy_n(row, sizes_.width, to);
        row += sizes_.width;
        to += padded_width();
      }
    }
  }
  for (std::size_t element = 0; element < rows(); ++element) {
    for_each_row(element, images.count(),
                 [&](Real* to, const Real* from) { copy_row(from, sizes_.stride, sizes_.out_width, to); });
  }
  fp16::MatrixOperand matrix = operand(patches_, rows(), images.count() * sizes_.pixels());
  matrix.row_stride = row_stride();
  return matrix;
}

template <class Real>
void Patches<Real>::scatter(const RoundedOutput& out, Range images, fp16::Format reductions, double factor) {
  std::ranges::fill(planes_, Real{0});
  for (std::size_t element = 0; element < rows(); ++element) {
    for_each_row(element, images.count(), [&](const Real* terms, Real* sums) {
      add_row(terms, sizes_.stride, sizes_.out_width, sums);
    });
    const std::size_t channel = element / (sizes_.kernel * sizes_.kernel);
    round_to(reductions, std::span(plane(channel, 0), images.count() * padded_plane()), codes_);
  }
  for (std::size_t image = 0; image < images.count(); ++image) {
    const std::size_t offset = (images.first + image) * sizes_.image();
    const std::span<Real> gradient = sums_of(out, offset, sizes_.image(), image_);
    Real* row = gradient.data();
    for (std::size_t channel = 0; channel < sizes_.in_channels; ++channel) {
      const Real* from = plane(channel, image) + sizes_.padding * (padded_width() + 1);
      for (std::size_t y = 0; y < sizes_.height; ++y) {
        std::copy_n(from, sizes_.width, row);
        row += sizes_.width;
        from += padded_width();
      }
    }
    multiply_each(gradient, factor);
    store(out, offset, std::span<const Real>(gradient));
  }
}

template class Patches<float>;
template class Patches<double>;

}  // namespace sim
