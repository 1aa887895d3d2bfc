#pragma once
/// Lanes of AVX-512 F, VL, BW and DQ, under the names of lanes_avx2.h, and in an anonymous namespace as there.

#include "fp16/vector/lanes_avx2.h"

namespace fp16::detail {
namespace {

/// Sixteen floats, integers of 32 bits under them, and 64 bytes.
struct Avx512Floats {
  using Scalar = float;
  using Vector = __m512;
  using Ints = __m512i;
  using Bytes = __m512i;
  using Mask = __mmask16;
  static constexpr std::size_t width = 16, registers = 32;
  static constexpr bool broadcasts_from_memory = true;  ///< as fast as from a register

  static Vector load(const float* p) { return _mm512_loadu_ps(p); }
  static void store(float* p, Vector x) { _mm512_storeu_ps(p, x); }
  static Vector broadcast(float x) { return _mm512_set1_ps(x); }
  template <std::size_t>
  static const float* load_elements(const float* p) {
    return p;
  }
  static Vector floats_of(Ints bits) { return _mm512_castsi512_ps(bits); }
  static Ints bits_of(Vector x) { return _mm512_castps_si512(x); }
  static Vector fma(Vector a, Vector b, Vector c) { return _mm512_fmadd_ps(a, b, c); }

  static Ints set(std::int32_t x) { return _mm512_set1_epi32(x); }
  static Ints load(const std::uint32_t* p) { return _mm512_loadu_si512(p); }
  static Ints add(Ints a, Ints b) { return _mm512_add_epi32(a, b); }
  static Ints subtract(Ints a, Ints b) { return _mm512_sub_epi32(a, b); }
  static Ints max(Ints a, Ints b) { return _mm512_max_epi32(a, b); }
  template <int bits>
  static Ints shift_left(Ints x) {
    return _mm512_slli_epi32(x, bits);
  }
  template <int bits>
  static Ints shift_right(Ints x) {
    return _mm512_srli_epi32(x, bits);
  }

  static Bytes set_bytes(std::int8_t x) { return _mm512_set1_epi8(x); }
  static Bytes load(const std::int8_t* p) { return _mm512_loadu_si512(p); }
  static void store(std::int8_t* p, Bytes x) { _mm512_storeu_si512(p, x); }
  static Bytes add_bytes_saturated(Bytes a, Bytes b) { return _mm512_adds_epi8(a, b); }
  static Bytes max_bytes(Bytes a, Bytes b) { return _mm512_max_epi8(a, b); }
  /// The next sixteen bytes as integers.
  static Ints load_widened(const std::int8_t* p) {
    return _mm512_cvtepi8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
  }

  static Mask greater(Ints a, Ints b) { return _mm512_cmpgt_epi32_mask(a, b); }
  static Mask equal(Ints a, Ints b) { return _mm512_cmpeq_epi32_mask(a, b); }
  static Mask unordered(Vector x) { return _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q); }
  static Mask negative(Ints x) { return _mm512_movepi32_mask(x); }
  static Mask either(Mask a, Mask b) { return static_cast<Mask>(a | b); }
  static std::uint32_t bits_of_mask(Mask mask) { return mask; }
  static bool any(Mask mask) { return mask != 0; }
  static Vector select(Mask mask, Vector yes, Vector no) { return _mm512_mask_blend_ps(mask, no, yes); }
  /// x where a comparison holds, else 0.
  static Ints keep(Mask comparison, Ints x) { return _mm512_maskz_mov_epi32(comparison, x); }

  static Ints truncate(Vector x) { return _mm512_cvttps_epi32(x); }
  static Vector to_float_toward_zero(Ints x) { return _mm512_cvt_roundepi32_ps(x, to_zero); }
  static Vector to_float_odd(Ints x) {
    return odd_of(_mm512_cvt_roundepi32_ps(x, to_negative), _mm512_cvt_roundepi32_ps(x, to_positive));
  }

  static Vector round_to_half(Vector x) { return _mm512_cvtph_ps(_mm512_cvtps_ph(x, to_nearest_even)); }

  /// What is named to_odd needs nothing set.
  struct ToOdd {};

  // Operations rounded to odd, in all of binary32's range: its largest number is odd, and so is its smallest.
  static constexpr bool has_full_range_to_odd = true;
  static Vector add_to_odd(Vector a, Vector b) {
    return odd_of(_mm512_add_round_ps(a, b, to_negative), _mm512_add_round_ps(a, b, to_positive));
  }
  static Vector multiply_to_odd(Vector a, Vector b) {
    return odd_of(_mm512_mul_round_ps(a, b, to_negative), _mm512_mul_round_ps(a, b, to_positive));
  }
  static Vector divide_to_odd(Vector a, Vector b) {
    const Vector quotient = _mm512_div_round_ps(a, b, to_zero);
    return odd_unless_equal(quotient, _mm512_mul_round_ps(quotient, b, to_zero), a);
  }
  static Vector sqrt_to_odd(Vector a) {
    const Vector root = _mm512_sqrt_round_ps(a, to_zero);
    return odd_unless_equal(root, _mm512_mul_round_ps(root, root, to_zero), a);
  }
  static Vector fma_to_odd(Vector a, Vector b, Vector c) {
    return odd_of(_mm512_fmadd_round_ps(a, b, c, to_negative), _mm512_fmadd_round_ps(a, b, c, to_positive));
  }

  using FmaEnvironment = ToOdd;
  static Vector fma_of_halves(Vector a, Vector b, Vector c) { return fma_to_odd(a, b, c); }

  /// A float that becomes subnormal in binary16, from its magnitude: in units of 2^-24, where every step but the
  /// drawing is exact.
  static Vector round_subnormal_stochastically(Ints magnitude, Ints random) {
    const Vector units = floats_of(magnitude) * broadcast(0x1p24f);
    const Vector kept = _mm512_roundscale_ps(units, to_zero);
    const Ints leading = _mm512_cvttps_epu32((units - kept) * broadcast(0x1p32f));
    const Mask larger = _mm512_cmpgt_epu32_mask(leading, random);
    return _mm512_mask_add_ps(kept, larger, kept, broadcast(1)) * broadcast(0x1p-24f);
  }

 private:
  /// The number rounded to odd: of the two floats that bracket it the one with an odd significand. When they
  /// are equal the upward one: it has the right sign for an exact zero.
  static Vector odd_of(Vector down, Vector up) {
    const Mask down_is_odd = _mm512_test_epi32_mask(bits_of(down), set(1));
    return _mm512_mask_blend_ps(down_is_odd, up, down);
  }
  /// A truncated number rounded to odd: it was exact if truncating what it is the inverse of gives the operand.
  /// Infinities stay: there one of the two is a NaN, or they are equal.
  static Vector odd_unless_equal(Vector truncated, Vector inverse, Vector operand) {
    const Mask inexact = _mm512_cmp_ps_mask(inverse, operand, _CMP_NEQ_OQ);
    return floats_of(_mm512_mask_or_epi32(bits_of(truncated), inexact, bits_of(truncated), set(1)));
  }
};

/// Eight integers of 64 bits.
struct Avx512Longs {
  using Vector = __m512i;
  static constexpr std::size_t width = 8;
  struct Halves {
    Vector low, high;
  };

  static Vector set(std::uint64_t x) { return _mm512_set1_epi64(static_cast<std::int64_t>(x)); }
  static Halves numbers_from(std::uint64_t first) {
    return halves_of(_mm512_add_epi64(set(first), _mm512_setr_epi64(0, 4, 1, 5, 2, 6, 3, 7)));
  }
  static Halves multiply(Vector a, Vector b) { return halves_of(_mm512_mul_epu32(a, b)); }
  static Vector exclusive_or(Vector a, Vector b, Vector c) {
    return _mm512_ternarylogic_epi64(a, b, c, 0x96);
  }
  static void store_words(std::uint32_t* p, const Vector (&words)[4]) {
    const Vector first = _mm512_mask_shuffle_epi32(words[0], 0xaaaa, words[1], _MM_PERM_CCAA);
    const Vector second = _mm512_mask_shuffle_epi32(words[2], 0xaaaa, words[3], _MM_PERM_CCAA);
    _mm512_storeu_si512(p, _mm512_unpacklo_epi64(first, second));
    _mm512_storeu_si512(p + 16, _mm512_unpackhi_epi64(first, second));
  }

 private:
  static Halves halves_of(Vector x) { return {x, _mm512_srli_epi64(x, 32)}; }
};

/// Eight doubles.
struct Avx512Doubles {
  using Scalar = double;
  using Vector = __m512d;
  static constexpr std::size_t width = 8, registers = 32;
  static constexpr bool broadcasts_from_memory = true;  ///< as fast as from a register

  static Vector load(const double* p) { return _mm512_loadu_pd(p); }
  static void store(double* p, Vector x) { _mm512_storeu_pd(p, x); }
  static Vector broadcast(double x) { return _mm512_set1_pd(x); }
  template <std::size_t>
  static const double* load_elements(const double* p) {
    return p;
  }
  static Vector fma(Vector a, Vector b, Vector c) { return _mm512_fmadd_pd(a, b, c); }
  static __mmask8 unordered(Vector x) { return _mm512_cmp_pd_mask(x, x, _CMP_UNORD_Q); }
  static Vector select(__mmask8 mask, Vector yes, Vector no) { return _mm512_mask_blend_pd(mask, no, yes); }
};

/// Sixty-four bytes.
struct Avx512Bytes {
  using Vector = __m512i;
  static constexpr std::size_t width = 64;

  static Vector load(const std::uint8_t* p) { return _mm512_loadu_si512(p); }
  static void store(std::uint8_t* p, Vector x) { _mm512_storeu_si512(p, x); }
  static Vector set(std::uint32_t x) { return _mm512_set1_epi32(static_cast<std::int32_t>(x)); }
  template <int bits>
  static Vector shift_left(Vector x) {
    return _mm512_slli_epi32(x, bits);
  }
  template <int bits>
  static Vector shift_right(Vector x) {
    return _mm512_srli_epi32(x, bits);
  }

  template <int bits>
  static Vector join_bytes(Vector x) {
    return _mm512_maddubs_epi16(x, set(0x00010001u | 1u << (24 + bits) | 1u << (8 + bits)));
  }
  template <int bits>
  static Vector join_words(Vector x) {
    return _mm512_madd_epi16(x, set(1u | 1u << (16 + bits)));
  }
  static Vector narrow(Vector first, Vector second) {
    return _mm512_permutexvar_epi64(_mm512_setr_epi64(0, 2, 4, 6, 1, 3, 5, 7),
                                    _mm512_packus_epi16(first, second));
  }
  static Vector load_as_words(const std::uint8_t* p) {
    return _mm512_cvtepu8_epi16(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
  }
  static Vector load_triples(const std::uint8_t* p) {
    const Vector bytes = _mm512_maskz_loadu_epi32(0x0fff, p);
    const Vector in_lanes =
        _mm512_permutexvar_epi32(_mm512_setr_epi32(0, 1, 2, 2, 3, 4, 5, 5, 6, 7, 8, 8, 9, 10, 11, 11), bytes);
    const __m128i order = _mm_setr_epi8(0, 1, 1, 2, 3, 4, 4, 5, 6, 7, 7, 8, 9, 10, 10, 11);
    return _mm512_shuffle_epi8(in_lanes, _mm512_broadcast_i32x4(order));
  }
  static void store_triples(std::uint8_t* p, Vector x) {
    const Vector in_lanes = _mm512_shuffle_epi8(x, _mm512_broadcast_i32x4(Avx2Bytes::triples_of_lane()));
    const Vector together = _mm512_permutexvar_epi32(
        _mm512_setr_epi32(0, 1, 2, 4, 5, 6, 8, 9, 10, 12, 13, 14, 15, 15, 15, 15), in_lanes);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), _mm512_castsi512_si256(together));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(p + 32), _mm512_extracti32x4_epi32(together, 2));
  }
};

/// Sixteen halves: their codes in half a vector, their values in one.
struct Avx512Halves {
  using Floats = Avx512Floats;
  using Words = Avx2Words;
  using Values = __m512;
  using Codes = __m256i;
  static constexpr std::size_t width = 16;
  template <Rounding>
  struct Direction {};

  static Values load(const std::uint16_t* p) {
    return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
  }
  static Values load(const float* p) { return Floats::load(p); }
  static void store(float* p, Values x) { Floats::store(p, x); }
  static Values values_of(Codes x) { return _mm512_cvtph_ps(x); }
  static void store(std::uint16_t* p, Codes x) { _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), x); }
  template <Rounding direction>
  static Codes round(Values x) {
    return _mm512_cvtps_ph(x, raising(direction));
  }
  static Codes round_to_odd(Values x) {
    const Codes truncated = round<Rounding::toward_zero>(x);
    const __mmask16 inexact = _mm512_cmp_ps_mask(_mm512_cvtph_ps(truncated), x, _CMP_NEQ_OQ);
    return _mm256_mask_blend_epi16(inexact, truncated, truncated | _mm256_set1_epi16(1));
  }
  /// operation(vector of floats, vector of random bits)
  template <class Operation>
  static Values map(Values x, const std::uint32_t* random, Operation operation) {
    return operation(x, Floats::load(random));
  }

  static Values scale(Values x, float factor) { return x * Floats::broadcast(factor); }
  /// A mask of the elements that do not fit into 11 digits, for values within binary16's normal range.
  static Codes has_more_than_11_digits(Values x) {
    return _mm256_movm_epi16(_mm512_test_epi32_mask(Floats::bits_of(x), Floats::set(0x1fff)));
  }
  /// A mask of the elements where a number of a is another than that of b.
  static Codes differing(Values a, Values b) {
    return _mm256_movm_epi16(_mm512_cmp_ps_mask(a, b, _CMP_NEQ_OQ));
  }

  static Values add_to_odd(Values a, Values b) { return Floats::add_to_odd(a, b); }
  static Values subtract_to_odd(Values a, Values b) { return Floats::add_to_odd(a, -b); }
  using Nans = Avx2Nans;
  using FmaNans = Avx2FmaNans;
  static Values multiply(Values a, Values b) { return a * b; }
  static Values divide(Values a, Values b) { return a / b; }
  static Values sqrt(Values x) { return _mm512_sqrt_ps(x); }
  static constexpr bool can_count = true;
  static Values fma(Values a, Values b, Values c) { return Floats::fma_of_halves(a, b, c); }
};

}  // namespace
}  // namespace fp16::detail
