#pragma once
/// Internal to bulk: kernels on the F16C instructions, written once for both instruction sets. `Lanes` is
/// what one offers for 16 elements; tails go through padded copies.

#include <immintrin.h>

#include "fp16/vector/bulk_loops.h"
#include "fp16/vector/vector_odd.h"

namespace fp16::detail {
namespace {

constexpr std::int32_t half_min_normal = 0x38800000;  // 2^-14 as a float

constexpr int to_nearest_even = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC;
constexpr int to_zero = _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC;
constexpr int to_positive = _MM_FROUND_TO_POS_INF | _MM_FROUND_NO_EXC;
constexpr int to_negative = _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC;

// Of two NaN operands x86 returns the first one, quieted, as this library does; but the compiler may swap the
// operands of an addition or a product unless it does not know that it is one.
inline __m256 add_in_order(__m256 a, __m256 b) {
  __m256 sum;
  asm("vaddps %2, %1, %0" : "=x"(sum) : "x"(a), "x"(b));
  return sum;
}
inline __m256 multiply_in_order(__m256 a, __m256 b) {
  __m256 product;
  asm("vmulps %2, %1, %0" : "=x"(product) : "x"(a), "x"(b));
  return product;
}

/// Two vectors side by side, so that their codes fill one.
struct Avx2Floats {
  __m256 low, high;
};

/// |x| in units of 2^-24 is its significand shifted right, by which shifts of 32 or more give 0.
__m256i round_subnormal_stochastically(__m256i magnitude, __m256i random) {
  const __m256i fraction = _mm256_and_si256(magnitude, _mm256_set1_epi32(0x7fffff));
  const __m256i significand = _mm256_or_si256(fraction, _mm256_set1_epi32(0x800000));
  const __m256i shift = _mm256_sub_epi32(_mm256_set1_epi32(126), _mm256_srli_epi32(magnitude, 23));
  const __m256i word = _mm256_set1_epi32(32);
  const __m256i leading = _mm256_or_si256(_mm256_sllv_epi32(significand, _mm256_sub_epi32(word, shift)),
                                          _mm256_srlv_epi32(significand, _mm256_sub_epi32(shift, word)));
  const __m256i top_bit = _mm256_set1_epi32(static_cast<int>(0x80000000));
  const __m256i up =
      _mm256_cmpgt_epi32(_mm256_xor_si256(leading, top_bit), _mm256_xor_si256(random, top_bit));
  const __m256i units = _mm256_sub_epi32(_mm256_srlv_epi32(significand, shift), up);
  return _mm256_castps_si256(_mm256_mul_ps(_mm256_cvtepi32_ps(units), _mm256_set1_ps(0x1p-24f)));
}

/// x rounded to a value of binary16; infinities and NaNs as they are.
__m256 round_stochastically(__m256 x, __m256i random) {
  const __m256i bits = _mm256_castps_si256(x);
  const __m256i magnitude = _mm256_and_si256(bits, _mm256_set1_epi32(0x7fffffff));
  const __m256i dropped = _mm256_set1_epi32(0x1fff);
  const __m256i addend = _mm256_sub_epi32(dropped, _mm256_srli_epi32(random, 19));
  __m256i result = _mm256_andnot_si256(dropped, _mm256_add_epi32(magnitude, addend));
  const __m256i subnormal = _mm256_cmpgt_epi32(_mm256_set1_epi32(half_min_normal), magnitude);
  if (!_mm256_testz_si256(subnormal, subnormal))
    result = _mm256_blendv_epi8(result, round_subnormal_stochastically(magnitude, random), subnormal);
  const __m256i nan = _mm256_castps_si256(_mm256_cmp_ps(x, x, _CMP_UNORD_Q));
  result = _mm256_blendv_epi8(result, magnitude, nan);
  return _mm256_castsi256_ps(_mm256_or_si256(result, _mm256_xor_si256(bits, magnitude)));
}

struct Avx2Integers {
  __m256i low, high;
};

/// 16 elements in AVX2 vectors.
struct Avx2Lanes {
  using Floats = Avx2Floats;
  using Codes = __m256i;
  static constexpr std::size_t width = 16;

  static Floats load(const std::uint16_t* p) {
    const auto* halves = reinterpret_cast<const __m128i*>(p);
    return {_mm256_cvtph_ps(_mm_loadu_si128(halves)), _mm256_cvtph_ps(_mm_loadu_si128(halves + 1))};
  }
  static Floats load(const float* p) { return {_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8)}; }
  static void store(float* p, Floats x) {
    _mm256_storeu_ps(p, x.low);
    _mm256_storeu_ps(p + 8, x.high);
  }
  static void store(std::uint16_t* p, Codes x) { _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), x); }
  template <int direction>
  static Codes round(Floats x) {
    return _mm256_set_m128i(_mm256_cvtps_ph(x.high, direction), _mm256_cvtps_ph(x.low, direction));
  }
  static Avx2Integers load_integers(const std::uint32_t* p) {
    const auto* integers = reinterpret_cast<const __m256i*>(p);
    return {_mm256_loadu_si256(integers), _mm256_loadu_si256(integers + 1)};
  }
  static Floats round_stochastically(Floats x, Avx2Integers random) {
    return {detail::round_stochastically(x.low, random.low),
            detail::round_stochastically(x.high, random.high)};
  }
  static Floats add(Floats a, Floats b) { return {add_in_order(a.low, b.low), add_in_order(a.high, b.high)}; }
  static Floats subtract(Floats a, Floats b) { return {a.low - b.low, a.high - b.high}; }
  static Floats multiply(Floats a, Floats b) {
    return {multiply_in_order(a.low, b.low), multiply_in_order(a.high, b.high)};
  }
  static Floats divide(Floats a, Floats b) { return {a.low / b.low, a.high / b.high}; }
  static Floats sqrt(Floats x) { return {_mm256_sqrt_ps(x.low), _mm256_sqrt_ps(x.high)}; }
  static Floats fma_to_odd(Floats a, Floats b, Floats c) {
    return {detail::fma_to_odd(a.low, b.low, c.low), detail::fma_to_odd(a.high, b.high, c.high)};
  }
};

/// step(inputs, out, i) for the elements i .. i + width - 1, for all of them.
template <std::size_t width, std::size_t inputs, typename In, typename Out, typename Step>
void for_each_vector(const In* const (&in)[inputs], Out* out, std::size_t count, Step step) {
  const std::size_t whole = count / width * width;
#pragma GCC unroll 4
  for (std::size_t i = 0; i < whole; i += width) step(in, out, i);
  if (whole == count) return;

  In padded[inputs][width] = {};
  const In* padded_in[inputs];
  Out padded_out[width];
  for (std::size_t k = 0; k < inputs; ++k) {
    for (std::size_t j = whole; j < count; ++j) padded[k][j - whole] = in[k][j];
    padded_in[k] = padded[k];
  }
  step(padded_in, padded_out, 0);
  for (std::size_t j = whole; j < count; ++j) out[j] = padded_out[j - whole];
}

template <class Lanes>
void half_to_float(const std::uint16_t* in, float* out, std::size_t count) {
  const auto step = [](const std::uint16_t* const* from, float* to, std::size_t i) {
    Lanes::store(to + i, Lanes::load(from[0] + i));
  };
  for_each_vector<Lanes::width>({in}, out, count, step);
}

template <class Lanes, int direction>
void float_to_half(const float* in, std::uint16_t* out, std::size_t count) {
  const auto step = [](const float* const* from, std::uint16_t* to, std::size_t i) {
    Lanes::store(to + i, Lanes::template round<direction>(Lanes::load(from[0] + i)));
  };
  for_each_vector<Lanes::width>({in}, out, count, step);
}

/// In normal results 13 bits are dropped: adding 2^13 - 1 - (random >> 19) to the bits of the float carries
/// into the kept ones iff the dropped ones exceed random >> 19. Subnormal results are rare or all there is,
/// so they are worked out only where there are some.
template <class Lanes>
void float_to_half_stochastic(const float* in, const std::uint32_t* random, std::uint16_t* out,
                              std::size_t count) {
  const std::size_t whole = count / Lanes::width * Lanes::width;
  std::size_t i = 0;
  for (; i < whole; i += Lanes::width) {
    const auto rounded = Lanes::round_stochastically(Lanes::load(in + i), Lanes::load_integers(random + i));
    Lanes::store(out + i, Lanes::template round<to_nearest_even>(rounded));
  }
  if (i == count) return;

  float padded[Lanes::width] = {};
  std::uint32_t padded_random[Lanes::width] = {};
  std::uint16_t padded_out[Lanes::width];
  for (std::size_t j = i; j < count; ++j) {
    padded[j - i] = in[j];
    padded_random[j - i] = random[j];
  }
  const auto rounded = Lanes::round_stochastically(Lanes::load(padded), Lanes::load_integers(padded_random));
  Lanes::store(padded_out, Lanes::template round<to_nearest_even>(rounded));
  for (std::size_t j = i; j < count; ++j) out[j] = padded_out[j - i];
}

template <class Lanes, HalfOperation operation>
typename Lanes::Floats operate(const std::uint16_t* a, const std::uint16_t* b, const std::uint16_t* c) {
  if constexpr (operation == HalfOperation::add) return Lanes::add(Lanes::load(a), Lanes::load(b));
  if constexpr (operation == HalfOperation::subtract) return Lanes::subtract(Lanes::load(a), Lanes::load(b));
  if constexpr (operation == HalfOperation::multiply) return Lanes::multiply(Lanes::load(a), Lanes::load(b));
  if constexpr (operation == HalfOperation::divide) return Lanes::divide(Lanes::load(a), Lanes::load(b));
  if constexpr (operation == HalfOperation::sqrt) return Lanes::sqrt(Lanes::load(a));
  if constexpr (operation == HalfOperation::fma)
    return Lanes::fma_to_odd(Lanes::load(a), Lanes::load(b), Lanes::load(c));
}

/// One float operation and one more rounding: harmless for + - * / and sqrt, because 24 >= 2 * 11 + 2
/// (Figueroa, "When is double rounding innocuous?", 1995). Their NaNs are right already; fma, which goes by
/// way of round-to-odd, looks for NaNs.
template <class Lanes, HalfOperation operation>
bool nearest_even(const std::uint16_t* a, const std::uint16_t* b, const std::uint16_t* c, std::uint16_t* out,
                  std::size_t count) {
  constexpr bool finds_nans = operation == HalfOperation::fma;
  __m256i largest = _mm256_setzero_si256();
  const auto step = [&](const std::uint16_t* const* from, std::uint16_t* to, std::size_t i) {
    const auto result = operate<Lanes, operation>(from[0] + i, from[1] + i, from[2] + i);
    const __m256i codes = Lanes::template round<to_nearest_even>(result);
    if constexpr (finds_nans)
      largest = _mm256_max_epu16(largest, _mm256_and_si256(codes, _mm256_set1_epi16(0x7fff)));
    Lanes::store(to + i, codes);
  };
  for_each_vector<Lanes::width>({a, b, c}, out, count, step);
  return _mm256_movemask_epi8(_mm256_cmpgt_epi16(largest, _mm256_set1_epi16(0x7c00))) != 0;
}

/// `Lanes` serves where wider vectors are faster.
template <class Lanes>
constexpr BulkKernels f16c_kernels() {
  return with_loops({
      .half_to_float = half_to_float<Avx2Lanes>,
      .float_to_half = {float_to_half<Avx2Lanes, to_nearest_even>, nullptr, float_to_half<Avx2Lanes, to_zero>,
                        float_to_half<Avx2Lanes, to_positive>, float_to_half<Avx2Lanes, to_negative>,
                        nullptr},
      .float_to_half_stochastic = float_to_half_stochastic<Lanes>,
      .encode_8 = {},
      .encode_16 = {},
      .encode_32 = {},
      .to_odd = {},
      .nearest_even = {nearest_even<Avx2Lanes, HalfOperation::add>,
                       nearest_even<Avx2Lanes, HalfOperation::subtract>,
                       nearest_even<Avx2Lanes, HalfOperation::multiply>,
                       nearest_even<Lanes, HalfOperation::divide>, nearest_even<Lanes, HalfOperation::sqrt>,
                       nearest_even<Lanes, HalfOperation::fma>},
  });
}

}  // namespace
}  // namespace fp16::detail
