#include "tests/bench/peers.h"

#include <immintrin.h>

#include <Eigen/Dense>

namespace bench {

void raw_f16c_float_to_half(const float* in, std::uint16_t* out, std::size_t count) {
  for (std::size_t i = 0; i + 8 <= count; i += 8) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out + i),
                     _mm256_cvtps_ph(_mm256_loadu_ps(in + i), _MM_FROUND_TO_NEAREST_INT));
  }
}

void raw_f16c_half_to_float(const std::uint16_t* in, float* out, std::size_t count) {
  for (std::size_t i = 0; i + 8 <= count; i += 8) {
    _mm256_storeu_ps(out + i, _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(in + i))));
  }
}

void eigen_product(const float* a, const float* b, float* c, std::size_t n) {
  using Matrix = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  const auto size = static_cast<Eigen::Index>(n);
  Eigen::Map<Matrix>(c, size, size).noalias() =
      Eigen::Map<const Matrix>(a, size, size) * Eigen::Map<const Matrix>(b, size, size);
}

}  // namespace bench
