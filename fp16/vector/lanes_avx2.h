#pragma once
/// Lanes of AVX2, FMA and F16C: the instructions that the kernels of bulk_lanes.h and gemm_lanes.h are made of,
/// under the names that these use. In an anonymous namespace, so that what is compiled for this instruction set
/// stays in its translation unit.

#include <immintrin.h>

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <numeric>

#include "fp16/rounding.h"

namespace fp16::detail {
namespace {

// The rounding of conversions and, under AVX-512, of operations.
constexpr int to_nearest_even = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC;
constexpr int to_zero = _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC;
constexpr int to_positive = _MM_FROUND_TO_POS_INF | _MM_FROUND_NO_EXC;
constexpr int to_negative = _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC;

/// The same for a conversion to binary16 that raises what it must.
constexpr int raising(Rounding direction) {
  const int quiet = direction == Rounding::toward_zero       ? to_zero
                    : direction == Rounding::toward_positive ? to_positive
                    : direction == Rounding::toward_negative ? to_negative
                                                             : to_nearest_even;
  return quiet & ~_MM_FROUND_NO_EXC;
}

/// Eight floats, integers of 32 bits under them, and 32 bytes. Comparisons give masks.
struct Avx2Floats {
  using Scalar = float;
  using Vector = __m256;
  using Ints = __m256i;
  using Bytes = __m256i;
  using Mask = __m256i;
  static constexpr std::size_t width = 8, registers = 16;
  static constexpr bool broadcasts_from_memory = true;  ///< as fast as from a register

  static Vector load(const float* p) { return _mm256_loadu_ps(p); }
  static void store(float* p, Vector x) { _mm256_storeu_ps(p, x); }
  static Vector broadcast(float x) { return _mm256_set1_ps(x); }
  /// What a tile's rows are multiplied by at one step, for broadcast(elements[i]).
  template <std::size_t>
  static const float* load_elements(const float* p) {
    return p;
  }
  static Vector floats_of(Ints bits) { return _mm256_castsi256_ps(bits); }
  static Ints bits_of(Vector x) { return _mm256_castps_si256(x); }
  static Vector fma(Vector a, Vector b, Vector c) { return _mm256_fmadd_ps(a, b, c); }

  static Ints set(std::int32_t x) { return _mm256_set1_epi32(x); }
  static Ints load(const std::uint32_t* p) { return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)); }
  static Ints add(Ints a, Ints b) { return _mm256_add_epi32(a, b); }
  static Ints subtract(Ints a, Ints b) { return _mm256_sub_epi32(a, b); }
  static Ints max(Ints a, Ints b) { return _mm256_max_epi32(a, b); }
  template <int bits>
  static Ints shift_left(Ints x) {
    return _mm256_slli_epi32(x, bits);
  }
  template <int bits>
  static Ints shift_right(Ints x) {
    return _mm256_srli_epi32(x, bits);
  }

  static Bytes set_bytes(std::int8_t x) { return _mm256_set1_epi8(x); }
  static Bytes load(const std::int8_t* p) { return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)); }
  static void store(std::int8_t* p, Bytes x) { _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), x); }
  static Bytes add_bytes_saturated(Bytes a, Bytes b) { return _mm256_adds_epi8(a, b); }
  static Bytes max_bytes(Bytes a, Bytes b) { return _mm256_max_epi8(a, b); }
  /// The next eight bytes as integers.
  static Ints load_widened(const std::int8_t* p) {
    return _mm256_cvtepi8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p)));
  }

  // A mask is its sign bits; a comparison sets all bits.
  static Mask greater(Ints a, Ints b) { return _mm256_cmpgt_epi32(a, b); }
  static Mask equal(Ints a, Ints b) { return _mm256_cmpeq_epi32(a, b); }
  static Mask unordered(Vector x) { return bits_of(_mm256_cmp_ps(x, x, _CMP_UNORD_Q)); }
  static Mask negative(Ints x) { return x; }
  static Mask either(Mask a, Mask b) { return a | b; }
  static std::uint32_t bits_of_mask(Mask mask) {
    return static_cast<std::uint32_t>(_mm256_movemask_ps(floats_of(mask)));
  }
  static bool any(Mask mask) { return bits_of_mask(mask) != 0; }
  static Vector select(Mask mask, Vector yes, Vector no) {
    return _mm256_blendv_ps(no, yes, floats_of(mask));
  }
  /// x where a comparison holds, else 0.
  static Ints keep(Mask comparison, Ints x) { return comparison & x; }

  static Ints truncate(Vector x) { return _mm256_cvttps_epi32(x); }
  /// The highest bit of magnitude >> 24 is where the highest bit to be dropped from the magnitude stands.
  /// Without that bit, conversion to nearest goes down.
  static Vector to_float_toward_zero(Ints x) {
    const Ints magnitude = _mm256_abs_epi32(x);
    const Ints below_half = _mm256_andnot_si256(_mm256_srli_epi32(magnitude, 24), magnitude);
    const Vector sign = _mm256_and_ps(floats_of(x), _mm256_set1_ps(-0.0f));
    return _mm256_or_ps(_mm256_cvtepi32_ps(below_half), sign);
  }
  static Vector to_float_odd(Ints x) {
    const Vector down = to_float_toward_zero(x);
    return _mm256_or_ps(down, floats_of(_mm256_andnot_si256(equal(truncate(down), x), set(1))));
  }

  static Vector round_to_half(Vector x) { return _mm256_cvtph_ps(_mm256_cvtps_ph(x, to_nearest_even)); }

  /// While it lives, this thread truncates, and what is named to_odd rounds to odd. No load from memory is moved
  /// before it begins, and no store behind its end.
  class ToOdd {
   public:
    ToOdd() { set_control(control() | rounding_toward_zero); }
    ~ToOdd() { set_control(control() & ~rounding_toward_zero); }
    ToOdd(const ToOdd&) = delete;
    ToOdd& operator=(const ToOdd&) = delete;

   private:
    static constexpr unsigned rounding_toward_zero = 0x6000;
    static unsigned control() {
      unsigned bits;
      asm volatile("stmxcsr %0" : "=m"(bits) : : "memory");
      return bits;
    }
    static void set_control(unsigned bits) { asm volatile("ldmxcsr %0" : : "m"(bits) : "memory"); }
  };

  // Operations on numbers within binary16's range: their products are exact, and so are the remainders of truncated
  // quotients and roots.
  static constexpr bool has_full_range_to_odd = false;
  /// Where s is the truncated a + b, s - a is exact if |a| >= |b|, as a faithfully rounded sum less its larger term,
  /// and is b for an exact s alone. If |a| < |b|, it is b less what was lost, which has b's sign: its magnitude,
  /// truncated too, is b's for an exact s alone.
  static Vector add_to_odd(Vector a, Vector b) {
    const Vector sum = a + b;
    return odd_unless_equal(sum, sum - a, b);
  }
  static Vector multiply_to_odd(Vector a, Vector b) { return a * b; }
  static Vector divide_to_odd(Vector a, Vector b) {
    const Vector quotient = a / b;
    return odd_unless_equal(quotient, _mm256_fnmadd_ps(quotient, b, a), broadcast(0));
  }
  static Vector sqrt_to_odd(Vector a) {
    const Vector root = _mm256_sqrt_ps(a);
    return odd_unless_equal(root, _mm256_fnmadd_ps(root, root, a), broadcast(0));
  }
  static Vector fma_to_odd(Vector a, Vector b, Vector c) {  // a sum, of an exact product
    const Vector sum = _mm256_fmadd_ps(a, b, c);
    return odd_unless_equal(sum, _mm256_fnmadd_ps(a, b, sum), c);
  }

  /// What must be set for an fma of halves that is to be rounded to binary16 once more.
  using FmaEnvironment = ToOdd;
  static Vector fma_of_halves(Vector a, Vector b, Vector c) { return fma_to_odd(a, b, c); }

  /// A float that becomes subnormal in binary16, from its magnitude. That is, in units of 2^-24, its significand
  /// shifted right, by which shifts of 32 or more give 0.
  static Vector round_subnormal_stochastically(Ints magnitude, Ints random) {
    const Ints significand = (magnitude & set(0x7fffff)) | set(0x800000);
    const Ints shift = subtract(set(126), shift_right<23>(magnitude));
    const Ints leading = _mm256_sllv_epi32(significand, subtract(set(32), shift)) |
                         _mm256_srlv_epi32(significand, subtract(shift, set(32)));
    const Ints top_bit = set(static_cast<std::int32_t>(0x80000000));
    const Ints up = greater(leading ^ top_bit, random ^ top_bit);
    const Ints units = subtract(_mm256_srlv_epi32(significand, shift), up);
    return _mm256_cvtepi32_ps(units) * broadcast(0x1p-24f);
  }

 private:
  /// A truncated number whose last bit is set where two others differ. They do not where one is a NaN, as after an
  /// infinity, which stands as it is.
  static Vector odd_unless_equal(Vector truncated, Vector a, Vector b) {
    const Ints differ = bits_of(_mm256_cmp_ps(a, b, _CMP_NEQ_OQ));
    return floats_of(bits_of(truncated) | (differ & set(1)));
  }
};

/// Four integers of 64 bits, of which the lower halves count.
struct Avx2Longs {
  using Vector = __m256i;
  static constexpr std::size_t width = 4;
  struct Halves {
    Vector low, high;
  };

  static Vector set(std::uint64_t x) { return _mm256_set1_epi64x(static_cast<std::int64_t>(x)); }
  /// Consecutive integers in the order in which store_words takes blocks.
  static Halves numbers_from(std::uint64_t first) {
    return halves_of(_mm256_add_epi64(set(first), _mm256_setr_epi64x(0, 2, 1, 3)));
  }
  static Halves multiply(Vector a, Vector b) { return halves_of(_mm256_mul_epu32(a, b)); }
  static Vector exclusive_or(Vector a, Vector b, Vector c) { return a ^ b ^ c; }
  /// The lower halves of the four vectors, lane by lane of numbers_from.
  static void store_words(std::uint32_t* p, const Vector (&words)[4]) {
    const Vector first = _mm256_blend_epi32(words[0], _mm256_slli_epi64(words[1], 32), 0xaa);
    const Vector second = _mm256_blend_epi32(words[2], _mm256_slli_epi64(words[3], 32), 0xaa);
    auto* to = reinterpret_cast<__m256i*>(p);
    _mm256_storeu_si256(to, _mm256_unpacklo_epi64(first, second));
    _mm256_storeu_si256(to + 1, _mm256_unpackhi_epi64(first, second));
  }

 private:
  static Halves halves_of(Vector x) { return {x, _mm256_srli_epi64(x, 32)}; }
};

/// Thirty-two bytes, as integers of 32 bits where nothing else is said.
struct Avx2Bytes {
  using Vector = __m256i;
  static constexpr std::size_t width = 32;

  static Vector load(const std::uint8_t* p) {
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
  }
  static void store(std::uint8_t* p, Vector x) { _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), x); }
  static Vector set(std::uint32_t x) { return _mm256_set1_epi32(static_cast<std::int32_t>(x)); }
  template <int bits>
  static Vector shift_left(Vector x) {
    return _mm256_slli_epi32(x, bits);
  }
  template <int bits>
  static Vector shift_right(Vector x) {
    return _mm256_srli_epi32(x, bits);
  }

  /// Of each two bytes, which have no more than `bits`, the first and above them the second: at most 15 bits.
  template <int bits>
  static Vector join_bytes(Vector x) {
    return _mm256_maddubs_epi16(x, set(0x00010001u | 1u << (24 + bits) | 1u << (8 + bits)));
  }
  /// The same of each two words.
  template <int bits>
  static Vector join_words(Vector x) {
    return _mm256_madd_epi16(x, set(1u | 1u << (16 + bits)));
  }
  /// The words of two vectors, which must be below 256, as bytes.
  static Vector narrow(Vector first, Vector second) {
    return _mm256_permute4x64_epi64(_mm256_packus_epi16(first, second), 0b11'01'10'00);
  }
  /// The next 16 bytes as words.
  static Vector load_as_words(const std::uint8_t* p) {
    return _mm256_cvtepu8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
  }
  /// The next 24 bytes: of each three, the first two and the last two.
  static Vector load_triples(const std::uint8_t* p) {
    const auto* first = reinterpret_cast<const __m128i*>(p);
    const auto* second = reinterpret_cast<const __m128i*>(p + 8);  // whose last twelve bytes are used
    const __m128i order = _mm_setr_epi8(0, 1, 1, 2, 3, 4, 4, 5, 6, 7, 7, 8, 9, 10, 10, 11);
    return _mm256_shuffle_epi8(_mm256_set_m128i(_mm_loadu_si128(second), _mm_loadu_si128(first)),
                               _mm256_set_m128i(_mm_add_epi8(order, _mm_set1_epi8(4)), order));
  }
  /// The lower three bytes of each integer: 24 bytes.
  static void store_triples(std::uint8_t* p, Vector x) {
    const Vector in_lanes = _mm256_shuffle_epi8(x, _mm256_broadcastsi128_si256(triples_of_lane()));
    const Vector together = _mm256_permutevar8x32_epi32(in_lanes, _mm256_setr_epi32(0, 1, 2, 4, 5, 6, 7, 7));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm256_castsi256_si128(together));
    _mm_storel_epi64(reinterpret_cast<__m128i*>(p + 16), _mm256_extracti128_si256(together, 1));
  }

  static __m128i triples_of_lane() {
    return _mm_setr_epi8(0, 1, 2, 4, 5, 6, 8, 9, 10, 12, 13, 14, -1, -1, -1, -1);
  }
};

/// Four doubles.
struct Avx2Doubles {
  using Scalar = double;
  using Vector = __m256d;
  static constexpr std::size_t width = 4, registers = 16;
  static constexpr bool broadcasts_from_memory = true;  ///< as fast as from a register

  static Vector load(const double* p) { return _mm256_loadu_pd(p); }
  static void store(double* p, Vector x) { _mm256_storeu_pd(p, x); }
  static Vector broadcast(double x) { return _mm256_set1_pd(x); }
  template <std::size_t>
  static const double* load_elements(const double* p) {
    return p;
  }
  static Vector fma(Vector a, Vector b, Vector c) { return _mm256_fmadd_pd(a, b, c); }
  static Vector unordered(Vector x) { return _mm256_cmp_pd(x, x, _CMP_UNORD_Q); }
  static Vector select(Vector mask, Vector yes, Vector no) { return _mm256_blendv_pd(no, yes, mask); }
};

/// Sixteen integers of 16 bits. Comparisons give masks.
struct Avx2Words {
  using Vector = __m256i;

  static Vector set(std::uint16_t x) { return _mm256_set1_epi16(static_cast<std::int16_t>(x)); }
  static Vector subtract(Vector a, Vector b) { return _mm256_sub_epi16(a, b); }
  /// The next sixteen bytes.
  static Vector load_widened(const std::uint8_t* p) { return Avx2Bytes::load_as_words(p); }
  static Vector multiply(Vector a, Vector b) { return _mm256_mullo_epi16(a, b); }
  static Vector max(Vector a, Vector b) { return _mm256_max_epu16(a, b); }
  static Vector equal(Vector a, Vector b) { return _mm256_cmpeq_epi16(a, b); }
  /// Of signed integers.
  static Vector greater(Vector a, Vector b) { return _mm256_cmpgt_epi16(a, b); }
  static bool any(Vector mask) { return _mm256_testz_si256(mask, mask) == 0; }
  /// Of integers of 15 bits.
  static std::uint32_t sum(Vector x) {
    alignas(32) std::uint32_t pairs[8];
    _mm256_store_si256(reinterpret_cast<__m256i*>(pairs), _mm256_madd_epi16(x, set(1)));
    return std::accumulate(std::begin(pairs), std::end(pairs), std::uint32_t{0});
  }
};

/// Finds NaNs that are not as NanPolicy::first_operand wants them: here none.
struct Avx2Nans {
  template <class Values>
  void look(const Values&, __m256i) {}
  static bool found() { return false; }
};

/// The same for fma: perhaps all.
class Avx2FmaNans {
 public:
  template <class Values>
  void look(const Values&, __m256i codes) {
    largest_ = Avx2Words::max(largest_, codes & Avx2Words::set(0x7fff));
  }
  bool found() const { return Avx2Words::any(Avx2Words::greater(largest_, Avx2Words::set(0x7c00))); }

 private:
  __m256i largest_ = Avx2Words::set(0);
};

/// Sixteen halves: their codes in one vector, their values in two.
struct Avx2Halves {
  using Floats = Avx2Floats;
  using Words = Avx2Words;
  struct Values {
    __m256 low, high;
  };
  using Codes = __m256i;
  static constexpr std::size_t width = 16;
  /// What must be set for round<direction>.
  template <Rounding>
  struct Direction {};

  static Values load(const std::uint16_t* p) {
    const auto* halves = reinterpret_cast<const __m128i*>(p);
    return {_mm256_cvtph_ps(_mm_loadu_si128(halves)), _mm256_cvtph_ps(_mm_loadu_si128(halves + 1))};
  }
  static Values load(const float* p) { return {Floats::load(p), Floats::load(p + 8)}; }
  static Values values_of(Codes x) {
    return {_mm256_cvtph_ps(_mm256_castsi256_si128(x)), _mm256_cvtph_ps(_mm256_extracti128_si256(x, 1))};
  }
  static void store(float* p, Values x) {
    Floats::store(p, x.low);
    Floats::store(p + 8, x.high);
  }
  static void store(std::uint16_t* p, Codes x) { _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), x); }
  template <Rounding direction>
  static Codes round(Values x) {
    return _mm256_set_m128i(_mm256_cvtps_ph(x.high, raising(direction)),
                            _mm256_cvtps_ph(x.low, raising(direction)));
  }
  static Codes round_to_odd(Values x) {
    const Codes truncated = round<Rounding::toward_zero>(x);
    return truncated | (differing(values_of(truncated), x) & _mm256_set1_epi16(1));
  }
  /// operation(vector of floats, vector of random bits) on all.
  template <class Operation>
  static Values map(Values x, const std::uint32_t* random, Operation operation) {
    return {operation(x.low, Floats::load(random)), operation(x.high, Floats::load(random + 8))};
  }

  /// A mask of the elements that do not fit into 11 digits, for values within binary16's normal range.
  static Codes has_more_than_11_digits(Values x) {
    const auto holds = [](__m256 value) {
      return _mm256_cmpgt_epi32(Floats::bits_of(value) & Floats::set(0x1fff), _mm256_setzero_si256());
    };
    return in_order(holds(x.low), holds(x.high));
  }
  /// A mask of the elements where a number of a is another than that of b.
  static Codes differing(Values a, Values b) {
    return in_order(Floats::bits_of(_mm256_cmp_ps(a.low, b.low, _CMP_NEQ_OQ)),
                    Floats::bits_of(_mm256_cmp_ps(a.high, b.high, _CMP_NEQ_OQ)));
  }

  static Values add_to_odd(Values a, Values b) {
    return {Floats::add_to_odd(a.low, b.low), Floats::add_to_odd(a.high, b.high)};
  }
  static Values subtract_to_odd(Values a, Values b) {
    return {Floats::add_to_odd(a.low, -b.low), Floats::add_to_odd(a.high, -b.high)};
  }
  using Nans = Avx2Nans;
  using FmaNans = Avx2FmaNans;
  static Values add(Values a, Values b) { return {add_in_order(a.low, b.low), add_in_order(a.high, b.high)}; }
  static Values subtract(Values a, Values b) { return {a.low - b.low, a.high - b.high}; }
  static Values multiply(Values a, Values b) {
    return {multiply_in_order(a.low, b.low), multiply_in_order(a.high, b.high)};
  }
  static Values scale(Values x, float factor) {
    return {x.low * Floats::broadcast(factor), x.high * Floats::broadcast(factor)};
  }
  static Values divide(Values a, Values b) { return {a.low / b.low, a.high / b.high}; }
  static Values sqrt(Values x) { return {_mm256_sqrt_ps(x.low), _mm256_sqrt_ps(x.high)}; }
  /// Whether nearest_even_counting can be made of this.
  static constexpr bool can_count = true;
  static Values fma(Values a, Values b, Values c) {
    return {Floats::fma_of_halves(a.low, b.low, c.low), Floats::fma_of_halves(a.high, b.high, c.high)};
  }

 private:
  static Codes in_order(__m256i low, __m256i high) {
    return _mm256_permute4x64_epi64(_mm256_packs_epi32(low, high), 0b11'01'10'00);
  }
  // With two NaN operands x86 returns the first one, quieted, as this library does; but the compiler may swap the
  // operands of an addition or a product unless it does not know that it is one.
  static __m256 add_in_order(__m256 a, __m256 b) {
    __m256 sum;
    asm("vaddps %2, %1, %0" : "=x"(sum) : "x"(a), "x"(b));
    return sum;
  }
  static __m256 multiply_in_order(__m256 a, __m256 b) {
    __m256 product;
    asm("vmulps %2, %1, %0" : "=x"(product) : "x"(a), "x"(b));
    return product;
  }
};

}  // namespace
}  // namespace fp16::detail
