#include "experiments/op_precision/criterion.h"

#include <fmt/format.h>

#include <algorithm>

namespace experiments::op_precision {

Loss worst_of(const Loss& a, const Loss& b) {
  return {.fraction_overflow = std::max(a.fraction_overflow, b.fraction_overflow),
          .fraction_flushed = std::max(a.fraction_flushed, b.fraction_flushed),
          .fraction_incoming_flushed = std::max(a.fraction_incoming_flushed, b.fraction_incoming_flushed),
          .forward_error_u = std::max(a.forward_error_u, b.forward_error_u),
          .gradient_error_u = std::max(a.gradient_error_u, b.gradient_error_u)};
}

std::string name_of(Failure failure) {
  switch (failure) {
    case Failure::none:
      return "-";
    case Failure::overflow:
      return "overflow";
    case Failure::flushed:
      return "flushed";
    case Failure::gradient_error:
      return "gradient error";
  }
  return {};
}

Failure Criterion::failure_of(const Loss& loss) const {
  if (loss.fraction_overflow > 0) return Failure::overflow;
  if (loss.fraction_flushed > most_flushed) return Failure::flushed;
  if (!(loss.gradient_error_u <= largest_gradient_error_u)) return Failure::gradient_error;
  return Failure::none;
}

std::string criterion_sentence() {
  const Criterion criterion;
  return fmt::format(
      "An operation needs FP32 if in FP16, over the ranges recorded, any of its values overflows, more than "
      "{:g} % of the non-zero values of its output are flushed to zero or as many more of a gradient that it "
      "hands on than of the one that came in, or the error of such a gradient exceeds {:g} u (u = 2^-11, "
      "||FP16 - FP64|| / ||FP64||, both from the same operands and incoming gradient, rounded to FP16).",
      100 * criterion.most_flushed, criterion.largest_gradient_error_u);
}

}  // namespace experiments::op_precision
