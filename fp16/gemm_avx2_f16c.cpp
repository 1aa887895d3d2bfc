#include <immintrin.h>

#include "fp16/gemm_kernels.h"

namespace fp16::detail {
namespace {

struct FloatLanes {
  using Vector = __m256;
  static constexpr std::size_t width = 8;
  static Vector load(const float* p) { return _mm256_loadu_ps(p); }
  static void store(float* p, Vector x) { _mm256_storeu_ps(p, x); }
  static Vector broadcast(float x) { return _mm256_broadcast_ss(&x); }
};

struct DoubleLanes {
  using Vector = __m256d;
  static constexpr std::size_t width = 4;
  static Vector load(const double* p) { return _mm256_loadu_pd(p); }
  static void store(double* p, Vector x) { _mm256_storeu_pd(p, x); }
  static Vector broadcast(double x) { return _mm256_broadcast_sd(&x); }
};

struct Fp32FmaChain {
  using Lanes = FloatLanes;
  static constexpr std::size_t rows = 6, vectors = 2;
  static __m256 step(__m256 a, __m256 b, __m256 c) { return _mm256_fmadd_ps(a, b, c); }
};

struct Fp64FmaChain {
  using Lanes = DoubleLanes;
  static constexpr std::size_t rows = 6, vectors = 2;
  static __m256d step(__m256d a, __m256d b, __m256d c) { return _mm256_fmadd_pd(a, b, c); }
};

struct Fp16FmaChain {
  using Lanes = FloatLanes;
  static constexpr std::size_t rows = 4, vectors = 1;
  /// The product of two halves is exact in binary32; TwoSum (Knuth) gives the error of the addition; folding
  /// its sign into an even last bit makes round-to-odd at 24 bits, after which rounding to binary16 is a
  /// single rounding.
  static __m256 step(__m256 a, __m256 b, __m256 c) {
    const __m256 product = _mm256_mul_ps(a, b);
    const __m256 sum = _mm256_add_ps(product, c);
    const __m256 c_part = _mm256_sub_ps(sum, product);
    const __m256 error =
        _mm256_add_ps(_mm256_sub_ps(product, _mm256_sub_ps(sum, c_part)), _mm256_sub_ps(c, c_part));
    // Ordered comparison: after an infinity the error is NaN, and the sum stands as it is.
    const __m256i inexact = _mm256_castps_si256(_mm256_cmp_ps(error, _mm256_setzero_ps(), _CMP_NEQ_OQ));
    const __m256i bits = _mm256_castps_si256(sum);
    const __m256i even =
        _mm256_cmpeq_epi32(_mm256_and_si256(bits, _mm256_set1_epi32(1)), _mm256_setzero_si256());
    // +1 away from zero when the error has the sum's sign, -1 toward zero otherwise.
    const __m256i opposite = _mm256_srai_epi32(_mm256_xor_si256(bits, _mm256_castps_si256(error)), 31);
    const __m256i toward_error = _mm256_or_si256(opposite, _mm256_set1_epi32(1));
    const __m256i adjust = _mm256_and_si256(toward_error, _mm256_and_si256(inexact, even));
    const __m256 odd = _mm256_castsi256_ps(_mm256_add_epi32(bits, adjust));
    return _mm256_cvtph_ps(_mm256_cvtps_ph(odd, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
  }
};

}  // namespace

const TileKernels avx2_f16c_tile_kernels{
    .fp32_fma_chain = tile_kernel<Fp32FmaChain, float>(),
    .fp16_fma_chain = tile_kernel<Fp16FmaChain, float>(),
    .fp64_fma_chain = tile_kernel<Fp64FmaChain, double>(),
};

}  // namespace fp16::detail
