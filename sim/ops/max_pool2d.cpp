#include <vector>

#include "sim/ops/operation.h"

namespace sim {
namespace {

struct Geometry {
  std::size_t planes, height, width, window, out_height, out_width;
};

/// Windows do not overlap; rows and columns beyond the last whole window are left out.
Geometry geometry_of(const Tensor& x, std::size_t window) {
  const Shape& shape = x.shape();
  return {.planes = shape[0] * shape[1],
          .height = shape[2],
          .width = shape[3],
          .window = window,
          .out_height = shape[2] / window,
          .out_width = shape[3] / window};
}

/// Index of the first largest value of a window; the first NaN where there is one.
template <class Real>
std::size_t index_of_maximum(const Geometry& s, const Real* plane, std::size_t row, std::size_t column) {
  std::size_t best = row * s.window * s.width + column * s.window;
  for (std::size_t i = 0; i < s.window; ++i) {
    for (std::size_t j = 0; j < s.window; ++j) {
      const std::size_t index = (row * s.window + i) * s.width + column * s.window + j;
      const bool best_is_number = plane[best] == plane[best];
      if (best_is_number && !(plane[index] <= plane[best])) best = index;
    }
  }
  return best;
}

/// Calls visit(index of an output element, index of the input element it comes from) for one plane.
template <class Real, class Visit>
void for_each_window(const Geometry& s, const Real* plane, Visit visit) {
  for (std::size_t row = 0; row < s.out_height; ++row) {
    for (std::size_t column = 0; column < s.out_width; ++column) {
      visit(row * s.out_width + column, index_of_maximum(s, plane, row, column));
    }
  }
}

Tensor forward(OperationCall& call) {
  const Tensor& x = *call.inputs[0];
  const Geometry s = geometry_of(x, call.options.window);
  Tensor output({x.shape()[0], x.shape()[1], s.out_height, s.out_width}, call.output_format);
  with_real(is_binary64(x), [&](auto real) {
    using Real = decltype(real);
    const std::size_t in = s.height * s.width, out = s.out_height * s.out_width;
    std::vector<Real> buffer(in), maxima(out);
    for (std::size_t p = 0; p < s.planes; ++p) {
      const Real* plane = read(x, p * in, in, buffer);
      for_each_window(s, plane, [&](std::size_t to, std::size_t from) { maxima[to] = plane[from]; });
      store({&output}, p * out, std::span<const Real>(maxima));
    }
  });
  return output;
}

void backward(const OperationGradient& g) {
  const Tensor& x = *g.inputs[0];
  const Geometry s = geometry_of(x, g.options.window);
  with_real(is_binary64(g.output_gradient), [&](auto real) {
    using Real = decltype(real);
    const std::size_t in = s.height * s.width, out = s.out_height * s.out_width;
    std::vector<Real> x_buffer(in), dy_buffer(out), dx(in);
    for (std::size_t p = 0; p < s.planes; ++p) {
      const Real* plane = read(x, p * in, in, x_buffer);
      const Real* dy = read(g.output_gradient, p * out, out, dy_buffer);
      dx.assign(in, Real{0});
      for_each_window(s, plane, [&](std::size_t from, std::size_t to) { dx[to] = dy[from]; });
      store(g.input_gradients[0], p * in, std::span<const Real>(dx));
    }
  });
}

}  // namespace

constinit const Operation max_pool2d{
    .name = "max_pool2d",
    .description = "largest value of each window; its gradient goes to the first largest",
    .autocast = AutocastClass::input_type,
    .is_layer = false,
    .forward = forward,
    .backward = backward};

}  // namespace sim
