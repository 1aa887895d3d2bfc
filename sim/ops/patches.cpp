#include "sim/ops/patches.h"

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <string>
#include <type_traits>

#include "fp16/bulk.h"
#include "fp16/config.h"
#include "sim/ops/matrix_product.h"

namespace sim {
namespace {

// Rows are short, and loops over them would be all beginning and end: they are taken in whole blocks.
constexpr std::size_t block = 8;

template <class Real>
struct Block {
  typedef Real Vector __attribute__((vector_size(block * sizeof(Real))));
  typedef std::conditional_t<sizeof(Real) == 4, std::int32_t, std::int64_t> Integer;
  typedef Integer Mask __attribute__((vector_size(block * sizeof(Real))));
};

/// The rows of planes that a kernel position sees, `count` elements of each.
struct SeenRows {
  std::size_t planes, plane_stride, rows, row_stride, count;
};

/// Calls visit(row, seen) for all rows of the matrix, which follow each other, and those of the planes.
template <class Real, class Seen, class Visit>
inline void for_each_row(const SeenRows& s, Real* row, Seen* planes, Visit visit) {
  for (std::size_t plane = 0; plane < s.planes; ++plane) {
    Seen* seen = planes + plane * s.plane_stride;
    for (std::size_t y = 0; y < s.rows; ++y) {
      visit(row, seen);
      row += s.count;
      seen += s.row_stride;
    }
  }
}

/// What is written beyond a row's end is overwritten by the next row.
template <class Real, class Blocks>
FP16_VECTOR_CLONES void copy_rows(const SeenRows& s, Blocks blocks, const Real* planes, Real* matrix) {
  for_each_row(s, matrix, planes, [blocks](Real* row, const Real* seen) {
    for (std::size_t i = 0; i < blocks * block; i += block)
      std::memcpy(row + i, seen + i, block * sizeof(Real));
  });
}

/// Beyond a row's end -0 is added, which changes nothing.
template <class Real, class Blocks>
FP16_VECTOR_CLONES void add_rows(const SeenRows& s, Blocks blocks, const Real* matrix, Real* planes) {
  using Vector = typename Block<Real>::Vector;
  using Mask = typename Block<Real>::Mask;
  Mask in_last_block;
  for (std::size_t i = 0; i < block; ++i) in_last_block[i] = (blocks - 1) * block + i < s.count ? -1 : 0;
  for_each_row(s, matrix, planes, [&](const Real* row, Real* seen) {
    Vector sums, terms;
    for (std::size_t i = 0; i < blocks * block; i += block) {
      std::memcpy(&terms, row + i, sizeof terms);
      std::memcpy(&sums, seen + i, sizeof sums);
      if (i + block == blocks * block) terms = in_last_block ? terms : -Vector{};
      sums += terms;
      std::memcpy(seen + i, &sums, sizeof sums);
    }
  });
}

/// Calls visit(number of blocks), a constant for rows of usual lengths.
template <class Visit>
void with_blocks(std::size_t count, Visit visit) {
  const std::size_t blocks = (count + block - 1) / block;
  switch (blocks) {
    case 1:
      return visit(std::integral_constant<std::size_t, 1>{});
    case 2:
      return visit(std::integral_constant<std::size_t, 2>{});
    case 4:
      return visit(std::integral_constant<std::size_t, 4>{});
    default:
      return visit(blocks);
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

std::size_t out_extent(std::size_t in, std::size_t kernel, const Conv2dOptions& options) {
  const std::size_t padded = in + 2 * options.padding;
  if (options.stride == 0) throw std::invalid_argument("conv2d: stride: 0 is not allowed; at least 1");
  if (kernel > padded) {
    throw std::invalid_argument("conv2d: a kernel of " + std::to_string(kernel) +
                                " does not fit into a padded image of " + std::to_string(padded));
  }
  return (padded - kernel) / options.stride + 1;
}

}  // namespace

ConvolutionSizes convolution_sizes(std::span<const Tensor* const> inputs, const Conv2dOptions& options) {
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
void Patches<Real>::shape(const ConvolutionSizes& sizes, Range channels, std::size_t capacity) {
  sizes_ = sizes;
  channels_ = channels;
  capacity_ = capacity;
  planes_.assign(channels.count() * capacity * padded_plane() + block, Real{0});
  patches_.resize(std::max(patches_.size(), rows() * row_stride() + block));
  image_.resize(std::max(image_.size(), channels.count() * sizes.plane()));
}

template <class Real>
template <class Visit>
void Patches<Real>::for_each_position(std::size_t images, Visit visit) {
  const std::size_t kernel = sizes_.kernel;
  const SeenRows rows_seen{.planes = images,
                           .plane_stride = padded_plane(),
                           .rows = sizes_.out_height,
                           .row_stride = sizes_.stride * padded_width(),
                           .count = sizes_.out_width};
  for (std::size_t element = 0; element < rows(); ++element) {
    const std::size_t channel = element / (kernel * kernel), i = element / kernel % kernel,
                      j = element % kernel;
    visit(rows_seen, patches_.data() + element * row_stride(), plane(channel, 0) + i * padded_width() + j,
          channel);
  }
}

template <class Real>
fp16::MatrixOperand Patches<Real>::gather(const Tensor& x, Range images) {
  for (std::size_t image = 0; image < images.count(); ++image) {
    const std::size_t offset =
        ((images.first + image) * sizes_.in_channels + channels_.first) * sizes_.plane();
    const Real* row = read(x, offset, channels_.count() * sizes_.plane(), std::span(image_));
    for (std::size_t channel = 0; channel < channels_.count(); ++channel) {
      Real* to = plane(channel, image) + sizes_.padding * (padded_width() + 1);
      for (std::size_t y = 0; y < sizes_.height; ++y) {
        std::copy_n(row, sizes_.width, to);
        row += sizes_.width;
        to += padded_width();
      }
    }
  }
  for_each_position(images.count(), [&](const SeenRows& s, Real* row, const Real* seen, std::size_t) {
    if (sizes_.stride == 1) {
      with_blocks(s.count, [&](auto blocks) { copy_rows(s, blocks, seen, row); });
    } else {
      for_each_row(s, row, seen, [&](Real* to, const Real* from) {
        for (std::size_t i = 0; i < s.count; ++i) to[i] = from[i * sizes_.stride];
      });
    }
  });
  fp16::MatrixOperand matrix = operand(patches_, rows(), images.count() * sizes_.pixels());
  matrix.row_stride = row_stride();
  return matrix;
}

template <class Real>
void Patches<Real>::scatter(const RoundedOutput& out, Range images, fp16::Format reductions, double factor) {
  std::ranges::fill(planes_, Real{0});
  for_each_position(images.count(), [&](const SeenRows& s, const Real* row, Real* seen, std::size_t channel) {
    if (sizes_.stride == 1) {
      with_blocks(s.count, [&](auto blocks) { add_rows(s, blocks, row, seen); });
    } else {
      for_each_row(s, row, seen, [&](const Real* terms, Real* sums) {
        for (std::size_t i = 0; i < s.count; ++i) sums[i * sizes_.stride] += terms[i];
      });
    }
    round_to(reductions, std::span(plane(channel, 0), images.count() * padded_plane()), codes_);
  });
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
