#include "sim/ops/elementary.h"
#include "sim/ops/pooling.h"

namespace sim {
namespace {

using fp16::elementary::select;

/// The largest element of every window, the first NaN where there is one.
template <class Real>
void find_maxima(const Windows& windows, const std::vector<Real>& parts, Real* maxima) {
  std::copy_n(parts.data(), windows.count(), maxima);
  for (std::size_t element = 1; element < windows.elements(); ++element) {
    apply_in_place(
        [](Real best, Real value) { return select(!(value <= best) & (best == best), value, best); },
        windows.count(), maxima, parts.data() + element * windows.count());
  }
}

/// One element of every window: where it is the largest or NaN, it takes what is left of the gradient.
template <class Real>
FP16_VECTOR_CLONES void take_gradients(std::size_t count, const Real* maxima, Real* left, Real* part) {
  for (std::size_t i = 0; i < count; ++i) {
    const bool largest = (part[i] == maxima[i]) | (part[i] != part[i]);
    const Real gradient = left[i];
    part[i] = select(largest, gradient, Real{0});
    left[i] = select(largest, Real{0}, gradient);
  }
}

/// inputs: x (NCHW); options.window. Windows next to each other; the rest at the right and at the bottom is
/// left out.
Tensor forward(OperationCall& call) {
  const Windows windows(max_pool2d, *call.inputs[0], call.options.window);
  return pool_forward(call, windows,
                      [&](const auto& parts, auto* maxima) { find_maxima(windows, parts, maxima); });
}

void backward(const OperationGradient& g) {
  const Tensor& x = *g.inputs[0];
  const Windows windows(max_pool2d, x, g.options.window);
  with_real(is_binary64(g.output_gradient), [&](auto real) {
    using Real = decltype(real);
    map_groups<Real, 2>(g.input_gradients[0], planes_of(x), {&x, &g.output_gradient}, g.arithmetic.threads,
                        [&](std::size_t, Real* dx, const auto& inputs) {
                          std::vector<Real> parts = split(windows, inputs[0]), maxima(windows.count()),
                                            left(inputs[1], inputs[1] + windows.count());
                          find_maxima(windows, parts, maxima.data());
                          for (std::size_t element = 0; element < windows.elements(); ++element) {
                            take_gradients(windows.count(), maxima.data(), left.data(),
                                           parts.data() + element * windows.count());
                          }
                          join(windows, parts, dx);
                        });
  });
}

}  // namespace

constinit const Operation max_pool2d{
    .name = "max_pool2d",
    .description = "largest value of each window; its gradient goes to the first largest",
    .forward = forward,
    .backward = backward};

}  // namespace sim
