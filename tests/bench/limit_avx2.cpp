#include <immintrin.h>

#include "tests/bench/peers.h"

namespace bench {
namespace {

__m256 load(const Half* p) {
  return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
}
void store(Half* p, __m256 x) {
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm256_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT));
}

void float_to_half(const float* in, Half* out, std::size_t count) {
  for (std::size_t i = 0; i < count; i += 8) store(out + i, _mm256_loadu_ps(in + i));
}
void half_to_float(const Half* in, float* out, std::size_t count) {
  for (std::size_t i = 0; i < count; i += 8) _mm256_storeu_ps(out + i, load(in + i));
}

template <typename Operation>
void map(const Half* a, const Half* b, Half* out, std::size_t count, Operation operation) {
  for (std::size_t i = 0; i < count; i += 8) store(out + i, operation(load(a + i), load(b + i)));
}
void add(const Half* a, const Half* b, const Half*, Half* out, std::size_t count) {
  map(a, b, out, count, [](__m256 x, __m256 y) { return x + y; });
}
void multiply(const Half* a, const Half* b, const Half*, Half* out, std::size_t count) {
  map(a, b, out, count, [](__m256 x, __m256 y) { return x * y; });
}
void divide(const Half* a, const Half* b, const Half*, Half* out, std::size_t count) {
  map(a, b, out, count, [](__m256 x, __m256 y) { return x / y; });
}
void sqrt(const Half* a, const Half*, const Half*, Half* out, std::size_t count) {
  for (std::size_t i = 0; i < count; i += 8) store(out + i, _mm256_sqrt_ps(load(a + i)));
}

/// TwoSum, the sign of its error folded into an even last bit.
void fma(const Half* a, const Half* b, const Half* c, Half* out, std::size_t count) {
  for (std::size_t i = 0; i < count; i += 8) {
    const __m256 product = load(a + i) * load(b + i), addend = load(c + i);
    const __m256 sum = product + addend;
    const __m256 part = sum - product;
    const __m256 error = (product - (sum - part)) + (addend - part);
    const __m256i bits = _mm256_castps_si256(sum);
    const __m256i inexact = _mm256_castps_si256(_mm256_cmp_ps(error, _mm256_setzero_ps(), _CMP_NEQ_OQ));
    const __m256i side = _mm256_srai_epi32(_mm256_xor_si256(bits, _mm256_castps_si256(error)), 31);
    const __m256i step = _mm256_andnot_si256(bits, _mm256_set1_epi32(1));
    const __m256i signed_step = _mm256_sub_epi32(_mm256_xor_si256(step, side), side);
    store(out + i, _mm256_castsi256_ps(_mm256_add_epi32(bits, _mm256_and_si256(signed_step, inexact))));
  }
}

}  // namespace

const HalfLoops avx2_limit{"avx2", float_to_half, half_to_float, {add, multiply, divide, sqrt, fma}};

}  // namespace bench
