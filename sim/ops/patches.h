#pragma once
/// Convolution as a matrix product: what each output pixel sees of an image, gathered to a matrix, and the
/// way back.

#include <cstddef>
#include <span>
#include <vector>

#include "sim/ops/conv2d.h"

namespace sim {

/// x: batch x in_channels x height x width; w: out_channels x in_channels x kernel x kernel.
struct ConvolutionSizes {
  std::size_t batch, in_channels, height, width, out_channels, kernel, stride, padding, out_height, out_width;

  std::size_t plane() const { return height * width; }
  std::size_t image() const { return in_channels * plane(); }
  std::size_t pixels() const { return out_height * out_width; }
  std::size_t out_image() const { return out_channels * pixels(); }
  std::size_t patch() const { return in_channels * kernel * kernel; }
  std::size_t products() const { return batch * pixels() * patch() * out_channels; }
};

/// Throws std::invalid_argument for a stride of zero and for a kernel larger than the padded image.
ConvolutionSizes convolution_sizes(std::span<const Tensor* const> inputs, const Conv2dOptions& options);

/// Part of a range: images of a batch, or channels of an image.
struct Range {
  std::size_t first, last;

  std::size_t count() const { return last - first; }
};

/// A patch is what one output pixel sees, in the order channel, kernel row, kernel column. The matrix of
/// patches has a row for every element of them and a column for every pixel, row-major, image after image.
template <class Real>
class Patches {
 public:
  /// Makes room for the elements of some channels, for up to `capacity` images at a time.
  void shape(const ConvolutionSizes& sizes, Range channels, std::size_t capacity);

  /// Row stride of the matrix: the columns of `capacity` images.
  std::size_t row_stride() const { return capacity_ * sizes_.pixels(); }
  std::size_t rows() const { return channels_.count() * sizes_.kernel * sizes_.kernel; }
  Real* data() { return patches_.data(); }

  /// Fills the matrix with the patches of `images`, zero in their padding.
  fp16::MatrixOperand gather(const Tensor& x, Range images);

  /// The matrix holds a gradient for every patch element: those that share an element of an image are added
  /// in the order of the patch, each sum rounded to `reductions`; then multiplied by `factor` and rounded
  /// once to out's format. All channels only.
  void scatter(const RoundedOutput& out, Range images, fp16::Format reductions, double factor);

 private:
  std::size_t padded_width() const { return sizes_.width + 2 * sizes_.padding; }
  std::size_t padded_plane() const { return (sizes_.height + 2 * sizes_.padding) * padded_width(); }
  /// An image's padded plane of a channel, counted from the first of either.
  Real* plane(std::size_t channel, std::size_t image) {
    return planes_.data() + (channel * capacity_ + image) * padded_plane();
  }
  /// Calls visit(rows, row of the matrix, what it sees in the first image, channel) for every element of a
  /// patch.
  template <class Visit>
  void for_each_position(std::size_t images, Visit visit);

  ConvolutionSizes sizes_ = {};
  Range channels_ = {};
  std::size_t capacity_ = 0;
  std::vector<Real> planes_, patches_, image_;
  std::vector<std::uint16_t> codes_;
};

extern template class Patches<float>;
extern template class Patches<double>;

}  // namespace sim
