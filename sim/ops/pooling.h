#pragma once
/// What the pools of NCHW tensors have in common: windows that do not overlap.

#include <algorithm>
#include <cstddef>
#include <type_traits>
#include <vector>

#include "sim/ops/groups.h"
#include "sim/ops/operation.h"
#include "sim/options.h"

namespace sim {

/// The windows of one plane, an image's channel. Rows and columns beyond the last whole window are left out.
struct Windows {
  std::size_t height, width, side;

  /// Throws std::invalid_argument where not a single window fits.
  Windows(const Operation& operation, const Tensor& x, std::size_t side)
      : height(x.shape()[2]), width(x.shape()[3]), side(side) {
    const auto largest = static_cast<double>(std::min(height, width));
    checked_option<int>(operation.name, "window", static_cast<double>(side), closed_interval(1, largest));
  }

  std::size_t rows() const { return height / side; }
  std::size_t columns() const { return width / side; }
  std::size_t count() const { return rows() * columns(); }
  std::size_t elements() const { return side * side; }  ///< of a window
};

inline std::size_t planes_of(const Tensor& x) {
  return x.shape()[0] * x.shape()[1];
}

/// Calls move(plane + i, parts + j) for element j of the parts and where it stands in the plane: part e holds
/// element e of every window, counted row by row. `side` is a constant where loops are to become vector code.
template <class Side, class Move>
inline void for_each_in_parts(const Windows& windows, Side side, Move move) {
  const std::size_t width = windows.width, rows = windows.height / side, columns = width / side;
  for (std::size_t element = 0; element < side * side; ++element) {
    for (std::size_t row = 0; row < rows; ++row) {
      const std::size_t in_plane = (row * side + element / side) * width + element % side;
      const std::size_t in_parts = (element * rows + row) * columns;
      for (std::size_t column = 0; column < columns; ++column)
        move(in_plane + column * side, in_parts + column);
    }
  }
}
template <class Real, class Side>
FP16_VECTOR_CLONES void split_plane(const Windows& windows, Side side, const Real* plane, Real* parts) {
  for_each_in_parts(windows, side, [=](std::size_t i, std::size_t j) { parts[j] = plane[i]; });
}
template <class Real, class Side>
FP16_VECTOR_CLONES void join_plane(const Windows& windows, Side side, const Real* parts, Real* plane) {
  for_each_in_parts(windows, side, [=](std::size_t i, std::size_t j) { plane[i] = parts[j]; });
}

/// A plane taken apart: the windows' first elements, then their second ones, ...
template <class Real>
std::vector<Real> split(const Windows& windows, const Real* plane) {
  std::vector<Real> parts(windows.elements() * windows.count());
  if (windows.side == 2) {
    split_plane(windows, std::integral_constant<std::size_t, 2>{}, plane, parts.data());
  } else {
    split_plane(windows, windows.side, plane, parts.data());
  }
  return parts;
}

/// The inverse; zeros in what no window covers.
template <class Real>
void join(const Windows& windows, const std::vector<Real>& parts, Real* plane) {
  if (parts.size() != windows.height * windows.width)
    std::fill_n(plane, windows.height * windows.width, Real{0});
  if (windows.side == 2) {
    join_plane(windows, std::integral_constant<std::size_t, 2>{}, parts.data(), plane);
  } else {
    join_plane(windows, windows.side, parts.data(), plane);
  }
}

/// Each plane of the output is pool(parts of that plane of x, results).
template <class Pool>
Tensor pool_forward(OperationCall& call, const Windows& windows, Pool pool) {
  const Tensor& x = *call.inputs[0];
  Tensor output({x.shape()[0], x.shape()[1], windows.rows(), windows.columns()}, call.output_format);
  with_real(is_binary64(x), [&](auto real) {
    using Real = decltype(real);
    map_groups<Real, 1>(
        call.into(output), planes_of(x), {&x}, call.arithmetic.threads,
        [&](std::size_t, Real* y, const auto& inputs) { pool(split(windows, inputs[0]), y); });
  });
  return output;
}

}  // namespace sim
