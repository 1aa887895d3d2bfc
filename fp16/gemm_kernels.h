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

/// Advances `rows` x `columns` chains by `depth` steps of c[i][j] = step(a[k][i], b[k][j], c[i][j]).
/// a is packed depth x rows, b depth x columns; c is row-major with `row_stride`.
template <class Real>
struct TileKernel {
  std::size_t rows;
  std::size_t columns;
  void (*advance)(const Real* a, const Real* b, std::size_t depth, Real* c, std::size_t row_stride);

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
extern const TileKernels avx2_f16c_tile_kernels;
extern const TileKernels avx512_tile_kernels;

/// Advances the accumulators c[j] of row 0 whose bit j is set in `lanes`, by mma.h itself. Accumulator is
/// binary32 or binary16.
template <const Format& Accumulator>
void redo_lanes(const TensorCoreOperands& operands, std::uint32_t lanes, float* c);

namespace {  // one instance per translation unit, compiled for its instruction set

template <class Step, class Real>
void advance_tile(const Real* a, const Real* b, std::size_t depth, Real* c, std::size_t row_stride) {
  using Lanes = typename Step::Lanes;
  using Vector = typename Lanes::Vector;
  // Unrolling by pragma happens early enough for the compiler to keep every chain in a register.
  Vector chain[Step::rows][Step::vectors];
#pragma GCC unroll 16
  for (std::size_t i = 0; i < Step::rows; ++i) {
#pragma GCC unroll 4
    for (std::size_t v = 0; v < Step::vectors; ++v)
      chain[i][v] = Lanes::load(c + i * row_stride + v * Lanes::width);
  }
  for (std::size_t k = 0; k < depth; ++k) {
    Vector columns[Step::vectors];
#pragma GCC unroll 4
    for (std::size_t v = 0; v < Step::vectors; ++v) columns[v] = Lanes::load(b + v * Lanes::width);
#pragma GCC unroll 16
    for (std::size_t i = 0; i < Step::rows; ++i) {
      const Vector element = Lanes::broadcast(a[i]);
#pragma GCC unroll 4
      for (std::size_t v = 0; v < Step::vectors; ++v)
        chain[i][v] = Step::step(element, columns[v], chain[i][v]);
    }
    a += Step::rows;
    b += Step::vectors * Lanes::width;
  }
#pragma GCC unroll 16
  for (std::size_t i = 0; i < Step::rows; ++i) {
#pragma GCC unroll 4
    for (std::size_t v = 0; v < Step::vectors; ++v)
      Lanes::store(c + i * row_stride + v * Lanes::width, chain[i][v]);
  }
}

template <class Step, class Real>
constexpr TileKernel<Real> tile_kernel() {
  return {Step::rows, Step::vectors * Step::Lanes::width, &advance_tile<Step, Real>};
}

}  // namespace
}  // namespace fp16::detail
