#pragma once
/// The half-precision number type: IEEE 754 binary16 in two bytes, with the operators of the built-in types.

#include <bit>
#include <compare>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iosfwd>
#include <limits>
#include <span>
#include <type_traits>

#include "arithmetic.h"
#include "codec.h"
#include "comparison.h"
#include "config.h"
#include "integral.h"

namespace fp16 {

class half;

namespace detail {

template <typename Value>
concept FitsLongDouble = std::floating_point<Value> &&
                         std::numeric_limits<Value>::digits <= std::numeric_limits<long double>::digits;

/// More constrained than std::integral, so that it is chosen where both fit.
template <typename Value>
concept GivenInteger = std::integral<Value> && sizeof(Value) > 0;

/// A half beside an integer, in either order.
template <typename B, typename A>
concept MixesWith = (std::same_as<A, half> && std::integral<B>) ||
                    (std::integral<A> && std::same_as<B, half>);

}  // namespace detail

/// A binary16 number. Every operation is exact and then rounded once to nearest-even; other directions and
/// the exception flags are in arithmetic.h and codec.h, on `bits()`.
///
/// Mixed expressions are those of the built-in types. Beside a float or a double a half takes part as one:
/// `h * 2.0f` is a float, and needs half(...) to come back. An integer becomes a half first: `h + 1` is a
/// half, with 2049 it adds 2048; std::common_type says so, too. Compared with either, a half is a float.
///
/// Functions are found without a namespace: `sqrt(h)` is a half. `std::sqrt(h)` takes and returns a float, and what
/// depends on the format is then wrong: std::nextafter, std::fpclassify.
class half {
 public:
  constexpr half() = default;
  /// Rounds once from the type given, to nearest-even; beyond the largest finite half the result is infinite.
  /// Explicit, because it rounds, and because a half that made itself of a float would leave `h * 2.0f`
  /// ambiguous.
  FP16_HD explicit constexpr half(float value) : bits_(float_to_half_bits(value)) {}
  FP16_HD explicit constexpr half(double value) : bits_(double_to_half_bits(value)) {}
  /// Long double and the other floating-point types of C++23 round once too.
  template <detail::FitsLongDouble Value>
  explicit constexpr half(Value value) : bits_(encode<binary16>(static_cast<long double>(value)).bits) {}
  template <detail::GivenInteger Integer>
  FP16_HD explicit constexpr half(Integer value) : bits_(from_integer<binary16>(+value).bits) {}
  /// Unless half(...) is written out: else `h > 0 ? h : 0` would be an int, unseen, as it is to Clang still.
  template <std::integral Integer>
  half(Integer) = delete;

  template <std::integral Integer>
  FP16_HD constexpr half& operator=(Integer value) {
    return *this = half(value);
  }
  template <std::floating_point Value>
  half& operator=(Value) = delete;  // would round unseen: half(...) says so

  FP16_HD static constexpr half from_bits(Code<binary16> bits) {
    half result;
    result.bits_ = bits;
    return result;
  }
  FP16_HD constexpr std::uint16_t bits() const { return bits_; }

  /// Exact; a signalling NaN becomes quiet.
  FP16_HD constexpr operator float() const { return half_bits_to_float(bits_); }

  FP16_HD constexpr half operator+() const { return *this; }
  /// Flips the sign bit, of a NaN too.
  FP16_HD constexpr half operator-() const { return from_bits(bits_ ^ sign_mask<binary16>); }

  FP16_HD friend constexpr half operator+(half a, half b) {
    return from_bits(add<binary16>(a.bits_, b.bits_).bits);
  }
  FP16_HD friend constexpr half operator-(half a, half b) {
    return from_bits(subtract<binary16>(a.bits_, b.bits_).bits);
  }
  FP16_HD friend constexpr half operator*(half a, half b) {
    return from_bits(multiply<binary16>(a.bits_, b.bits_).bits);
  }
  FP16_HD friend constexpr half operator/(half a, half b) {
    return from_bits(divide<binary16>(a.bits_, b.bits_).bits);
  }

  /// An integer beside a half becomes one.
  template <typename A, detail::MixesWith<A> B>
  FP16_HD friend constexpr half operator+(A a, B b) {
    return half(a) + half(b);
  }
  template <typename A, detail::MixesWith<A> B>
  FP16_HD friend constexpr half operator-(A a, B b) {
    return half(a) - half(b);
  }
  template <typename A, detail::MixesWith<A> B>
  FP16_HD friend constexpr half operator*(A a, B b) {
    return half(a) * half(b);
  }
  template <typename A, detail::MixesWith<A> B>
  FP16_HD friend constexpr half operator/(A a, B b) {
    return half(a) / half(b);
  }

  FP16_HD constexpr half& operator+=(half other) { return *this = *this + other; }
  FP16_HD constexpr half& operator-=(half other) { return *this = *this - other; }
  FP16_HD constexpr half& operator*=(half other) { return *this = *this * other; }
  FP16_HD constexpr half& operator/=(half other) { return *this = *this / other; }

  template <std::integral Integer>
  FP16_HD constexpr half& operator+=(Integer other) {
    return *this = *this + other;
  }
  template <std::integral Integer>
  FP16_HD constexpr half& operator-=(Integer other) {
    return *this = *this - other;
  }
  template <std::integral Integer>
  FP16_HD constexpr half& operator*=(Integer other) {
    return *this = *this * other;
  }
  template <std::integral Integer>
  FP16_HD constexpr half& operator/=(Integer other) {
    return *this = *this / other;
  }

  template <std::floating_point Value>
  half& operator+=(Value) = delete;  // half(h + x) or h + half(x)? They differ; write one
  template <std::floating_point Value>
  half& operator-=(Value) = delete;  // half(h - x) or h - half(x)? They differ; write one
  template <std::floating_point Value>
  half& operator*=(Value) = delete;  // half(h * x) or h * half(x)? They differ; write one
  template <std::floating_point Value>
  half& operator/=(Value) = delete;  // half(h / x) or h / half(x)? They differ; write one

  FP16_HD constexpr half& operator++() { return *this += 1; }
  FP16_HD constexpr half& operator--() { return *this -= 1; }
  FP16_HD constexpr half operator++(int) {
    const half before = *this;
    ++*this;
    return before;
  }
  FP16_HD constexpr half operator--(int) {
    const half before = *this;
    --*this;
    return before;
  }

  FP16_HD friend constexpr bool operator==(half a, half b) {
    return (a <=> b) == std::partial_ordering::equivalent;
  }
  FP16_HD friend constexpr std::partial_ordering operator<=>(half a, half b) {
    return compare<binary16>(a.bits_, b.bits_);
  }
  template <std::integral Integer>
  FP16_HD friend constexpr bool operator==(half a, Integer b) {
    return float(a) == static_cast<float>(b);
  }
  template <std::integral Integer>
  FP16_HD friend constexpr std::partial_ordering operator<=>(half a, Integer b) {
    return float(a) <=> static_cast<float>(b);
  }

#ifdef FP16_HAS_NATIVE_HALF
  /// From and to a _Float16 a number keeps its value, and a NaN its bits.
  explicit constexpr half(_Float16 value) : bits_(std::bit_cast<std::uint16_t>(value)) {}
  template <std::same_as<_Float16> Native>
  explicit constexpr operator Native() const {
    return std::bit_cast<Native>(bits_);
  }
#endif

 private:
  std::uint16_t bits_ = 0;
};

static_assert(sizeof(half) == 2 && std::is_trivially_copyable_v<half>);

/// The codes of a vector, an array or a span of halves, as the array functions take them. Nothing is copied.
template <typename Halves>
requires std::convertible_to<Halves&, std::span<const half>>
auto bits_of(Halves&& halves) {
  const std::span row(halves);
  using Half = typename decltype(row)::element_type;
  using Word = std::conditional_t<std::is_const_v<Half>, const std::uint16_t, std::uint16_t>;
  return std::span<Word>(reinterpret_cast<Word*>(row.data()), row.size());
}

/// a * b + c with one rounding.
FP16_HD constexpr half fma(half a, half b, half c) {
  return half::from_bits(fma<binary16>(a.bits(), b.bits(), c.bits()).bits);
}
FP16_HD constexpr half sqrt(half a) {
  return half::from_bits(sqrt<binary16>(a.bits()).bits);
}
FP16_HD constexpr half abs(half a) {
  return half::from_bits(magnitude<binary16>(a.bits()));
}

FP16_HD constexpr bool isnan(half a) {
  return is_nan<binary16>(a.bits());
}
FP16_HD constexpr bool isinf(half a) {
  return is_infinite<binary16>(a.bits());
}
FP16_HD constexpr bool isfinite(half a) {
  return is_finite<binary16>(a.bits());
}
FP16_HD constexpr bool is_subnormal(half a) {
  return is_subnormal<binary16>(a.bits());
}
FP16_HD constexpr bool signbit(half a) {
  return is_negative<binary16>(a.bits());
}

}  // namespace fp16

template <>
class std::numeric_limits<fp16::half> {
  static constexpr const fp16::Format& format = fp16::binary16;

 public:
  static constexpr bool is_specialized = true;
  static constexpr bool is_signed = true;
  static constexpr bool is_integer = false;
  static constexpr bool is_exact = false;
  static constexpr bool has_infinity = true;
  static constexpr bool has_quiet_NaN = true;
  static constexpr bool has_signaling_NaN = true;
  static constexpr std::float_denorm_style has_denorm = std::denorm_present;
  static constexpr bool has_denorm_loss = false;
  static constexpr std::float_round_style round_style = std::round_to_nearest;
  static constexpr bool is_iec559 = true;
  static constexpr bool is_bounded = true;
  static constexpr bool is_modulo = false;
  static constexpr bool traps = false;
  static constexpr bool tinyness_before = false;

  static constexpr int radix = 2;
  static constexpr int digits = format.precision;
  static constexpr int digits10 = format.digits10();
  static constexpr int max_digits10 = format.max_digits10();
  static constexpr int min_exponent = format.emin() + 1;
  static constexpr int min_exponent10 = fp16::detail::whole_decimal_digits(format.emin()) + 1;
  static constexpr int max_exponent = format.emax() + 1;
  static constexpr int max_exponent10 = fp16::detail::whole_decimal_digits(max_exponent);

  static constexpr fp16::half min() noexcept { return from_bits(fp16::min_normal_bits<format>); }
  static constexpr fp16::half max() noexcept { return from_bits(fp16::max_finite_bits<format>); }
  static constexpr fp16::half lowest() noexcept { return -max(); }
  static constexpr fp16::half epsilon() noexcept { return fp16::half(format.epsilon()); }
  static constexpr fp16::half round_error() noexcept { return fp16::half(0.5f); }
  static constexpr fp16::half infinity() noexcept { return from_bits(fp16::infinity_bits<format>); }
  static constexpr fp16::half quiet_NaN() noexcept { return from_bits(fp16::quiet_nan_bits<format>); }
  static constexpr fp16::half signaling_NaN() noexcept {
    return from_bits(fp16::infinity_bits<format> | fp16::quiet_bit<format> >> 1);
  }
  static constexpr fp16::half denorm_min() noexcept { return from_bits(fp16::min_subnormal_bits<format>); }

 private:
  static constexpr fp16::half from_bits(std::uint16_t bits) { return fp16::half::from_bits(bits); }
};

template <std::integral Integer>
struct std::common_type<fp16::half, Integer> {
  using type = fp16::half;
};
template <std::integral Integer>
struct std::common_type<Integer, fp16::half> {
  using type = fp16::half;
};

/// Equal halves have equal hashes, -0 and +0 too.
template <>
struct std::hash<fp16::half> {
  std::size_t operator()(fp16::half a) const noexcept {
    return std::hash<std::uint16_t>{}(a == fp16::half() ? std::uint16_t{0} : a.bits());
  }
};

namespace fp16 {

// Defined in half_text.h. Without these declarations a program that forgets it would print floats instead.
inline std::ostream& operator<<(std::ostream& stream, half a);
inline std::istream& operator>>(std::istream& stream, half& a);

}  // namespace fp16
