#include <array>

#include "sim/ops/operation.h"

namespace sim {

std::span<const Operation* const> operations() {
  static constexpr std::array rows{
      &cast,
      &matmul,
      &bias,
      &linear,
      &conv2d,
      &relu,
      &sigmoid,
      &max_pool2d,
      &softmax_cross_entropy,
      &mean_squared_error,
  };
  return rows;
}

}  // namespace sim
