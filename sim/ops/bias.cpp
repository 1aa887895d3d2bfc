#include "sim/ops/matrix_product.h"
#include "sim/ops/operation.h"

namespace sim {
namespace {

/// inputs: x (rows x columns), b (columns); output like x.
Tensor forward(OperationCall& call) {
  const Tensor &x = *call.inputs[0], &b = *call.inputs[1];
  Tensor output(x.shape(), call.output_format);
  const std::size_t columns = b.size();
  with_real(is_binary64(x), [&](auto real) {
    using Real = decltype(real);
    std::vector<Real> x_buffer(columns), b_buffer(columns), sums(columns);
    const Real* addend = read(b, 0, columns, b_buffer);
    for (std::size_t first = 0; first < x.size(); first += columns) {
      const Real* row = read(x, first, columns, x_buffer);
      for (std::size_t j = 0; j < columns; ++j) sums[j] = row[j] + addend[j];
      store({&output}, first, std::span<const Real>(sums));
    }
  });
  return output;
}

void backward(const OperationGradient& g) {
  const std::size_t columns = g.inputs[1]->size();
  if (g.input_gradients[0].tensor) cast.backward(g);
  if (g.input_gradients[1].tensor) {
    sum_over_rows(g.input_gradients[1], g.output_gradient, g.output_gradient.size() / columns, columns,
                  g.accumulation);
  }
}

}  // namespace

constinit const Operation bias{.name = "bias",
                               .description = "x + b, one b per column",
                               .autocast = AutocastClass::lower_precision,
                               .is_layer = false,
                               .forward = forward,
                               .backward = backward};

}  // namespace sim
