#include "sim/ops/sum_of_elements.h"

#include <utility>
#include <vector>

#include "fp16/elementary.h"

namespace sim {

template <class Real>
Real sum_of_pieces(std::span<const Tensor* const> inputs, fp16::Format reductions,
                   const PieceFunction<Real>& function) {
  static_assert(elements_of_a_piece % InterleavedSum<Real>::block == 0, "or the order would depend on it");
  InterleavedSum<Real> sum(reductions);
  for_each_computed_piece<Real>(0, inputs[0]->size(), inputs, function,
                                [&](std::size_t, std::span<const Real> terms) { sum.add(terms); });
  return std::move(sum).total();
}

template <class Real>
Real sum_of_elements(const Tensor& x, fp16::Format reductions) {
  return sum_of_elements<Real, 1>({&x}, reductions, [](Real value) { return value; });
}

void sum_over_rows(const RoundedOutput& out, const Tensor& m, fp16::Format reductions) {
  const std::size_t columns = out.tensor->size();
  with_real(is_binary64(m), [&](auto real) {
    using Real = decltype(real);
    std::vector<Real> buffer(columns);
    ColumnSums<Real> sums(reductions, columns);
    for (std::size_t offset = 0; offset < m.size(); offset += columns)
      sums.add_row(read(m, offset, columns, std::span(buffer)));
    store(out, 0, std::span<const Real>(std::move(sums).totals()));
  });
}

template <class Real>
Tensor scalar_output(OperationCall& call, Real value) {
  if (value != value) value = fp16::elementary::default_nan<Real>;
  Tensor output({1}, call.output_format);
  store(call.into(output), 0, std::span<const Real>(&value, 1));
  return output;
}

void spread_output_gradient(const OperationGradient& g, std::size_t divisor) {
  with_real(is_binary64(g.output_gradient), [&](auto real) {
    using Real = decltype(real);
    const Real share = static_cast<Real>(g.output_gradient.element(0)) / static_cast<Real>(divisor);
    map_elements<Real, 0>(
        g.input_gradients[0], {}, [share] { return share; }, g.arithmetic.threads);
  });
}

template float sum_of_pieces(std::span<const Tensor* const>, fp16::Format, const PieceFunction<float>&);
template double sum_of_pieces(std::span<const Tensor* const>, fp16::Format, const PieceFunction<double>&);
template float sum_of_elements(const Tensor&, fp16::Format);
template double sum_of_elements(const Tensor&, fp16::Format);
template Tensor scalar_output(OperationCall&, float);
template Tensor scalar_output(OperationCall&, double);

}  // namespace sim
