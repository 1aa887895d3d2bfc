#pragma once
/// One operation by itself, in FP16 and in FP64, on the same operands.

#include <array>
#include <string_view>

#include "experiments/op_precision/criterion.h"
#include "experiments/op_precision/operands.h"

namespace experiments::op_precision {

/// In what an operation forms its sums (but those of products, which are in FP32 as tensor cores form them,
/// and those of losses, which are in FP32 too) when its operands and results are FP16.
enum class Reductions { fp32, fp16 };
inline constexpr std::array all_reductions{Reductions::fp32, Reductions::fp16};

constexpr std::string_view name_of(Reductions reductions) {
  return reductions == Reductions::fp32 ? "fp32" : "fp16";
}

/// What is largest, of the values as they were recorded.
struct Ranges {
  double operand = 0;  ///< |activation|: of input 0 and of those that are no parameters
  double output = 0;
  double output_gradient = 0;  ///< before scaling
  double input_gradient = 0;   ///< before scaling
};

struct Measured {
  Ranges ranges;
  std::array<Loss, all_reductions.size()> losses;  ///< by Reductions
  /// What rounding the operands and the incoming gradient costs the gradients of the inputs, in FP64: a loss
  /// that no list saves whose operations are handed FP16.
  double operand_rounding_u = 0;

  const Loss& loss(Reductions reductions) const { return losses[static_cast<std::size_t>(reductions)]; }
  Loss& loss(Reductions reductions) { return losses[static_cast<std::size_t>(reductions)]; }
};

/// The operation's output in binary32.
sim::Tensor evaluated(const Operands& operands);

/// The largest of the activations' magnitudes.
double largest_operand(const Operands& operands);

/// The incoming gradient is multiplied by what a loss scaler that knew only this operation could have: as large
/// a power of two as leaves every gradient below 2^15 and none overflowing in FP16. A gradient that is zero but
/// for rounding, which rounding the operands changes by more than its norm, is left out.
///
/// FP16: operands, incoming gradient, result and gradients in binary16, each rounded once; in between binary32,
/// as on CUDA, with sums as asked for. The truth: binary64 throughout, from the same rounded operands and
/// incoming gradient; for overflow, also from the unrounded ones: the logarithm of what was flushed is one.
Measured measure(const Operands& operands);

}  // namespace experiments::op_precision
