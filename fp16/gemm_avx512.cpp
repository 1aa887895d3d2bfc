#include <immintrin.h>

#include "fp16/gemm_kernels.h"

namespace fp16::detail {
namespace {

struct FloatLanes {
  using Vector = __m512;
  static constexpr std::size_t width = 16;
  static Vector load(const float* p) { return _mm512_loadu_ps(p); }
  static void store(float* p, Vector x) { _mm512_storeu_ps(p, x); }
  static Vector broadcast(float x) { return _mm512_set1_ps(x); }
};

struct DoubleLanes {
  using Vector = __m512d;
  static constexpr std::size_t width = 8;
  static Vector load(const double* p) { return _mm512_loadu_pd(p); }
  static void store(double* p, Vector x) { _mm512_storeu_pd(p, x); }
  static Vector broadcast(double x) { return _mm512_set1_pd(x); }
};

struct Fp32FmaChain {
  using Lanes = FloatLanes;
  static constexpr std::size_t rows = 12, vectors = 2;
  static __m512 step(__m512 a, __m512 b, __m512 c) { return _mm512_fmadd_ps(a, b, c); }
};

struct Fp64FmaChain {
  using Lanes = DoubleLanes;
  static constexpr std::size_t rows = 12, vectors = 2;
  static __m512d step(__m512d a, __m512d b, __m512d c) { return _mm512_fmadd_pd(a, b, c); }
};

struct Fp16FmaChain {
  using Lanes = FloatLanes;
  static constexpr std::size_t rows = 8, vectors = 2;
  /// The two directed float results bracket the exact a*b + c; the one with an odd significand is
  /// round-to-odd at 24 bits, and 24 >= 11 + 2 bits make the second rounding, to binary16, a single rounding
  /// of the exact value (Boldo & Melquiond 2008). When both are equal the upward one is taken: it has the
  /// right sign for an exact zero.
  static __m512 step(__m512 a, __m512 b, __m512 c) {
    const __m512 down = _mm512_fmadd_round_ps(a, b, c, _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC);
    const __m512 up = _mm512_fmadd_round_ps(a, b, c, _MM_FROUND_TO_POS_INF | _MM_FROUND_NO_EXC);
    const __mmask16 down_is_odd = _mm512_test_epi32_mask(_mm512_castps_si512(down), _mm512_set1_epi32(1));
    const __m512 odd = _mm512_mask_blend_ps(down_is_odd, up, down);
    return _mm512_cvtph_ps(_mm512_cvtps_ph(odd, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
  }
};

}  // namespace

const TileKernels avx512_tile_kernels{
    .fp32_fma_chain = tile_kernel<Fp32FmaChain, float>(),
    .fp16_fma_chain = tile_kernel<Fp16FmaChain, float>(),
    .fp64_fma_chain = tile_kernel<Fp64FmaChain, double>(),
};

}  // namespace fp16::detail
