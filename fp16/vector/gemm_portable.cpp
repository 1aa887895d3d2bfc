#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <span>

#include "fp16/config.h"
#include "fp16/half.h"
#include "fp16/mma.h"
#include "fp16/vector/gemm_chains.h"
#include "fp16/vector/gemm_doubles.h"

namespace fp16::detail {
namespace {

/// One float or double.
template <class Real>
struct PortableLanes {
  using Scalar = Real;
  using Vector = Real;
  static constexpr std::size_t width = 1;
  static Vector load(const Real* p) { return *p; }
  static void store(Real* p, Vector x) { *p = x; }
  static Vector broadcast(Real x) { return x; }
  template <std::size_t>
  static const Real* load_elements(const Real* p) {
    return p;
  }
  static bool unordered(Vector x) { return x != x; }
  static Vector select(bool condition, Vector yes, Vector no) { return condition ? yes : no; }
};

struct Tile4x4 {
  static constexpr std::size_t rows = 4, vectors = 4;
  struct Environment {};
};

/// std::fma is exact by IEEE 754, in hardware or (slowly) without: the same bits as the vector paths.
template <class Real>
struct FmaChain : Tile4x4 {
  using Lanes = PortableLanes<Real>;
  static Real step(Real a, Real b, Real c) { return std::fma(a, b, c); }
};

/// The definitions themselves: the integer arithmetic of half.h.
struct Fp16FmaChain : Tile4x4 {
  using Lanes = PortableLanes<float>;
  static float step(float a, float b, float c) { return fma(half(a), half(b), half(c)); }
};

struct Fp16MulAddChain : Tile4x4 {
  using Lanes = PortableLanes<float>;
  static float step(float a, float b, float c) { return half(a) * half(b) + half(c); }
};

using Codes = std::array<std::uint16_t, block_depth>;

std::span<const std::uint16_t> gather(const float* halves, std::size_t stride, std::size_t count,
                                      Codes& codes) {
  for (std::size_t k = 0; k < count; ++k) codes[k] = half(halves[k * stride]).bits();
  return std::span(codes).first(count);
}

template <const Format& Accumulator>
float accumulate(const TensorCore& core, std::span<const std::uint16_t> a, std::span<const std::uint16_t> b,
                 float c) {
  if constexpr (Accumulator == binary32) {
    return std::bit_cast<float>(mma_dot<binary32>(core, a, b, std::bit_cast<std::uint32_t>(c)));
  } else {
    return half::from_bits(mma_dot<binary16>(core, a, b, half(c).bits()));
  }
}

constexpr std::size_t tensor_core_rows = 4, tensor_core_columns = 16;

template <const Format& Accumulator>
void advance_tensor_core_tile(const TensorCoreOperands& operands, float* c, std::size_t row_stride) {
  std::array<Codes, tensor_core_columns> columns;
  Codes row;
  for (std::size_t j = 0; j < tensor_core_columns; ++j)
    gather(operands.b + j, operands.b_stride, operands.depth, columns[j]);
  for (std::size_t i = 0; i < tensor_core_rows; ++i) {
    const auto a = gather(operands.a + i, operands.a_stride, operands.depth, row);
    for (std::size_t j = 0; j < tensor_core_columns; ++j) {
      float& output = c[i * row_stride + j];
      output = accumulate<Accumulator>(operands.core, a, std::span(columns[j]).first(a.size()), output);
    }
  }
}

}  // namespace

constinit const TileKernels portable_tile_kernels{
    .fp32_fma_chain = FP16_HAS_FMA ? tile_kernel<FmaChain<float>>() : double_tile_kernel(),
    .fp16_fma_chain = tile_kernel<Fp16FmaChain>(),
    .fp16_mul_add_chain = tile_kernel<Fp16MulAddChain>(),
    .fp64_fma_chain = tile_kernel<FmaChain<double>>(),
    .tensor_core = {.rows = tensor_core_rows,
                    .columns = tensor_core_columns,
                    .advance_binary32 = &advance_tensor_core_tile<binary32>,
                    .advance_binary16 = &advance_tensor_core_tile<binary16>},
};

template <const Format& Accumulator>
void redo_lanes(const TensorCoreOperands& operands, std::uint32_t lanes, float* c) {
  Codes row, column;
  const auto a = gather(operands.a, operands.a_stride, operands.depth, row);
  for (; lanes != 0; lanes &= lanes - 1) {
    const int j = std::countr_zero(lanes);
    const auto b = gather(operands.b + j, operands.b_stride, operands.depth, column);
    c[j] = accumulate<Accumulator>(operands.core, a, b, c[j]);
  }
}

template void redo_lanes<binary32>(const TensorCoreOperands& operands, std::uint32_t lanes, float* c);
template void redo_lanes<binary16>(const TensorCoreOperands& operands, std::uint32_t lanes, float* c);

}  // namespace fp16::detail
