#include "sim/ops/matrix_product.h"

#include <algorithm>
#include <vector>

#include "sim/ops/operation.h"

namespace sim {
namespace {

template <class Real>
void add_row_to_each(std::span<Real> matrix, std::span<const Real> row) {
  for (std::size_t first = 0; first < matrix.size(); first += row.size()) {
    for (std::size_t j = 0; j < row.size(); ++j) matrix[first + j] += row[j];
  }
}

/// Where the chains run: the output itself when it holds Real, else a scratch area of the thread.
template <class Real>
std::span<Real> chain_storage(Tensor& out, fp16::Format real_format) {
  if (out.format() == real_format) return out.elements<Real>();
  thread_local std::vector<Real> scratch;
  if (scratch.size() < out.size()) scratch.resize(out.size());
  return std::span(scratch).first(out.size());
}

}  // namespace

void matrix_product(const RoundedOutput& out, const fp16::MatrixOperand& a, const fp16::MatrixOperand& b,
                    fp16::Accumulation accumulation, const Tensor* column_bias) {
  const bool binary64 =
      is_binary64(*out.tensor) || a.storage == fp16::binary64 || b.storage == fp16::binary64;
  with_real(binary64, [&](auto real) {
    using Real = decltype(real);
    const std::span<Real> sums = chain_storage<Real>(*out.tensor, binary64 ? fp16::binary64 : fp16::binary32);
    chains(a, b, sums.data(), accumulation);
    if (column_bias) {
      std::vector<Real> buffer(b.columns);
      add_row_to_each<Real>(sums, std::span(read(*column_bias, 0, b.columns, buffer), b.columns));
    }
    store(out, 0, std::span<const Real>(sums));
  });
}

void sum_over_rows(const RoundedOutput& out, const Tensor& m, std::size_t rows, std::size_t columns,
                   fp16::Accumulation accumulation) {
  with_real(is_binary64(m), [&](auto real) {
    using Real = decltype(real);
    std::vector<Real> sums(columns), buffer(columns);
    for (std::size_t row = 0; row < rows; ++row) {
      const Real* terms = read(m, row * columns, columns, buffer);
      for (std::size_t j = 0; j < columns; ++j) add_term(sums[j], terms[j], accumulation);
    }
    store(out, 0, std::span<const Real>(sums));
  });
}

}  // namespace sim
