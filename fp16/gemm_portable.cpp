#include <cmath>

#include "fp16/gemm_kernels.h"
#include "fp16/half.h"

namespace fp16::detail {
namespace {

template <class Real>
struct ScalarLanes {
  using Vector = Real;
  static constexpr std::size_t width = 1;
  static Vector load(const Real* p) { return *p; }
  static void store(Real* p, Vector x) { *p = x; }
  static Vector broadcast(Real x) { return x; }
};

/// std::fma is exact by IEEE 754, in hardware or (slowly) without: the same bits as the vector paths.
template <class Real>
struct FmaChain {
  using Lanes = ScalarLanes<Real>;
  static constexpr std::size_t rows = 4, vectors = 4;
  static Real step(Real a, Real b, Real c) { return std::fma(a, b, c); }
};

/// The definition itself: the integer fma of half.h.
struct Fp16FmaChain {
  using Lanes = ScalarLanes<float>;
  static constexpr std::size_t rows = 4, vectors = 4;
  static float step(float a, float b, float c) { return fma(half(a), half(b), half(c)); }
};

}  // namespace

const TileKernels portable_tile_kernels{
    .fp32_fma_chain = tile_kernel<FmaChain<float>, float>(),
    .fp16_fma_chain = tile_kernel<Fp16FmaChain, float>(),
    .fp64_fma_chain = tile_kernel<FmaChain<double>, double>(),
};

}  // namespace fp16::detail
