#pragma once
/// Optional, for programs that use the Eigen library: halves as the scalars of its matrices and arrays.
///
/// Every addition and every multiplication of an Eigen expression of halves rounds to half, sums and matrix
/// products after each step; and Eigen chooses the order of a sum by the sizes and the storage of what is
/// summed. Products with a stated order and a stated accumulation are in gemm.h; or cast to float:
/// `a.cast<float>() * b.cast<float>()`.

#include <Eigen/Core>

#include "half.h"

/// Printing needs half_text.h, functions such as array().exp() need math.h. Costs count in those of the
/// built-in types: an operation of halves is some tens of integer instructions.
template <>
struct Eigen::NumTraits<fp16::half> : Eigen::GenericNumTraits<fp16::half> {
  enum { RequireInitialization = 0, ReadCost = 1, AddCost = 20, MulCost = 20 };

  /// How far two numbers may differ, relative to them, and still count as approximately equal: 8 epsilon.
  static constexpr fp16::half dummy_precision() { return fp16::half(8 * fp16::binary16.epsilon()); }
};
