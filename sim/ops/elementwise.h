#pragma once
/// Forward and backward of operations that work on each element alone.

#include "sim/ops/operation.h"

namespace sim {

/// out[i] = function(inputs[0][i], ...), the inputs shaped alike; computed in binary32, binary64 for binary64
/// inputs.
template <std::size_t Count, class Function>
Tensor map_forward(OperationCall& call, Function function) {
  Tensor output(call.inputs[0]->shape(), call.output_format);
  std::array<const Tensor*, Count> inputs;
  std::ranges::copy_n(call.inputs.begin(), Count, inputs.begin());
  with_real(is_binary64(*call.inputs[0]), [&](auto real) {
    map_elements<decltype(real)>(call.into(output), inputs, function, call.arithmetic.threads);
  });
  return output;
}

/// Gradient of input `input` = function(values[0][i], ..., gradient of output element i).
template <std::size_t Count, class Function>
void map_backward(const OperationGradient& g, std::size_t input,
                  const std::array<const Tensor*, Count>& values, Function function) {
  if (!g.input_gradients[input].tensor) return;
  std::array<const Tensor*, Count + 1> all;
  std::ranges::copy(values, all.begin());
  all.back() = &g.output_gradient;
  with_real(is_binary64(g.output_gradient), [&](auto real) {
    map_elements<decltype(real)>(g.input_gradients[input], all, function, g.arithmetic.threads);
  });
}

/// sum += term, element by element, rounded once to the format of the sum.
inline void add_to(const RoundedOutput& sum, const Tensor& term, int threads) {
  with_real(is_binary64(*sum.tensor), [&](auto real) {
    using Real = decltype(real);
    map_elements<Real, 2>(
        sum, {sum.tensor, &term}, [](Real a, Real b) { return a + b; }, threads);
  });
}

}  // namespace sim
