#pragma once
/// What the pools of NCHW tensors have in common: windows that do not overlap.

#include <algorithm>
#include <cstddef>
#include <type_traits>
#include <vector>

#include "fp16/names.h"
#include "sim/ops/groups.h"
#include "sim/ops/operation.h"

namespace sim {

/// The windows of one plane, an image's channel. Rows and columns beyond the last whole window are left out.
struct Windows {
  std::size_t height, width, side;

  /// Throws std::invalid_argument where not a single window fits.
  Windows(const Operation& operation, const Tensor& x, std::size_t side)
      : height(x.shape()[2]), width(x.shape()[3]), side(side) {
    const auto largest = static_cast<double>(std::min(height, width));
    names::checked_option<int>(operation.name, "window", static_cast<double>(side),
                               names::closed_interval(1, largest));
  }

  std::size_t rows() const { return height / side; }
  std::size_t columns() const { return width / side; }
  std::size_t count() const { return rows() * columns(); }
  std::size_t elements() const { return side * side; }  ///< of a window
  bool leave_a_rest() const { return elements() * count() != height * width; }
};

inline std::size_t planes_of(const Tensor& x) {
  return x.shape()[0] * x.shape()[1];
}

/// pool(plane of x, plane of the output) fills each plane of the output.
template <class Pool>
Tensor pool_forward(OperationCall& call, const Windows& windows, Pool pool) {
  const Tensor& x = *call.inputs[0];
  Tensor output({x.shape()[0], x.shape()[1], windows.rows(), windows.columns()}, call.output_format);
  with_real(is_binary64(x), [&](auto real) {
    using Real = decltype(real);
    map_groups<Real>(call.into(output), planes_of(x), {&x}, call.arithmetic.threads,
                     [&](std::size_t, Real* y, const auto& inputs) { pool(inputs[0], y); });
  });
  return output;
}

}  // namespace sim
