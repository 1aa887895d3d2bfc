#pragma once
/// Internal to bulk: + - * / sqrt and fma of numbers of at most 11 digits, as loops without branches that the
/// compiler turns into vector code. One instance per translation unit, compiled for its instruction set.

#include <bit>
#include <type_traits>

#include "fp16/vector/bulk_kernels.h"

namespace fp16::detail {
namespace {

constexpr std::uint64_t long_of(double value) {
  return std::bit_cast<std::uint64_t>(value);
}
constexpr double double_of(std::uint64_t bits) {
  return std::bit_cast<double>(bits);
}

/// A choice by masks, as `select` of bulk_loops.h.
constexpr std::uint64_t select_long(bool condition, std::uint64_t yes, std::uint64_t no) {
  const std::uint64_t mask = std::uint64_t{0} - condition;
  return (yes & mask) | (no & ~mask);
}

/// `value` is the exact result rounded to nearest, `error` has the sign of what that rounding lost. An even
/// significand goes to its odd neighbour on the side of the exact result.
template <typename Real>
Real rounded_to_odd(Real value, Real error) {
  using Bits = std::conditional_t<sizeof(Real) == 4, std::uint32_t, std::uint64_t>;
  const auto bits = std::bit_cast<Bits>(value);
  const Bits inexact = (error < 0) | (error > 0);  // not after an infinity, whose error is NaN
  const Bits away = 1 - (((bits ^ std::bit_cast<Bits>(error)) >> (8 * sizeof(Bits) - 1)) << 1);
  return std::bit_cast<Real>(bits + (away & (0 - (inexact & ~bits & 1))));
}

/// TwoSum (Knuth): the error of an addition, exactly.
template <typename Real>
Real sum_to_odd(Real a, Real b) {
  const Real sum = a + b;
  const Real b_part = sum - a;
  return rounded_to_odd(sum, (a - (sum - b_part)) + (b - b_part));
}

/// A quotient of 24 bits times a divisor of 11 is exact in double, and so is the remainder.
inline float quotient_to_odd(float a, float b) {
  const float quotient = a / b;
  const double remainder = static_cast<double>(a) - static_cast<double>(quotient) * static_cast<double>(b);
  return rounded_to_odd(quotient, static_cast<float>(b < 0 ? -remainder : remainder));
}

inline float root_to_odd(float a) {
  const float root = __builtin_sqrtf(a);
  const double remainder = static_cast<double>(a) - static_cast<double>(root) * static_cast<double>(root);
  return rounded_to_odd(root, static_cast<float>(remainder));
}

/// An operation on numbers whose products and quotients are within binary32's range, rounded to odd. A product is
/// exact.
inline float operation_to_odd(ArrayOperation operation, float a, float b, float c) {
  switch (operation) {
    case ArrayOperation::add:
      return sum_to_odd(a, b);
    case ArrayOperation::subtract:
      return sum_to_odd(a, -b);
    case ArrayOperation::multiply:
      return a * b;
    case ArrayOperation::divide:
      return quotient_to_odd(a, b);
    case ArrayOperation::sqrt:
      return root_to_odd(a);
    case ArrayOperation::fma:
      return sum_to_odd(a * b, c);
  }
  return a;
}

/// A binary64 number, exact or rounded to odd, as a binary32 one: subnormal ones are odd multiples of 2^-149, too
/// large ones the largest, which is odd. Infinities and NaNs stay. Added to a power of two whose unit in the last place
/// is binary32's at that number, it is rounded as binary32 needs it.
inline float narrowed_to_odd(double value) {
  constexpr std::uint64_t sign_bit = std::uint64_t{1} << 63, infinity = std::uint64_t{0x7ff} << 52;
  constexpr std::uint64_t min_normal = long_of(0x1p-126), narrowing = std::uint64_t{29} << 52;
  const std::uint64_t sign = long_of(value) & sign_bit;
  const std::uint64_t bits = long_of(value) ^ sign;
  const std::uint64_t power = bits & infinity;
  const double shift = double_of((power > min_normal ? power : min_normal) + narrowing);
  const double sum = double_of(bits) + shift;
  const double rounded = rounded_to_odd(sum, double_of(bits) - (sum - shift)) - shift;
  constexpr std::uint64_t largest = long_of(0x1.fffffep127);
  std::uint64_t result = select_long(bits > largest, largest, long_of(rounded));
  result = select_long(bits >= infinity, bits, result);
  return static_cast<float>(double_of(result | sign));
}

/// An operation on any numbers with binary32's exponents, rounded to odd. A quotient or root that binary64 rounds lies
/// farther from every number of 24 digits than that rounding moves it: by 2^-35 of itself and more, or 2^-49.
inline float wide_operation_to_odd(ArrayOperation operation, double a, double b, double c) {
  switch (operation) {
    case ArrayOperation::add:
      return narrowed_to_odd(sum_to_odd(a, b));
    case ArrayOperation::subtract:
      return narrowed_to_odd(sum_to_odd(a, -b));
    case ArrayOperation::multiply:
      return narrowed_to_odd(a * b);
    case ArrayOperation::divide:
      return narrowed_to_odd(a / b);
    case ArrayOperation::sqrt:
      return narrowed_to_odd(__builtin_sqrt(a));
    case ArrayOperation::fma:
      return narrowed_to_odd(sum_to_odd(a * b, c));
  }
  return 0;
}

/// result(a, b, c) of all elements.
template <ArrayOperation operation, typename Result>
void operate(const float* a, const float* b, const float* c, float* out, std::size_t count, Result result) {
  constexpr bool unary = operation == ArrayOperation::sqrt;
  constexpr bool ternary = operation == ArrayOperation::fma;
  for (std::size_t i = 0; i < count; ++i) out[i] = result(a[i], unary ? 0 : b[i], ternary ? c[i] : 0);
}

template <ArrayOperation operation>
void to_odd(const float* a, const float* b, const float* c, float* out, std::size_t count) {
  operate<operation>(a, b, c, out, count,
                     [](float x, float y, float z) { return operation_to_odd(operation, x, y, z); });
}

template <ArrayOperation operation>
void to_odd_wide(const float* a, const float* b, const float* c, float* out, std::size_t count) {
  operate<operation>(a, b, c, out, count,
                     [](double x, double y, double z) { return wide_operation_to_odd(operation, x, y, z); });
}

/// visit.template operator()<operation>() for all of them.
template <typename Visit>
constexpr void for_each_operation(Visit visit) {
  visit.template operator()<ArrayOperation::add>();
  visit.template operator()<ArrayOperation::subtract>();
  visit.template operator()<ArrayOperation::multiply>();
  visit.template operator()<ArrayOperation::divide>();
  visit.template operator()<ArrayOperation::sqrt>();
  visit.template operator()<ArrayOperation::fma>();
}

/// `kernels` with the loops of this file added.
constexpr BulkKernels with_operations(BulkKernels kernels) {
  for_each_operation([&]<ArrayOperation operation>() {
    constexpr auto row = static_cast<std::size_t>(operation);
    kernels.to_odd[row] = to_odd<operation>;
    kernels.to_odd_wide[row] = to_odd_wide<operation>;
  });
  return kernels;
}

}  // namespace
}  // namespace fp16::detail
