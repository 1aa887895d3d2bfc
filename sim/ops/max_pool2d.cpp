#include "sim/ops/max_pool2d.h"

#include <cstring>

#include "sim/ops/pooling.h"

namespace sim {
namespace {

// The first largest element of a window is the first largest of its rows' first largest elements. So a plane
// is taken in two stages, and back: along its rows, where `side` neighbours become one, and down the columns
// of what that leaves. The latter are short: there compilers are given vectors, the last of a row overlapping
// the one before.

/// The larger of scalars, or of vectors lane by lane: `largest` gives way to a larger value or to a NaN, and a NaN to nothing.
template <class Value>
inline void keep_larger(Value& largest, const Value& next) {
  largest = (((next <= largest) == 0) & (largest == largest)) ? next : largest;
}

/// An element that is the largest one, or a NaN, takes what is left of the gradient.
template <class Value>
inline void take(const Value& largest, const Value& element, Value& left, Value& taken) {
  const auto takes = (element == largest) | (element != element);
  taken = takes ? left : Value{};
  left = takes ? Value{} : left;
}

template <class Real, class Side>
FP16_VECTOR_CLONES void find_largest_in_rows(std::size_t count, Side side, const Real* __restrict__ x,
                                             Real* __restrict__ row_maxima) {
  const std::size_t second = side > 1 ? 1 : 0;
  for (std::size_t i = 0; i < count; ++i) {
    Real largest = x[i * side];
    keep_larger(largest, x[i * side + second]);
    row_maxima[i] = largest;
  }
  for (std::size_t element = 2; element < side; ++element) {
    for (std::size_t i = 0; i < count; ++i) keep_larger(row_maxima[i], x[i * side + element]);
  }
}

template <class Real, class Side>
FP16_VECTOR_CLONES void give_to_elements(std::size_t count, Side side, const Real* __restrict__ x,
                                         const Real* __restrict__ row_maxima,
                                         const Real* __restrict__ row_gradients, Real* __restrict__ dx) {
  for (std::size_t i = 0; i < count; ++i) {
    const Real largest = row_maxima[i];
    Real left = row_gradients[i];
    for (std::size_t element = 0; element < side; ++element) {
      const Real value = x[i * side + element];
      Real taken;
      take(largest, value, left, taken);
      dx[i * side + element] = taken;
    }
  }
}

template <class Real, std::size_t Count>
struct Lanes {
  typedef Real Vector __attribute__((vector_size(Count * sizeof(Real))));
};

/// Calls visit(lanes, first window's place in the row maxima, first window) for some neighbours at a time.
template <std::size_t Count, class Real, class Visit>
inline void for_each_vector_of(const Windows& windows, Visit visit) {
  const std::size_t columns = windows.columns();
  for (std::size_t row = 0; row < windows.rows(); ++row) {
    for (std::size_t column = 0; column < columns; column += Count) {
      const std::size_t first = std::min(column, columns - Count);
      visit(Lanes<Real, Count>{}, row * windows.side * columns + first, row * columns + first);
    }
  }
}
template <class Real, class Visit>
inline void for_each_vector(const Windows& windows, Visit visit) {
  if (windows.columns() >= 8) return for_each_vector_of<8, Real>(windows, visit);
  if (windows.columns() >= 4) return for_each_vector_of<4, Real>(windows, visit);
  for_each_vector_of<1, Real>(windows, visit);
}

template <class Real>
FP16_VECTOR_CLONES void find_largest_in_columns(const Windows& windows, const Real* row_maxima,
                                                Real* maxima) {
  for_each_vector<Real>(windows, [=](auto lanes, std::size_t first_row, std::size_t window) {
    typename decltype(lanes)::Vector largest, next;
    std::memcpy(&largest, row_maxima + first_row, sizeof largest);
    for (std::size_t row = 1; row < windows.side; ++row) {
      std::memcpy(&next, row_maxima + first_row + row * windows.columns(), sizeof next);
      keep_larger(largest, next);
    }
    std::memcpy(maxima + window, &largest, sizeof largest);
  });
}

template <class Real>
FP16_VECTOR_CLONES void give_to_rows(const Windows& windows, const Real* row_maxima, const Real* maxima,
                                     const Real* gradients, Real* row_gradients) {
  for_each_vector<Real>(windows, [=](auto lanes, std::size_t first_row, std::size_t window) {
    typename decltype(lanes)::Vector largest, left, in_row, taken;
    std::memcpy(&largest, maxima + window, sizeof largest);
    std::memcpy(&left, gradients + window, sizeof left);
    for (std::size_t row = 0; row < windows.side; ++row) {
      const std::size_t place = first_row + row * windows.columns();
      std::memcpy(&in_row, row_maxima + place, sizeof in_row);
      take(largest, in_row, left, taken);
      std::memcpy(row_gradients + place, &taken, sizeof taken);
    }
  });
}

/// Calls visit(side, count, offset in the plane, offset in the row maxima) for rows of windows, all at once
/// where nothing is left out between them. The usual side is a constant.
template <class Visit>
void for_each_row(const Windows& windows, Visit visit) {
  const std::size_t columns = windows.columns(), rows = windows.rows() * windows.side;
  const auto visit_rows = [&](auto side) {
    if (windows.width == columns * side) return visit(side, rows * columns, 0, 0);
    for (std::size_t row = 0; row < rows; ++row) visit(side, columns, row * windows.width, row * columns);
  };
  windows.side == 2 ? visit_rows(std::integral_constant<std::size_t, 2>{}) : visit_rows(windows.side);
}

/// `row_maxima` becomes one element for every row of every window, `maxima` one for every window.
template <class Real>
void find_maxima(const Windows& windows, const Real* x, std::vector<Real>& row_maxima, Real* maxima) {
  row_maxima.resize(windows.side * windows.count());
  for_each_row(windows, [&](auto side, std::size_t count, std::size_t from, std::size_t to) {
    find_largest_in_rows(count, side, x + from, row_maxima.data() + to);
  });
  find_largest_in_columns(windows, row_maxima.data(), maxima);
}

Tensor forward(OperationCall& call) {
  const Windows windows(max_pool2d, *call.inputs[0], call.options.get<PoolingOptions>().window);
  return pool_forward(call, windows, [&]<class Real>(const Real* x, Real* y) {
    thread_local std::vector<Real> row_maxima;
    find_maxima(windows, x, row_maxima, y);
  });
}

/// Zero in what no window covers.
template <class Real>
void plane_gradient(const Windows& windows, const Real* x, const Real* dy, Real* dx) {
  thread_local std::vector<Real> row_maxima, maxima, row_gradients;
  maxima.resize(windows.count());
  row_gradients.resize(windows.side * windows.count());
  find_maxima(windows, x, row_maxima, maxima.data());
  give_to_rows(windows, row_maxima.data(), maxima.data(), dy, row_gradients.data());
  if (windows.leave_a_rest()) std::fill_n(dx, windows.height * windows.width, Real{0});
  for_each_row(windows, [&](auto side, std::size_t count, std::size_t to, std::size_t from) {
    give_to_elements(count, side, x + to, row_maxima.data() + from, row_gradients.data() + from, dx + to);
  });
}

void backward(const OperationGradient& g) {
  const Tensor& x = *g.inputs[0];
  const Windows windows(max_pool2d, x, g.options.get<PoolingOptions>().window);
  with_real(is_binary64(g.output_gradient), [&](auto real) {
    using Real = decltype(real);
    map_groups<Real>(
        g.input_gradients[0], planes_of(x), {&x, &g.output_gradient}, g.arithmetic.threads,
        [&](std::size_t, Real* dx, const auto& in) { plane_gradient(windows, in[0], in[1], dx); });
  });
}

}  // namespace

constinit const Operation max_pool2d{
    .name = "max_pool2d",
    .description = "largest value of each window; its gradient goes to the first largest",
    .casts = on_no_list,
    .forward = forward,
    .backward = backward,
    .unit_multipliers = no_unit_multipliers};

}  // namespace sim
