#pragma once
/// Eigen's product, for whatever instructions the file that includes this is compiled for.

#include <Eigen/Dense>
#include <cstddef>

namespace {

/// c = a b, row-major, n x n.
void multiply_square(const float* a, const float* b, float* c, std::size_t n) {
  using Matrix = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  const auto size = static_cast<Eigen::Index>(n);
  Eigen::Map<Matrix>(c, size, size).noalias() =
      Eigen::Map<const Matrix>(a, size, size) * Eigen::Map<const Matrix>(b, size, size);
}

}  // namespace
