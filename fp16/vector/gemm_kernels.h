#pragma once
/// Internal to gemm: what an instruction set contributes. A kernel advances one tile of chains; blocking,
/// packing and edges are gemm.cpp's. The translation units that implement kernels include nothing else that
/// generates code when optimised, so that no function compiled for AVX-512 can be chosen by the linker for
/// every caller.

#include <cstddef>
#include <cstdint>

#include "fp16/gemm.h"

namespace fp16::detail {

/// The most products that one call of a kernel adds up.
inline constexpr std::size_t block_depth = 256;

/// A panel of an operand: `lane` of step k is data[k * step + lane * stride].
template <class Real>
struct Panel {
  const Real* data;
  std::size_t step;
  std::size_t stride;
};

/// One call of a kernel: chains c[i][j], row-major with `row_stride`, advance by `depth` steps of
/// c[i][j] = step(a[k][i], b[k][j], c[i][j]). b.stride is 1; what else of the panels a kernel reads is said there.
template <class Real>
struct Tile {
  Panel<Real> a;
  Panel<Real> b;
  std::size_t depth;
  Real* c;
  std::size_t row_stride;
  bool from_zero;  ///< the chains begin at +0; what c holds is not read
};

template <class Real>
struct TileKernel {
  using Advance = void (*)(const Tile<Real>& tile);
  std::size_t rows;
  std::size_t columns;
  std::size_t lanes;  ///< of a vector
  /// advance[(vectors - 1) * rows + i - 1] for the first i rows of `vectors` vectors. NaNs are stored as the
  /// canonical one. a.stride is 1; a.step and b.step are `rows` and `columns` unless any_step.
  const Advance* advance;
  bool any_step = false;
  /// `advance` for any a.stride, where reading so is about as fast; else null.
  const Advance* advance_rows = nullptr;

  static constexpr std::size_t products_per_step = 1;
};

/// What output i, j of a tensor core adds up: a[k * a_stride + i] * b[k * b_stride + j] for k below `depth`,
/// halves stored as floats.
struct TensorCoreOperands {
  const TensorCore& core;
  const float* a;
  std::size_t a_stride;
  const float* b;
  std::size_t b_stride;
  std::size_t depth;
};

/// Advances `rows` x `columns` accumulators of binary32, or of binary16 stored as floats, by mma_dot;
/// operands packed as above.
struct TensorCoreKernel {
  using Advance = void (*)(const TensorCoreOperands& operands, float* c, std::size_t row_stride);
  std::size_t rows;
  std::size_t columns;
  Advance advance_binary32;
  Advance advance_binary16;
};

struct TileKernels {
  TileKernel<float> fp32_fma_chain;
  TileKernel<float> fp16_fma_chain;
  TileKernel<float> fp16_mul_add_chain;
  TileKernel<double> fp64_fma_chain;
  TensorCoreKernel tensor_core;
};

extern const TileKernels portable_tile_kernels;
extern const TileKernels avx2_tile_kernels;
extern const TileKernels avx512_tile_kernels;
extern const TileKernels neon_tile_kernels;
extern const TileKernels neon_fp16_tile_kernels;

/// Advances the accumulators c[j] of row 0 whose bit j is set in `lanes`, by mma.h itself. Accumulator is
/// binary32 or binary16.
template <const Format& Accumulator>
void redo_lanes(const TensorCoreOperands& operands, std::uint32_t lanes, float* c);

}  // namespace fp16::detail
