#include "sim/ops/matrix_product.h"

#include "sim/ops/operation.h"

namespace sim {
namespace {

template <class Real>
void add_row_to_each(std::span<Real> matrix, std::span<const Real> row) {
  for (std::size_t first = 0; first < matrix.size(); first += row.size()) {
    for (std::size_t j = 0; j < row.size(); ++j) matrix[first + j] += row[j];
  }
}

template <class Real>
void product_in(const RoundedOutput& out, const fp16::MatrixOperand& a, const fp16::MatrixOperand& b,
                const Arithmetic& arithmetic, const SumCompletion& completion) {
  thread_local std::vector<Real> scratch, bias;
  const std::span<Real> sums = sums_of(out, 0, out.tensor->size(), scratch);
  chains(a, b, sums.data(), b.columns, arithmetic);
  multiply_each(sums, completion.factor);
  if (completion.column_bias) {
    bias.resize(b.columns);
    add_row_to_each(sums, std::span(read(*completion.column_bias, 0, b.columns, std::span(bias)), b.columns));
  }
  store(out, 0, std::span<const Real>(sums));
}

bool is_binary64(const fp16::MatrixOperand& m) {
  return m.storage == fp16::binary64;
}

}  // namespace

void chains(const fp16::MatrixOperand& a, const fp16::MatrixOperand& b, float* c, std::size_t row_stride,
            const Arithmetic& arithmetic, fp16::ChainStart start) {
  const fp16::GemmOptions options{.start = start,
                                  .threads = threads_for(a.rows * a.columns * b.columns, arithmetic.threads)};
  if (const auto& tensor_core = arithmetic.products.tensor_core) {
    fp16::gemm(a, b, c, row_stride, *tensor_core, options);
  } else {
    fp16::gemm(a, b, c, row_stride, arithmetic.products.chain, options);
  }
}

void chains(const fp16::MatrixOperand& a, const fp16::MatrixOperand& b, double* c, std::size_t row_stride,
            const Arithmetic& arithmetic, fp16::ChainStart start) {
  fp16::gemm(a, b, c, row_stride,
             {.start = start, .threads = threads_for(a.rows * a.columns * b.columns, arithmetic.threads)});
}

void matrix_product(const RoundedOutput& out, const fp16::MatrixOperand& a, const fp16::MatrixOperand& b,
                    const Arithmetic& arithmetic, const SumCompletion& completion) {
  const bool binary64 = is_binary64(*out.tensor) || is_binary64(a) || is_binary64(b);
  with_real(binary64, [&](auto real) { product_in<decltype(real)>(out, a, b, arithmetic, completion); });
}

int threads_for(std::size_t products, int threads) {
  constexpr std::size_t worth_a_thread = std::size_t{1} << 21;  // of FP32 chains tens of microseconds
  return products < worth_a_thread ? 1 : threads;
}

}  // namespace sim
