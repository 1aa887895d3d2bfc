#include <immintrin.h>

#include "fp16/bulk_kernels.h"

namespace fp16::detail {
namespace {

constexpr std::size_t lanes = 8;

void convert_lanes(const float* in, std::uint16_t* out) {
  const __m128i rounded = _mm256_cvtps_ph(_mm256_loadu_ps(in), _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  _mm_storeu_si128(reinterpret_cast<__m128i*>(out), rounded);
}

void convert_lanes(const std::uint16_t* in, float* out) {
  _mm256_storeu_ps(out, _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(in))));
}

template <typename From, typename To>
void convert(const From* in, To* out, std::size_t count) {
  std::size_t i = 0;
  for (; i + lanes <= count; i += lanes) convert_lanes(in + i, out + i);
  if (i == count) return;

  From tail[lanes] = {};
  To converted[lanes];
  for (std::size_t j = i; j < count; ++j) tail[j - i] = in[j];
  convert_lanes(tail, converted);
  for (std::size_t j = i; j < count; ++j) out[j] = converted[j - i];
}

}  // namespace

const ConversionKernels avx2_f16c_conversion_kernels{
    .float_to_half = convert<float, std::uint16_t>,
    .half_to_float = convert<std::uint16_t, float>,
};

}  // namespace fp16::detail
