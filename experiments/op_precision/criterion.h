#pragma once
/// The one criterion by which operations are told apart.

#include <string>

#include "fp16/formats.h"

namespace experiments::op_precision {

/// What an operation lost in FP16, its worst tensor.
struct Loss {
  /// Values that are not finite though FP64 has them finite, over the latter.
  double fraction_overflow = 0;
  /// Values that are zero though FP64 has them non-zero, over the latter; of gradients the share beyond that
  /// of the incoming gradient, which is not the operation's doing.
  double fraction_flushed = 0;
  double fraction_incoming_flushed = 0;  ///< of the incoming gradient, when it was rounded to FP16
  double forward_error_u = 0;   ///< of the output, ||FP16 - FP64|| / ||FP64|| in unit roundoffs of FP16
  double gradient_error_u = 0;  ///< of the gradients of the inputs, likewise; the largest
};

/// The worst of both.
Loss worst_of(const Loss& a, const Loss& b);

enum class Failure { none, overflow, flushed, gradient_error };

/// "-", "overflow", "flushed", "gradient error".
std::string name_of(Failure failure);

/// An operation needs FP32 if in FP16 any value overflows, more than this share of a tensor is flushed (Loss),
/// or a gradient's error is larger than this.
struct Criterion {
  double most_flushed = 0.001;
  double largest_gradient_error_u = 8;

  /// Both thresholds times `factor`.
  Criterion times(double factor) const { return {most_flushed * factor, largest_gradient_error_u * factor}; }
  /// The first of these that is not met.
  Failure failure_of(const Loss& loss) const;
  bool needs_fp32(const Loss& loss) const { return failure_of(loss) != Failure::none; }
};

/// Half an ulp of 1: what rounding once to FP16 costs a normal number at most.
constexpr double unit_roundoff = 0x1p-11;

/// The criterion in a sentence.
std::string criterion_sentence();

}  // namespace experiments::op_precision
