#pragma once
/// Matrix products with a stated accumulation: C[i][j] is ONE chain over k = 0, 1, 2, ... in ascending order,
/// whatever the blocking, the threads, the vector path or the processor. Vector lanes are outputs, never
/// parts of a sum. Needs halflab::fp16_bulk.

#include <cstddef>
#include <string>
#include <string_view>

#include "format.h"
#include "mma.h"
#include "vector_path.h"

namespace fp16 {

/// How one output adds up its products, rounding to nearest-even. These and the tensor cores' ways differ in
/// most outputs of a long product, so a caller names one.
enum class Accumulation {
  fp32_fma_chain,      ///< c = fl32(a*b + c): binary32 fused multiply-add, one rounding a step
  fp16_fma_chain,      ///< c = fl16(a*b + c): binary16 fused multiply-add, one rounding a step
  fp16_mul_add_chain,  ///< c = fl16(fl16(a*b) + c): binary16 product and sum, two roundings a step
  fp64_fma_chain,      ///< c = fl64(a*b + c): binary64 fused multiply-add, one rounding a step
};

std::string_view name_of(Accumulation accumulation);

/// The steps of a tensor core: C[i][j] = mma_dot<accumulator> (mma.h) on `core`. A step fuses
/// core.products_per_step products and rounds once; the last one may have fewer.
struct TensorCoreAccumulation {
  TensorCore core;
  Format accumulator;  ///< binary32 or binary16
};

/// Such as "tensor_core_hopper_binary32".
std::string name_of(const TensorCoreAccumulation& accumulation);

/// A read-only matrix in memory whose elements are stored as binary16 or bfloat16 bits, float or double;
/// strides in elements.
struct MatrixOperand {
  const void* data;
  Format storage;  ///< binary16, bfloat16, binary32 or binary64
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

/// How a product is computed; neither the path nor the threads change a bit of it.
struct GemmOptions {
  ChainStart start = ChainStart::zero;
  VectorPath path = active_vector_path();
  int threads = 1;  ///< the rows of C are cut into as many contiguous parts
};

/// C (a.rows x b.columns, row-major, `row_stride` elements from row to row) = chains over k of a[i][k] *
/// b[k][j]. binary16 and bfloat16 operands are widened exactly. A float C takes all accumulations but
/// fp64_fma_chain, a double C that one alone.
///
/// For all but fp32_fma_chain and fp64_fma_chain the operands must hold values of binary16, however they are
/// stored; for accumulators of binary16, C too receives such values, and must hold them to be gone on from.
///
/// NaN outputs are canonical, but for a C gone on from without products. Of chains that is the quiet NaN
/// 0x7FC00000 (binary64 likewise), because which payload survives a product of NaNs differs between
/// instruction sets; of tensor cores it is the model's, 0x7FFFFFFF, and 0x7FFFE000 (0x7FFF widened) from a
/// binary16 accumulator.
///
/// C must share no element with an operand. That is not looked into: matrices may lie between each other's rows.
///
/// Throws std::invalid_argument when shapes do not match, rows of C overlap, an operand is stored wider than C, an
/// accumulation is not one of C's, core.products_per_step is not in 1 .. 256, the accumulator of a tensor core is neither
/// binary32 nor binary16, options.threads is less than 1, or this processor cannot run options.path.
void gemm(const MatrixOperand& a, const MatrixOperand& b, float* c, std::size_t row_stride,
          Accumulation accumulation, const GemmOptions& options = {});
void gemm(const MatrixOperand& a, const MatrixOperand& b, float* c, std::size_t row_stride,
          const TensorCoreAccumulation& accumulation, const GemmOptions& options = {});
void gemm(const MatrixOperand& a, const MatrixOperand& b, double* c, std::size_t row_stride,
          const GemmOptions& options = {});

}  // namespace fp16
