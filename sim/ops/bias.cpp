#include "sim/ops/bias.h"

#include <algorithm>

#include "sim/ops/cast.h"
#include "sim/ops/matrix_product.h"
#include "sim/ops/sum_of_elements.h"

namespace sim {
namespace {

template <class Real>
void add_to_rows(const RoundedOutput& out, const Tensor& x, const Tensor& b, std::size_t first_row,
                 std::size_t last_row) {
  constexpr std::size_t piece = 4096;
  const std::size_t columns = b.size(), rows_at_once = std::max<std::size_t>(1, piece / columns);
  std::vector<Real> b_buffer(columns), x_buffer(rows_at_once * columns), sums(x_buffer.size());
  const Real* addend = read(b, 0, columns, b_buffer);
  for (std::size_t row = first_row; row < last_row; row += rows_at_once) {
    const std::size_t rows = std::min(rows_at_once, last_row - row);
    const Real* values = read(x, row * columns, rows * columns, x_buffer);
    for (std::size_t i = 0; i < rows * columns; i += columns) {
      for (std::size_t j = 0; j < columns; ++j) sums[i + j] = values[i + j] + addend[j];
    }
    store(out, row * columns, std::span<const Real>(sums).first(rows * columns));
  }
}

Tensor forward(OperationCall& call) {
  const Tensor &x = *call.inputs[0], &b = *call.inputs[1];
  Tensor output(x.shape(), call.output_format);
  with_real(is_binary64(x), [&](auto real) {
    for_each_part(call.into(output), x.size() / b.size(), threads_for(x.size(), call.arithmetic.threads), 1,
                  [&](const RoundedOutput& part, std::size_t first, std::size_t last) {
                    add_to_rows<decltype(real)>(part, x, b, first, last);
                  });
  });
  return output;
}

void backward(const OperationGradient& g) {
  if (g.input_gradients[0].tensor) cast.backward(g);
  if (g.input_gradients[1].tensor)
    sum_over_rows(g.input_gradients[1], g.output_gradient, g.arithmetic.reductions);
}

}  // namespace

constinit const Operation bias{.name = "bias",
                               .description = "x + b, one b per column",
                               .casts = CastClasses{.apex_o1 = AutocastClass::promote},
                               .forward = forward,
                               .backward = backward,
                               .unit_multipliers = no_unit_multipliers};

}  // namespace sim
