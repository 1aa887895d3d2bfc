#pragma once
/// Matrix products with a stated accumulation: C[i][j] is ONE chain over k = 0, 1, 2, ... in ascending order,
/// whatever the blocking, the vector path or the processor. Vector lanes are outputs, never parts of a sum.

#include <cstddef>
#include <string_view>

#include "fp16/format.h"
#include "fp16/vector_path.h"

namespace fp16 {

/// How one output adds up its products. The three differ in most outputs of a long product, so a caller names
/// one.
enum class Accumulation {
  fp32_fma_chain,  ///< c = fl32(a*b + c): binary32 fused multiply-add, one rounding a step
  fp16_fma_chain,  ///< c = fl16(a*b + c): binary16 fused multiply-add, one rounding a step; operands are
                   ///< halves
  fp64_fma_chain,  ///< c = fl64(a*b + c): binary64 fused multiply-add, one rounding a step
};

std::string_view name_of(Accumulation accumulation);

/// A read-only matrix in memory whose elements are stored as binary16 bits, float or double; strides in
/// elements.
struct MatrixOperand {
  const void* data;
  Format storage;  ///< binary16, binary32 or binary64
  std::size_t rows;
  std::size_t columns;
  std::size_t row_stride;
  std::size_t column_stride = 1;  ///< one of the two strides is 1

  constexpr MatrixOperand transposed() const {
    return {data, storage, columns, rows, column_stride, row_stride};
  }
};

/// Whether the chains start at +0 or go on from what C holds.
enum class ChainStart { zero, from_output };

/// C (a.rows x b.columns, row-major, `row_stride` elements from row to row) = chains over k of a[i][k] *
/// b[k][j]. binary16 operands are widened exactly. NaN outputs are the canonical quiet NaN (0x7FC00000;
/// binary64 likewise), because which payload survives a product of NaNs differs between instruction sets. The
/// float form takes fp32_fma_chain or fp16_fma_chain; for the latter operands and a C gone on from must hold
/// values of binary16, and C receives such values. The double form is the fp64_fma_chain.
/// Throws std::invalid_argument when shapes do not match or the operands' storage is wider than C,
/// or when this processor cannot run `path`.
void gemm(const MatrixOperand& a, const MatrixOperand& b, float* c, std::size_t row_stride,
          Accumulation accumulation, ChainStart start = ChainStart::zero,
          VectorPath path = active_vector_path());
void gemm(const MatrixOperand& a, const MatrixOperand& b, double* c, std::size_t row_stride,
          ChainStart start = ChainStart::zero, VectorPath path = active_vector_path());

}  // namespace fp16
