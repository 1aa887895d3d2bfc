#pragma once
/// Optional, for programs that use the Eigen library: halves as the scalars of its matrices and arrays.
///
/// Every addition and every multiplication of an Eigen expression of halves rounds to half, sums and matrix
/// products after each step; and Eigen chooses the order of a sum by the sizes and the storage of what is
/// summed. Products with a stated order and a stated accumulation are in gemm.h; or cast to float:
/// `a.cast<float>() * b.cast<float>()`.

#include <Eigen/Core>
#include <cstdlib>

#include "half.h"

/// Printing needs half_text.h, functions such as array().exp() need math.h. Costs count in those of the
/// built-in types: an operation of halves is some tens of integer instructions.
template <>
struct Eigen::NumTraits<fp16::half> : Eigen::GenericNumTraits<fp16::half> {
  enum { RequireInitialization = 0, ReadCost = 1, AddCost = 20, MulCost = 20 };

  /// How far two numbers may differ, relative to them, and still count as approximately equal: 8 epsilon.
  static constexpr fp16::half dummy_precision() { return fp16::half(8 * fp16::binary16.epsilon()); }
};

/// What Random() draws: halves in [x, y], without arguments in [-1, 1]. Eigen's own would divide by RAND_MAX, which
/// is beyond the largest half.
template <>
struct Eigen::internal::random_impl<fp16::half> {
  static fp16::half run(const fp16::half& x, const fp16::half& y) {
    const float share = static_cast<float>(std::rand()) / static_cast<float>(RAND_MAX);
    return fp16::half(x + (static_cast<float>(y) - x) * share);
  }
  static fp16::half run() { return run(fp16::half(-1), fp16::half(1)); }
};
