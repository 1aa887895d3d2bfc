#pragma once
/// What our code is measured against. Compiled for this very machine (-O3 -march=native -DNDEBUG).

#include <cstddef>
#include <cstdint>

namespace bench {

/// Plain loops over the F16C instructions, `count` a multiple of 8: the limit of a conversion.
void raw_f16c_float_to_half(const float* in, std::uint16_t* out, std::size_t count);
void raw_f16c_half_to_float(const std::uint16_t* in, float* out, std::size_t count);

/// c = a * b, all n x n row-major, by Eigen.
void eigen_product(const float* a, const float* b, float* c, std::size_t n);

}  // namespace bench
