#include "sim/ops/matrix_product.h"

#include <algorithm>

#include "sim/ops/operation.h"

namespace sim {
namespace {

template <class Real>
void add_to_each_row(std::span<Real> matrix, std::span<const Real> row) {
  for (std::size_t first = 0; first < matrix.size(); first += row.size())
    apply_in_place([](Real sum, Real b) { return sum + b; }, row.size(), matrix.data() + first, row.data());
}

/// Completes and rounds rows of sums while they are in the first-level cache.
template <class Real>
void store_rows(const RoundedOutput& out, std::span<Real> sums, std::size_t columns, double factor,
                std::span<const Real> bias, int threads) {
  const std::size_t rows_at_a_time = std::max<std::size_t>(elements_of_a_piece / columns, 1);
  const auto store_part = [&](const RoundedOutput& part, std::size_t first, std::size_t last) {
    for (; first < last; first += rows_at_a_time) {
      const std::size_t rows = std::min(rows_at_a_time, last - first);
      const std::span<Real> piece = sums.subspan(first * columns, rows * columns);
      multiply_each(piece, factor);
      if (!bias.empty()) add_to_each_row(piece, bias);
      store(part, first * columns, std::span<const Real>(piece));
    }
  };
  for_each_part(out, sums.size() / columns, threads, smallest_part_of_elements / columns + 1, store_part);
}

template <class Real>
void product_in(const RoundedOutput& out, const fp16::MatrixOperand& a, const fp16::MatrixOperand& b,
                const Arithmetic& arithmetic, const SumCompletion& completion) {
  thread_local std::vector<Real> scratch, bias_buffer;
  const std::span<Real> sums = sums_of(out, 0, out.tensor->size(), scratch);
  if (sums.empty()) return;
  chains(a, b, sums.data(), b.columns, arithmetic);
  std::span<const Real> bias;
  if (completion.column_bias) {
    bias_buffer.resize(b.columns);
    bias = {read(*completion.column_bias, 0, b.columns, std::span(bias_buffer)), b.columns};
  }
  store_rows(out, sums, b.columns, completion.factor, bias, arithmetic.threads);
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
