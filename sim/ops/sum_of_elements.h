#pragma once
/// Sums over all elements of tensors, and down the columns of matrices.

#include <array>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include "sim/ops/operation.h"
#include "sim/ops/sums.h"

namespace sim {

/// The interleaved sum over all i of function(inputs[0][i], ...), which change(offset, terms) may change
/// first, a piece at a time.
template <class Real, std::size_t Count, class Function, class Change>
Real sum_of_elements(const std::array<const Tensor*, Count>& inputs, fp16::Format reductions,
                     Function function, Change change) {
  constexpr std::size_t piece = 2048;
  static_assert(piece % InterleavedSum<Real>::block == 0, "or the order would depend on it");
  Real terms[piece];
  std::array<std::array<Real, piece>, Count> buffers;
  InterleavedSum<Real> sum(reductions);
  for (std::size_t offset = 0; offset < inputs[0]->size(); offset += piece) {
    const std::size_t n = std::min(piece, inputs[0]->size() - offset);
    std::array<const Real*, Count> values;
    for (std::size_t input = 0; input < Count; ++input)
      values[input] = read(*inputs[input], offset, n, buffers[input]);
    std::apply([&](auto... input) { apply_to_each(function, n, terms, input...); }, values);
    change(offset, std::span(terms, n));
    sum.add(n, [&terms](std::size_t i) { return terms[i]; });
  }
  return std::move(sum).total();
}

template <class Real, std::size_t Count, class Function>
Real sum_of_elements(const std::array<const Tensor*, Count>& inputs, fp16::Format reductions,
                     Function function) {
  return sum_of_elements<Real>(inputs, reductions, function, [](std::size_t, std::span<Real>) {});
}

/// The interleaved sum of a tensor's elements.
template <class Real>
Real sum_of_elements(const Tensor& x, fp16::Format reductions) {
  return sum_of_elements<Real, 1>({&x}, reductions, [](Real value) { return value; });
}

/// out[j] = the sum of column j of m, whose rows are as long as `out`.
inline void sum_over_rows(const RoundedOutput& out, const Tensor& m, fp16::Format reductions) {
  const std::size_t columns = out.tensor->size();
  with_real(is_binary64(m), [&](auto real) {
    using Real = decltype(real);
    std::vector<Real> buffer(columns);
    ColumnSums<Real> sums(reductions, columns);
    for (std::size_t offset = 0; offset < m.size(); offset += columns) {
      const Real* row = read(m, offset, columns, std::span(buffer));
      sums.add_row([row](std::size_t j) { return row[j]; });
    }
    store(out, 0, std::span<const Real>(std::move(sums).totals()));
  });
}

/// A scalar, rounded once to the output's format. A NaN becomes the default one: which of several a sum hands
/// on is the compiler's choice.
template <class Real>
Tensor scalar_output(OperationCall& call, Real value) {
  if (value != value) value = fp16::elementary::default_nan<Real>;
  Tensor output({1}, call.output_format);
  store(call.into(output), 0, std::span<const Real>(&value, 1));
  return output;
}

/// The gradient of every element of input 0 is the output's divided by `divisor`.
inline void spread_output_gradient(const OperationGradient& g, std::size_t divisor) {
  with_real(is_binary64(g.output_gradient), [&](auto real) {
    using Real = decltype(real);
    const Real share = static_cast<Real>(g.output_gradient.element(0)) / static_cast<Real>(divisor);
    map_elements<Real, 0>(
        g.input_gradients[0], {}, [share] { return share; }, g.arithmetic.threads);
  });
}

}  // namespace sim
