#include "sim/ops/pooling.h"
#include "sim/ops/sums.h"

namespace sim {
namespace {

/// inputs: x (NCHW); options.window. Windows next to each other; the rest at the right and at the bottom is
/// left out. Each window is summed from zero, row by row, every partial sum rounded to `reductions`.
Tensor forward(OperationCall& call) {
  const Windows windows(average_pool2d, *call.inputs[0], call.options.window);
  return with_accumulation(call.arithmetic.reductions, [&](auto accumulate) {
    return pool_forward(call, windows, [&](const auto& parts, auto* y) {
      using Real = std::remove_reference_t<decltype(*y)>;
      const std::size_t count = windows.count();
      const auto elements = static_cast<Real>(windows.elements());
      std::fill_n(y, count, Real{0});
      for (std::size_t element = 0; element < windows.elements(); ++element)
        apply_in_place(accumulate, count, y, parts.data() + element * count);
      apply_in_place([elements](Real sum) { return sum / elements; }, count, y);
    });
  });
}

void backward(const OperationGradient& g) {
  const Tensor& x = *g.inputs[0];
  const Windows windows(average_pool2d, x, g.options.window);
  with_real(is_binary64(g.output_gradient), [&](auto real) {
    using Real = decltype(real);
    const auto elements = static_cast<Real>(windows.elements());
    map_groups<Real, 1>(g.input_gradients[0], planes_of(x), {&g.output_gradient}, g.arithmetic.threads,
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

constinit const Operation average_pool2d{
    .name = "average_pool2d", .description = "mean of each window", .forward = forward, .backward = backward};

}  // namespace sim
