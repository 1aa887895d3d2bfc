#pragma once
/// IEEE 754 arithmetic for the instructions, independent of the library under test: binary16 by way of binary64
/// and one rounding, binary32 and binary64 by the host's own instructions.

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "tests/emulator/program.h"
#include "tests/emulator/types.h"

namespace emulator {

/// The binary interchange format of 16, 32 or 64 bits.
struct BinaryFormat {
  int precision;
  int emax;
  constexpr int emin() const { return 1 - emax; }
  constexpr std::uint64_t infinity() const { return (std::uint64_t(2 * emax + 1)) << (precision - 1); }
};
inline constexpr BinaryFormat format16{.precision = 11, .emax = 15};
inline constexpr BinaryFormat format32{.precision = 24, .emax = 127};
inline constexpr BinaryFormat format64{.precision = 53, .emax = 1023};

/// The code of significand * 2^exponent rounded to the format, without its sign.
std::uint64_t round_magnitude(const BinaryFormat& format, bool negative, std::uint64_t significand,
                              int exponent, Rounding rounding);

inline constexpr Half canonical_nan16{0x7fff};
inline constexpr float canonical_nan32 = std::bit_cast<float>(0x7fffffffu);

constexpr bool is_nan(Half a) {
  return (a.code & 0x7fff) > 0x7c00;
}
inline bool is_nan(float a) {
  return a != a;
}
inline bool is_nan(double a) {
  return a != a;
}

/// Exact; a NaN stays one.
inline double to_double(Half a) {
  const std::uint32_t magnitude = a.code & 0x7fffu;
  const std::uint32_t sign = static_cast<std::uint32_t>(a.code & 0x8000u) << 16;
  const float subnormal = static_cast<float>(magnitude) * 0x1p-24f;
  const std::uint32_t exponent_offset = magnitude >= 0x7c00 ? 0x70000000u : 0x38000000u;
  const std::uint32_t code =
      magnitude < 0x400 ? std::bit_cast<std::uint32_t>(subnormal) : (magnitude << 13) + exponent_offset;
  return std::bit_cast<float>(code | sign);
}
inline double to_double(float a) {
  return a;
}
inline double to_double(double a) {
  return a;
}

/// Rounded once, NaNs canonical.
Half half_from_double(double a, Rounding rounding);
float float_from_double(double a, Rounding rounding);

template <typename Float>
Float from_double(double a, Rounding rounding) {
  if constexpr (std::is_same_v<Float, Half>)
    return half_from_double(a, rounding);
  else if constexpr (std::is_same_v<Float, float>)
    return float_from_double(a, rounding);
  else
    return a;
}

/// A subnormal number becomes a zero of its sign if the instruction has .ftz.
inline Half flush(const Modifiers& modifiers, Half a) {
  return modifiers.ftz && (a.code & 0x7c00) == 0 ? Half{static_cast<std::uint16_t>(a.code & 0x8000)} : a;
}
inline float flush(const Modifiers& modifiers, float a) {
  return modifiers.ftz && std::fabs(a) < 0x1p-126f ? std::copysign(0.0f, a) : a;
}
inline double flush(const Modifiers&, double a) {
  return a;
}

/// What every instruction does last: flush, clamp (.sat, .relu), canonical NaNs (not in binary64).
Half finish(const Modifiers& modifiers, Half a);
float finish(const Modifiers& modifiers, float a);
double finish(const Modifiers& modifiers, double a);

/// The host's operation in a direction of its own.
enum class HostOperation { add, subtract, multiply, fma, divide, square_root };
template <typename Float>
Float host_operation(HostOperation operation, Rounding rounding, Float a, Float b, Float c);

extern template float host_operation(HostOperation, Rounding, float, float, float);
extern template double host_operation(HostOperation, Rounding, double, double, double);

/// The bits of `Relation` that hold between a and b.
enum Relation : std::uint8_t { less = 1, equal = 2, greater = 4, unordered = 8 };
template <typename Value>
Relation relation(Value a, Value b) {
  if constexpr (std::is_same_v<Value, Half>) {
    return relation(to_double(a), to_double(b));
  } else {
    return a < b ? less : a > b ? greater : a == b ? equal : unordered;
  }
}

}  // namespace emulator
