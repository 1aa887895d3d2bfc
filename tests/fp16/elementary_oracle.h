#pragma once
/// The elementary functions beside the same in binary64 (libm), and the distance between the two.

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <string_view>

#include "fp16/elementary.h"

namespace fp16 {

struct ElementaryFunction {
  std::string_view name;
  float (*function)(float);
  double (*reference)(double);
  double max_error_ulp;  ///< as the header states it
};

inline constexpr std::array elementary_functions{
    ElementaryFunction{"exp", exp, std::exp, 0.90},
    ElementaryFunction{"expm1", expm1, std::expm1, 1.17},
    ElementaryFunction{"log", log, std::log, 0.87},
    ElementaryFunction{"log1p", log1p, std::log1p, 0.94},
    ElementaryFunction{"sigmoid", sigmoid,
                       [](double x) {
                         const double decay = std::exp(-std::fabs(x));
                         return std::signbit(x) ? decay / (1.0 + decay) : 1.0 / (1.0 + decay);
                       },
                       2.41},
    ElementaryFunction{"softplus", softplus,
                       [](double x) { return std::fmax(x, 0.0) + std::log1p(std::exp(-std::fabs(x))); },
                       1.62},
    ElementaryFunction{"tanh", tanh, std::tanh, 1.40},
    ElementaryFunction{"erf", erf, std::erf, 1.33},
    ElementaryFunction{"normal_cdf", normal_cdf,
                       [](double x) { return 0.5 * std::erfc(x * -0.70710678118654752); }, 3.86},
};

/// |result - exact| in units of exact's last binary32 place (2^-149 among the subnormals); +inf where one is
/// NaN and the other is not, one is infinite and the other would not round to the same infinity, or a zero
/// has the wrong sign.
inline double error_ulp(float result, double exact) {
  constexpr double wrong = std::numeric_limits<double>::infinity();
  constexpr double overflow_threshold = 0x1.ffffffp127;
  if (std::isnan(exact) || std::isnan(result)) return std::isnan(exact) && std::isnan(result) ? 0.0 : wrong;
  if (std::isinf(result)) {
    return std::fabs(exact) >= overflow_threshold && std::signbit(exact) == std::signbit(result) ? 0.0
                                                                                                 : wrong;
  }
  if (std::isinf(exact) || (result == 0.0f && std::signbit(result) != std::signbit(exact))) return wrong;
  const int exponent = exact == 0.0 ? -149 : std::max(std::ilogb(exact) - 23, -149);
  return std::ldexp(std::fabs(static_cast<double>(result) - exact), -exponent);
}

}  // namespace fp16
