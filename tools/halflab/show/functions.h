#pragma once
/// Functions of one number, to 192 bits: what the exact result of exp(x) is before a format rounds it.
///
/// How they are known: tests hold every function to MPFR and, in binary16, to fp16::math.

#include <optional>
#include <span>
#include <string_view>

#include "tools/halflab/show/exact_number.h"

namespace halflab::show {

struct Function {
  std::string_view name;
  /// At a finite x that is not zero: the exact value where it has at most 192 bits, else its leading 192 with `has_more`. None
  /// outside the domain. Throws std::invalid_argument where an exponential or an angle takes |x| > 65536.
  std::optional<ExactNumber> (*value)(double x);
  /// At zeros and infinities, and outside the domain, as C23 annex F has it: a number that every format holds, an infinity,
  /// which is a pole where x is finite, or NaN, which is an invalid operation.
  double (*limit)(double x);
};

std::span<const Function> functions();

/// Null for a name that is none.
const Function* function_named(std::string_view name);

}  // namespace halflab::show
