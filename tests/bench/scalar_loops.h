#pragma once
/// Loops over a library's half type, one element at a time. Included by one translation unit for each.

#include <bit>
#include <cmath>

#include "tests/bench/peers.h"

namespace bench {
namespace {

/// `from_bits` and `to_bits` convert without change.
template <class Library>
struct ScalarLoops {
  using Number = typename Library::Number;

  static void float_to_half(const float* in, Half* out, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) out[i] = Library::to_bits(static_cast<Number>(in[i]));
  }
  static void half_to_float(const Half* in, float* out, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) out[i] = static_cast<float>(Library::from_bits(in[i]));
  }
  static void add(const Half* a, const Half* b, const Half*, Half* out, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i)
      out[i] = Library::to_bits(static_cast<Number>(Library::from_bits(a[i]) + Library::from_bits(b[i])));
  }
  static void multiply(const Half* a, const Half* b, const Half*, Half* out, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i)
      out[i] = Library::to_bits(static_cast<Number>(Library::from_bits(a[i]) * Library::from_bits(b[i])));
  }
  static void divide(const Half* a, const Half* b, const Half*, Half* out, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i)
      out[i] = Library::to_bits(static_cast<Number>(Library::from_bits(a[i]) / Library::from_bits(b[i])));
  }
  static void sqrt(const Half* a, const Half*, const Half*, Half* out, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i)
      out[i] = Library::to_bits(static_cast<Number>(std::sqrt(static_cast<float>(Library::from_bits(a[i])))));
  }
  /// By a float fma and a second rounding: not exact.
  static void fma(const Half* a, const Half* b, const Half* c, Half* out, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
      out[i] = Library::to_bits(static_cast<Number>(std::fma(static_cast<float>(Library::from_bits(a[i])),
                                                             static_cast<float>(Library::from_bits(b[i])),
                                                             static_cast<float>(Library::from_bits(c[i])))));
    }
  }

  static constexpr HalfLoops loops(std::string_view name) {
    return {name, float_to_half, half_to_float, {add, multiply, divide, sqrt, fma}};
  }
};

}  // namespace
}  // namespace bench
