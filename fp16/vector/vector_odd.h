#pragma once
/// Internal to the vector kernels: a*b + c of halves held as floats, rounded to odd at 24 bits. Rounding that
/// to binary16 is one rounding of the exact value, because 24 >= 11 + 2 (Boldo and Melquiond 2008).

#include <immintrin.h>

namespace fp16::detail {
namespace {

/// The product of two halves is exact; TwoSum (Knuth) gives the error of the addition; folding its sign into
/// an even last bit rounds to odd.
inline __m256 fma_to_odd(__m256 a, __m256 b, __m256 c) {
  const __m256 product = a * b;
  const __m256 sum = product + c;
  const __m256 c_part = sum - product;
  const __m256 error = (product - (sum - c_part)) + (c - c_part);
  // Ordered comparison: after an infinity the error is NaN, and the sum stands as it is.
  const __m256i inexact = _mm256_castps_si256(_mm256_cmp_ps(error, _mm256_setzero_ps(), _CMP_NEQ_OQ));
  const __m256i bits = _mm256_castps_si256(sum);
  const __m256i even =
      _mm256_cmpeq_epi32(_mm256_and_si256(bits, _mm256_set1_epi32(1)), _mm256_setzero_si256());
  // +1 away from zero when the error has the sum's sign, -1 toward zero otherwise.
  const __m256i opposite = _mm256_srai_epi32(_mm256_xor_si256(bits, _mm256_castps_si256(error)), 31);
  const __m256i toward_error = _mm256_or_si256(opposite, _mm256_set1_epi32(1));
  const __m256i adjust = _mm256_and_si256(toward_error, _mm256_and_si256(inexact, even));
  return _mm256_castsi256_ps(_mm256_add_epi32(bits, adjust));
}

#ifdef __AVX512F__
/// Of the two floats that bracket a number the one with an odd significand: the number rounded to odd. When
/// they are equal the upward one: it has the right sign for an exact zero.
inline __m512 odd_of(__m512 down, __m512 up) {
  const __mmask16 down_is_odd = _mm512_test_epi32_mask(_mm512_castps_si512(down), _mm512_set1_epi32(1));
  return _mm512_mask_blend_ps(down_is_odd, up, down);
}

inline __m512 fma_to_odd(__m512 a, __m512 b, __m512 c) {
  return odd_of(_mm512_fmadd_round_ps(a, b, c, _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC),
                _mm512_fmadd_round_ps(a, b, c, _MM_FROUND_TO_POS_INF | _MM_FROUND_NO_EXC));
}
#endif

}  // namespace
}  // namespace fp16::detail
