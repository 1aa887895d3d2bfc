#pragma once
/// Internal to the functions of half: numbers of about 106 bits as unevaluated sums of two doubles.
///
/// Only + - * / and sqrt of binary64, which IEEE 754 defines to the last bit, under round-to-nearest.
/// Dekker, "A floating-point technique for extending the available precision", 1971; error bounds of Joldes,
/// Muller and Popescu, "Tight and rigorous error bounds for basic building blocks of double-word arithmetic",
/// 2017: every operation below errs by less than 2^-100 of its result, as long as nothing underflows.

#include <cmath>

#include "fp16/format.h"

namespace fp16::detail {

/// high + low, with |low| at most half a unit in the last place of high.
struct DoubleDouble {
  double high = 0;
  double low = 0;

  constexpr DoubleDouble() = default;
  constexpr DoubleDouble(double value) : high(value) {}
  constexpr DoubleDouble(double leading, double trailing) : high(leading), low(trailing) {}

  constexpr DoubleDouble operator-() const { return {-high, -low}; }
};

/// a + b exactly, for |a| >= |b| or a = 0.
inline DoubleDouble exact_sum_of_ordered(double a, double b) {
  const double sum = a + b;
  return {sum, b - (sum - a)};
}

/// a + b exactly.
inline DoubleDouble exact_sum(double a, double b) {
  const double sum = a + b;
  const double b_part = sum - a;
  return {sum, (a - (sum - b_part)) + (b - b_part)};
}

/// a as the sum of two numbers of 26 bits (Veltkamp).
inline DoubleDouble split(double a) {
  const double scaled = a * 0x1.0000002p27;
  const double high = scaled - (scaled - a);
  return {high, a - high};
}

/// a * b exactly, for |a|, |b| < 2^990. Without fused multiply-add: a processor may lack it, and a program
/// compiled for all processors then calls a function for it.
inline DoubleDouble exact_product(double a, double b) {
  const double product = a * b;
  const DoubleDouble x = split(a);
  const DoubleDouble y = split(b);
  return {product, ((x.high * y.high - product) + x.high * y.low + x.low * y.high) + x.low * y.low};
}

inline DoubleDouble operator+(DoubleDouble a, DoubleDouble b) {
  const DoubleDouble high = exact_sum(a.high, b.high);
  const DoubleDouble low = exact_sum(a.low, b.low);
  const DoubleDouble middle = exact_sum_of_ordered(high.high, high.low + low.high);
  return exact_sum_of_ordered(middle.high, middle.low + low.low);
}

inline DoubleDouble operator-(DoubleDouble a, DoubleDouble b) {
  return a + -b;
}

inline DoubleDouble operator*(DoubleDouble a, DoubleDouble b) {
  const DoubleDouble product = exact_product(a.high, b.high);
  const double cross = a.high * b.low + a.low * b.high;
  return exact_sum_of_ordered(product.high, product.low + cross);
}

inline DoubleDouble operator*(DoubleDouble a, double b) {
  const DoubleDouble product = exact_product(a.high, b);
  return exact_sum_of_ordered(product.high, product.low + a.low * b);
}

inline DoubleDouble operator/(DoubleDouble a, DoubleDouble b) {
  const double first = a.high / b.high;
  const DoubleDouble remainder = a - b * first;
  const double second = remainder.high / b.high;
  const double third = (remainder - b * second).high / b.high;
  return exact_sum_of_ordered(first, second) + third;
}

inline DoubleDouble sqrt(DoubleDouble a) {
  if (a.high == 0) return a;
  const double root = std::sqrt(a.high);
  const DoubleDouble remainder = a - exact_product(root, root);
  return exact_sum_of_ordered(root, remainder.high / (2 * root));
}

/// a * 2^exponent, exact.
inline DoubleDouble scale(DoubleDouble a, int exponent) {
  const double factor = power_of_two(exponent);
  return {a.high * factor, a.low * factor};
}

/// To an integer, ties to even, for |a| < 2^51: above 2^52 the doubles are the integers.
inline double nearest_integer(double a) {
  constexpr double integer_shift = 0x1.8p52;
  return (a + integer_shift) - integer_shift;
}

}  // namespace fp16::detail
