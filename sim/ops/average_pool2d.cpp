#include "sim/ops/average_pool2d.h"

#include <utility>

#include "sim/ops/pooling.h"
#include "sim/ops/sums.h"

namespace sim {
namespace {

/// Calls move(plane + i, parts + j) for element j of the parts and where it stands in the plane: part e holds
/// element e of every window, counted row by row. `side` is a constant where loops are to become vector code.
template <class Side, class Move>
void for_each_in_parts(const Windows& windows, Side side, Move move) {
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
  if (windows.leave_a_rest()) std::fill_n(plane, windows.height * windows.width, Real{0});
  if (windows.side == 2) {
    join_plane(windows, std::integral_constant<std::size_t, 2>{}, parts.data(), plane);
  } else {
    join_plane(windows, windows.side, parts.data(), plane);
  }
}

Tensor forward(OperationCall& call) {
  const Windows windows(average_pool2d, *call.inputs[0], call.options.get<PoolingOptions>().window);
  return pool_forward(call, windows, [&]<class Real>(const Real* x, Real* y) {
    const std::vector<Real> parts = split(windows, x);
    const std::size_t count = windows.count();
    ColumnSums<Real> sums(call.arithmetic.reductions, count);
    for (std::size_t element = 0; element < windows.elements(); ++element)
      sums.add_row(parts.data() + element * count);
    apply_to_each([elements = static_cast<Real>(windows.elements())](Real sum) { return sum / elements; },
                  count, y, std::move(sums).totals().data());
  });
}

void backward(const OperationGradient& g) {
  const Tensor& x = *g.inputs[0];
  const Windows windows(average_pool2d, x, g.options.get<PoolingOptions>().window);
  with_real(is_binary64(g.output_gradient), [&](auto real) {
    using Real = decltype(real);
    const auto elements = static_cast<Real>(windows.elements());
    map_groups<Real>(g.input_gradients[0], planes_of(x), {&g.output_gradient}, g.arithmetic.threads,
                     [&](std::size_t, Real* dx, const auto& inputs) {
                       const std::size_t count = windows.count();
                       std::vector<Real> parts(windows.elements() * count);
                       for (std::size_t element = 0; element < windows.elements(); ++element) {
                         apply_to_each([elements](Real dy) { return dy / elements; }, count,
                                       parts.data() + element * count, inputs[0]);
                       }
                       join(windows, parts, dx);
                     });
  });
}

}  // namespace

constinit const Operation average_pool2d{.name = "average_pool2d",
                                         .description = "mean of each window",
                                         .casts = on_no_list,
                                         .forward = forward,
                                         .backward = backward,
                                         .unit_multipliers = no_unit_multipliers};

}  // namespace sim
