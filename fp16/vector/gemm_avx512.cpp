#include <immintrin.h>

#include "fp16/vector/gemm_kernels.h"
#include "fp16/vector/gemm_tensor_core.h"
#include "fp16/vector/vector_odd.h"

namespace fp16::detail {
namespace {

struct FloatLanes {
  using Vector = __m512;
  static constexpr std::size_t width = 16;
  static Vector load(const float* p) { return _mm512_loadu_ps(p); }
  static void store(float* p, Vector x) { _mm512_storeu_ps(p, x); }
  static Vector broadcast(float x) { return _mm512_set1_ps(x); }
  static Vector with_canonical_nan(Vector x) {
    return _mm512_mask_mov_ps(x, _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q),
                              _mm512_set1_ps(canonical_nan<float>));
  }
};

struct DoubleLanes {
  using Vector = __m512d;
  static constexpr std::size_t width = 8;
  static Vector load(const double* p) { return _mm512_loadu_pd(p); }
  static void store(double* p, Vector x) { _mm512_storeu_pd(p, x); }
  static Vector broadcast(double x) { return _mm512_set1_pd(x); }
  static Vector with_canonical_nan(Vector x) {
    return _mm512_mask_mov_pd(x, _mm512_cmp_pd_mask(x, x, _CMP_UNORD_Q),
                              _mm512_set1_pd(canonical_nan<double>));
  }
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

__m512 round_to_half(__m512 x) {
  return _mm512_cvtph_ps(_mm512_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
}

struct Fp16FmaChain {
  using Lanes = FloatLanes;
  static constexpr std::size_t rows = 8, vectors = 2;
  static __m512 step(__m512 a, __m512 b, __m512 c) { return round_to_half(fma_to_odd(a, b, c)); }
};

struct Fp16MulAddChain {
  using Lanes = FloatLanes;
  static constexpr std::size_t rows = 8, vectors = 2;
  /// The product is exact in binary32, and rounding the binary32 sum of two halves is rounding their exact
  /// sum, because 24 >= 2 * 11 + 2 (Figueroa 1995).
  static __m512 step(__m512 a, __m512 b, __m512 c) { return round_to_half(round_to_half(a * b) + c); }
};

struct TensorCoreLanes {
  using Floats = __m512;
  using Ints = __m512i;
  using Bytes = __m512i;
  using Mask = __mmask16;
  static constexpr std::size_t width = 16, columns = 64, rows_at_once = 8, rows = 16;

  static Floats load(const float* p) { return _mm512_loadu_ps(p); }
  static void store(float* p, Floats x) { _mm512_storeu_ps(p, x); }
  static Floats broadcast(float x) { return _mm512_set1_ps(x); }
  static Floats floats_of(Ints bits) { return _mm512_castsi512_ps(bits); }
  static Ints bits_of(Floats x) { return _mm512_castps_si512(x); }

  static Ints set(std::int32_t x) { return _mm512_set1_epi32(x); }
  static Ints add(Ints a, Ints b) { return _mm512_add_epi32(a, b); }
  static Ints subtract(Ints a, Ints b) { return _mm512_sub_epi32(a, b); }
  static Ints max(Ints a, Ints b) { return _mm512_max_epi32(a, b); }

  static Bytes set_bytes(std::int8_t x) { return _mm512_set1_epi8(x); }
  static Bytes load_bytes(const std::int8_t* p) { return _mm512_loadu_si512(p); }
  static void store_bytes(std::int8_t* p, Bytes x) { _mm512_storeu_si512(p, x); }
  static Bytes add_bytes_saturated(Bytes a, Bytes b) { return _mm512_adds_epi8(a, b); }
  static Bytes max_bytes(Bytes a, Bytes b) { return _mm512_max_epi8(a, b); }

  static Mask greater(Ints a, Ints b) { return _mm512_cmpgt_epi32_mask(a, b); }
  static Mask unordered(Floats x) { return _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q); }
  static Mask not_finite(Floats x) {
    return _mm512_cmpeq_epi32_mask(exponent_of_addend<binary32>(x), set(float_exponent_mask));
  }
  /// Where a + b = sum has wrapped around.
  static Mask overflowed(Ints a, Ints b, Ints sum) {
    return _mm512_movepi32_mask(_mm512_and_si512(_mm512_xor_si512(a, sum), _mm512_xor_si512(b, sum)));
  }
  static Mask either(Mask a, Mask b) { return static_cast<Mask>(a | b); }
  static std::uint32_t bits_of_mask(Mask mask) { return mask; }
  static Floats select(Mask mask, Floats yes, Floats no) { return _mm512_mask_blend_ps(mask, no, yes); }

  /// power_of_two_bits() of every byte.
  static Ints exponents_of_bytes(const std::int8_t* p) {
    const Ints exponents = _mm512_cvtepi8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
    return _mm512_slli_epi32(add(exponents, set(float_bias)), float_trailing_bits);
  }
  /// power_of_two_bits() of the exponent that c is aligned by; below all of products if c is zero.
  template <const Format& Accumulator>
  static Ints exponent_of_addend(Floats c) {
    const Ints exponent = _mm512_and_si512(bits_of(c), set(float_exponent_mask));
    if constexpr (Accumulator == binary32) return exponent;
    return _mm512_maskz_max_epi32(_mm512_test_epi32_mask(exponent, exponent), exponent,
                                  set(power_of_two_bits(binary16.emin())));
  }

  static Ints truncate(Floats x) { return _mm512_cvttps_epi32(x); }
  static Floats to_float_toward_zero(Ints x) {
    return _mm512_cvt_roundepi32_ps(x, _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC);
  }
  static Floats to_float_odd(Ints x) {
    return odd_of(_mm512_cvt_roundepi32_ps(x, _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC),
                  _mm512_cvt_roundepi32_ps(x, _MM_FROUND_TO_POS_INF | _MM_FROUND_NO_EXC));
  }
  static Floats round_to_half(Floats x) { return detail::round_to_half(x); }
};

}  // namespace

const TileKernels avx512_tile_kernels{
    .fp32_fma_chain = tile_kernel<Fp32FmaChain, float>(),
    .fp16_fma_chain = tile_kernel<Fp16FmaChain, float>(),
    .fp16_mul_add_chain = tile_kernel<Fp16MulAddChain, float>(),
    .fp64_fma_chain = tile_kernel<Fp64FmaChain, double>(),
    .tensor_core = tensor_core_kernel<TensorCoreLanes>(),
};

}  // namespace fp16::detail
