#pragma once
/// Outputs that are to be had from a mistake, and whether a formula gives them.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

#include "experiments/explain_gemm/problem.h"

namespace experiments::explain_gemm {

// That so many outputs lie within their bounds by chance is unlikely for each of some hundred thousand ways.
inline constexpr std::size_t least_outputs = 8;

struct Wrong {
  std::size_t output;
  double observed;
  double exact;
  double bound;  ///< of |observed - value| for the exact value
};

using Wrongs = std::vector<Wrong>;

/// The bound allows for rounding the exact value to D, of which a larger value takes more.
inline double bound_around(const Problem& problem, const Wrong& wrong, double value) {
  const double beyond = std::fabs(value) - std::fabs(wrong.exact);
  return wrong.bound + std::ldexp(std::max(0.0, beyond), -problem.d.format.precision);
}

/// Nothing fits where an operand is infinite: within that bound everything would.
inline bool fits(const Problem& problem, const Wrong& wrong, double value) {
  const double bound = bound_around(problem, wrong, value);
  return std::isfinite(bound) && std::fabs(wrong.observed - value) <= bound;
}

/// Whether a value is another one than is right, so that it can explain what is wrong.
inline bool is_another(const Wrong& wrong, double value) {
  return std::fabs(value - wrong.exact) > wrong.bound;
}

/// Whether a formula gives all of them, and is not the right one on these operands, as that of a transposed A on a
/// symmetric one is.
template <class Value>
bool explains_all(const Problem& problem, const Wrongs& wrong, const Value& value) {
  bool changes = false;
  for (const Wrong& w : wrong) {
    const double other = value(w);
    if (!fits(problem, w, other)) return false;
    changes = changes || is_another(w, other);
  }
  return changes;
}

inline double added_c(const Problem& problem, std::size_t output) {
  return double{problem.beta} * problem.c_at(output);
}

}  // namespace experiments::explain_gemm
