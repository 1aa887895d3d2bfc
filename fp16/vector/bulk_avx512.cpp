#include "fp16/vector/bulk_lanes.h"

namespace fp16::detail {
namespace {

struct Avx512Lanes {
  using Floats = __m512;
  using Codes = __m256i;
  static constexpr std::size_t width = 16;

  static Floats load(const std::uint16_t* p) {
    return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
  }
  static Floats load(const float* p) { return _mm512_loadu_ps(p); }
  static void store(float* p, Floats x) { _mm512_storeu_ps(p, x); }
  static void store(std::uint16_t* p, Codes x) { _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), x); }
  template <int direction>
  static Codes round(Floats x) {
    return _mm512_cvtps_ph(x, direction);
  }
  static __m512i load_integers(const std::uint32_t* p) { return _mm512_loadu_si512(p); }

  /// x rounded to a value of binary16; infinities and NaNs as they are.
  static Floats round_stochastically(Floats x, __m512i random) {
    const __m512i bits = _mm512_castps_si512(x);
    const __m512i magnitude = _mm512_and_si512(bits, _mm512_set1_epi32(0x7fffffff));
    const __m512i dropped = _mm512_set1_epi32(0x1fff);
    const __m512i addend = _mm512_sub_epi32(dropped, _mm512_srli_epi32(random, 19));
    __m512i result = _mm512_andnot_si512(dropped, _mm512_add_epi32(magnitude, addend));
    const __mmask16 subnormal = _mm512_cmplt_epi32_mask(magnitude, _mm512_set1_epi32(half_min_normal));
    if (subnormal != 0)
      result = _mm512_mask_mov_epi32(result, subnormal, round_subnormal_stochastically(magnitude, random));
    const __mmask16 nan = _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q);
    result = _mm512_mask_mov_epi32(result, nan, magnitude);
    return _mm512_castsi512_ps(_mm512_or_si512(result, _mm512_xor_si512(bits, magnitude)));
  }

  /// In units of 2^-24, where every step but the drawing is exact.
  static __m512i round_subnormal_stochastically(__m512i magnitude, __m512i random) {
    const Floats units = _mm512_mul_ps(_mm512_castsi512_ps(magnitude), _mm512_set1_ps(0x1p24f));
    const Floats kept = _mm512_roundscale_ps(units, to_zero);
    const Floats fraction = _mm512_sub_ps(units, kept);
    const __m512i leading = _mm512_cvttps_epu32(_mm512_mul_ps(fraction, _mm512_set1_ps(0x1p32f)));
    const __mmask16 up = _mm512_cmpgt_epu32_mask(leading, random);
    const Floats rounded = _mm512_mask_add_ps(kept, up, kept, _mm512_set1_ps(1));
    return _mm512_castps_si512(_mm512_mul_ps(rounded, _mm512_set1_ps(0x1p-24f)));
  }

  static Floats divide(Floats a, Floats b) { return _mm512_div_ps(a, b); }
  static Floats sqrt(Floats x) { return _mm512_sqrt_ps(x); }

  static Floats fma_to_odd(Floats a, Floats b, Floats c) { return detail::fma_to_odd(a, b, c); }
};

}  // namespace

const BulkKernels avx512_bulk_kernels = f16c_kernels<Avx512Lanes>();

}  // namespace fp16::detail
