#include <immintrin.h>

#include "fp16/vector/gemm_kernels.h"
#include "fp16/vector/gemm_tensor_core.h"
#include "fp16/vector/vector_odd.h"

namespace fp16::detail {
namespace {

struct FloatLanes {
  using Vector = __m256;
  static constexpr std::size_t width = 8;
  static Vector load(const float* p) { return _mm256_loadu_ps(p); }
  static void store(float* p, Vector x) { _mm256_storeu_ps(p, x); }
  static Vector broadcast(float x) { return _mm256_broadcast_ss(&x); }
  static Vector with_canonical_nan(Vector x) {
    return _mm256_blendv_ps(x, _mm256_set1_ps(canonical_nan<float>), _mm256_cmp_ps(x, x, _CMP_UNORD_Q));
  }
};

struct DoubleLanes {
  using Vector = __m256d;
  static constexpr std::size_t width = 4;
  static Vector load(const double* p) { return _mm256_loadu_pd(p); }
  static void store(double* p, Vector x) { _mm256_storeu_pd(p, x); }
  static Vector broadcast(double x) { return _mm256_broadcast_sd(&x); }
  static Vector with_canonical_nan(Vector x) {
    return _mm256_blendv_pd(x, _mm256_set1_pd(canonical_nan<double>), _mm256_cmp_pd(x, x, _CMP_UNORD_Q));
  }
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

__m256 round_to_half(__m256 x) {
  return _mm256_cvtph_ps(_mm256_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
}

struct Fp16FmaChain {
  using Lanes = FloatLanes;
  static constexpr std::size_t rows = 4, vectors = 2;
  static __m256 step(__m256 a, __m256 b, __m256 c) { return round_to_half(fma_to_odd(a, b, c)); }
};

struct Fp16MulAddChain {
  using Lanes = FloatLanes;
  static constexpr std::size_t rows = 4, vectors = 2;
  /// The product is exact in binary32, and rounding the binary32 sum of two halves is rounding their exact
  /// sum, because 24 >= 2 * 11 + 2 (Figueroa 1995).
  static __m256 step(__m256 a, __m256 b, __m256 c) { return round_to_half(round_to_half(a * b) + c); }
};

struct TensorCoreLanes {
  using Floats = __m256;
  using Ints = __m256i;
  using Bytes = __m256i;
  using Mask = __m256i;
  static constexpr std::size_t width = 8, columns = 32, rows_at_once = 4, rows = 16;

  static Floats load(const float* p) { return _mm256_loadu_ps(p); }
  static void store(float* p, Floats x) { _mm256_storeu_ps(p, x); }
  static Floats broadcast(float x) { return _mm256_set1_ps(x); }
  static Floats floats_of(Ints bits) { return _mm256_castsi256_ps(bits); }
  static Ints bits_of(Floats x) { return _mm256_castps_si256(x); }

  static Ints set(std::int32_t x) { return _mm256_set1_epi32(x); }
  static Ints add(Ints a, Ints b) { return _mm256_add_epi32(a, b); }
  static Ints subtract(Ints a, Ints b) { return _mm256_sub_epi32(a, b); }
  static Ints max(Ints a, Ints b) { return _mm256_max_epi32(a, b); }

  static Bytes set_bytes(std::int8_t x) { return _mm256_set1_epi8(x); }
  static Bytes load_bytes(const std::int8_t* p) {
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
  }
  static void store_bytes(std::int8_t* p, Bytes x) { _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), x); }
  static Bytes add_bytes_saturated(Bytes a, Bytes b) { return _mm256_adds_epi8(a, b); }
  static Bytes max_bytes(Bytes a, Bytes b) { return _mm256_max_epi8(a, b); }

  static Mask greater(Ints a, Ints b) { return _mm256_cmpgt_epi32(a, b); }
  static Mask unordered(Floats x) { return bits_of(_mm256_cmp_ps(x, x, _CMP_UNORD_Q)); }
  static Mask not_finite(Floats x) {
    return _mm256_cmpeq_epi32(exponent_of_addend<binary32>(x), set(float_exponent_mask));
  }
  /// Where a + b = sum has wrapped around: a mask whose sign bits count.
  static Mask overflowed(Ints a, Ints b, Ints sum) {
    return _mm256_and_si256(_mm256_xor_si256(a, sum), _mm256_xor_si256(b, sum));
  }
  static Mask either(Mask a, Mask b) { return _mm256_or_si256(a, b); }
  static std::uint32_t bits_of_mask(Mask mask) {
    return static_cast<std::uint32_t>(_mm256_movemask_ps(floats_of(mask)));
  }
  static Floats select(Mask mask, Floats yes, Floats no) {
    return _mm256_blendv_ps(no, yes, floats_of(mask));
  }

  /// power_of_two_bits() of every byte.
  static Ints exponents_of_bytes(const std::int8_t* p) {
    const Ints exponents = _mm256_cvtepi8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p)));
    return _mm256_slli_epi32(add(exponents, set(float_bias)), float_trailing_bits);
  }
  /// power_of_two_bits() of the exponent that c is aligned by; below all of products if c is zero.
  template <const Format& Accumulator>
  static Ints exponent_of_addend(Floats c) {
    const Ints exponent = _mm256_and_si256(bits_of(c), set(float_exponent_mask));
    if constexpr (Accumulator == binary32) return exponent;
    return _mm256_and_si256(greater(exponent, set(0)),
                            max(exponent, set(power_of_two_bits(binary16.emin()))));
  }

  static Ints truncate(Floats x) { return _mm256_cvttps_epi32(x); }
  /// The highest bit of magnitude >> 24 is where the highest bit to be dropped from the magnitude stands.
  /// Without that bit, conversion to nearest goes down.
  static Floats to_float_toward_zero(Ints x) {
    const Ints magnitude = _mm256_abs_epi32(x);
    const Ints below_half = _mm256_andnot_si256(_mm256_srli_epi32(magnitude, 24), magnitude);
    const Floats sign = _mm256_and_ps(floats_of(x), _mm256_set1_ps(-0.0f));
    return _mm256_or_ps(_mm256_cvtepi32_ps(below_half), sign);
  }
  static Floats to_float_odd(Ints x) {
    const Floats down = to_float_toward_zero(x);
    const Ints exact = _mm256_cmpeq_epi32(truncate(down), x);
    return _mm256_or_ps(down, floats_of(_mm256_andnot_si256(exact, set(1))));
  }
  static Floats round_to_half(Floats x) { return detail::round_to_half(x); }
};

}  // namespace

const TileKernels avx2_f16c_tile_kernels{
    .fp32_fma_chain = tile_kernel<Fp32FmaChain, float>(),
    .fp16_fma_chain = tile_kernel<Fp16FmaChain, float>(),
    .fp16_mul_add_chain = tile_kernel<Fp16MulAddChain, float>(),
    .fp64_fma_chain = tile_kernel<Fp64FmaChain, double>(),
    .tensor_core = tensor_core_kernel<TensorCoreLanes>(),
};

}  // namespace fp16::detail
