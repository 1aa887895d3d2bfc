#pragma once
/// The operations that processors have instructions for, as named functors for CPU and GPU code; operations.h
/// lists them.
///
/// Each functor is the exact result rounded once (arithmetic.h, codec.h, integral.h, comparison.h,
/// min_max.h), in integers. NaN results are NVIDIA's canonical one, 0x7FFF; of every operation that can give
/// a NaN this is what is to be checked on a device, because PTX leaves the bits of most NaNs open.

#include <bit>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "arithmetic.h"
#include "codec.h"
#include "comparison.h"
#include "config.h"
#include "half.h"
#include "integral.h"
#include "min_max.h"
#include "rounding_names.h"

namespace fp16::ops {

/// PTX's names of the directions that NVIDIA's conversions have.
inline constexpr Rounding rn = Rounding::nearest_even;
inline constexpr Rounding rz = Rounding::toward_zero;
inline constexpr Rounding ru = Rounding::toward_positive;
inline constexpr Rounding rd = Rounding::toward_negative;

namespace detail {

FP16_HD constexpr Attributes attributes(Rounding rounding = rn) {
  return {.rounding = rounding, .nan_policy = NanPolicy::canonical_nvidia};
}
FP16_HD constexpr half as_half(const Result<binary16>& result) {
  return half::from_bits(result.bits);
}
FP16_HD constexpr half canonical_nan() {
  return half::from_bits(default_nan<binary16>(NanPolicy::canonical_nvidia));
}

template <typename Operation, typename Value, typename... Operands>
Value (*signature(Value (Operation::*)(Operands...) const))(Operands...);

inline std::string_view name_of(Rounding rounding) {
  return named_roundings[static_cast<std::size_t>(rounding)].name;
}

template <typename Integer>
std::string integer_name() {
  return (std::is_signed_v<Integer> ? "int" : "uint") + std::to_string(8 * sizeof(Integer));
}

}  // namespace detail

/// The functor's type as a function: result(operands...).
template <typename Operation>
using SignatureOf = std::remove_pointer_t<decltype(detail::signature(&Operation::operator()))>;

struct Add {
  static std::string name() { return "add"; }
  FP16_HD constexpr half operator()(half a, half b) const {
    return detail::as_half(add<binary16>(a.bits(), b.bits(), detail::attributes()));
  }
};

struct Subtract {
  static std::string name() { return "subtract"; }
  FP16_HD constexpr half operator()(half a, half b) const {
    return detail::as_half(subtract<binary16>(a.bits(), b.bits(), detail::attributes()));
  }
};

struct Multiply {
  static std::string name() { return "multiply"; }
  FP16_HD constexpr half operator()(half a, half b) const {
    return detail::as_half(multiply<binary16>(a.bits(), b.bits(), detail::attributes()));
  }
};

struct Divide {
  static std::string name() { return "divide"; }
  FP16_HD constexpr half operator()(half a, half b) const {
    return detail::as_half(divide<binary16>(a.bits(), b.bits(), detail::attributes()));
  }
};

struct FusedMultiplyAdd {
  static std::string name() { return "fma"; }
  FP16_HD constexpr half operator()(half a, half b, half c) const {
    return detail::as_half(fma<binary16>(a.bits(), b.bits(), c.bits(), detail::attributes()));
  }
};

/// The rounded result clamped to 0 ... 1: anything negative, -0 and NaN become +0 (PTX's .sat).
template <typename Operation, typename = SignatureOf<Operation>>
struct Saturated;
template <typename Operation, typename... Operands>
struct Saturated<Operation, half(Operands...)> {
  static std::string name() { return Operation::name() + " saturated"; }
  FP16_HD constexpr half operator()(Operands... operands) const {
    constexpr std::uint16_t one = 0x3c00;
    const half result = Operation{}(operands...);
    if (isnan(result) || signbit(result)) return half();
    return result.bits() > one ? half::from_bits(one) : result;
  }
};

/// The rounded result, but +0 for anything negative and for -0 (PTX's .relu); NaN stays.
template <typename Operation, typename = SignatureOf<Operation>>
struct Relu;
template <typename Operation, typename... Operands>
struct Relu<Operation, half(Operands...)> {
  static std::string name() { return Operation::name() + " relu"; }
  FP16_HD constexpr half operator()(Operands... operands) const {
    const half result = Operation{}(operands...);
    return signbit(result) ? half() : result;
  }
};

/// minimumNumber of IEEE 754-2019: a NaN gives way to a number, -0 is below +0.
struct MinimumNumber {
  static std::string name() { return "minimum_number"; }
  FP16_HD constexpr half operator()(half a, half b) const {
    return detail::as_half(minimum_number<binary16>(a.bits(), b.bits(), detail::attributes()));
  }
};

/// maximumNumber of IEEE 754-2019.
struct MaximumNumber {
  static std::string name() { return "maximum_number"; }
  FP16_HD constexpr half operator()(half a, half b) const {
    return detail::as_half(maximum_number<binary16>(a.bits(), b.bits(), detail::attributes()));
  }
};

/// minimum of IEEE 754-2019: a NaN wins.
struct Minimum {
  static std::string name() { return "minimum"; }
  FP16_HD constexpr half operator()(half a, half b) const {
    return detail::as_half(minimum<binary16>(a.bits(), b.bits(), detail::attributes()));
  }
};

/// maximum of IEEE 754-2019: a NaN wins.
struct Maximum {
  static std::string name() { return "maximum"; }
  FP16_HD constexpr half operator()(half a, half b) const {
    return detail::as_half(maximum<binary16>(a.bits(), b.bits(), detail::attributes()));
  }
};

/// Named by the relations for which it holds: of <, >, = and ? (unordered).
template <Predicate predicate>
struct Compare {
  static std::string name() {
    std::string relations;
    for (const auto& [relation, sign] : {std::pair{Relation::less, '<'},
                                         {Relation::greater, '>'},
                                         {Relation::equal, '='},
                                         {Relation::unordered, '?'}}) {
      if ((static_cast<unsigned>(predicate) & static_cast<unsigned>(relation)) != 0) relations += sign;
    }
    return "compare " + relations;
  }
  FP16_HD constexpr bool operator()(half a, half b) const {
    return compare_quiet<binary16>(a.bits(), predicate, b.bits()).holds;
  }
};

/// cuda_fp16.h's comparisons: the plain ones are false, those with a u are true, when an operand is a NaN.
using Equal = Compare<Predicate::equal>;
using Less = Compare<Predicate::less>;
using LessEqual = Compare<Predicate::less_equal>;
using Greater = Compare<Predicate::greater>;
using GreaterEqual = Compare<Predicate::greater_equal>;
using NotEqualUnordered = Compare<Predicate::not_equal>;
using LessUnordered = Compare<Predicate::less_unordered>;
using LessEqualUnordered = Compare<Predicate::not_greater>;
using GreaterUnordered = Compare<Predicate::greater_unordered>;
using GreaterEqualUnordered = Compare<Predicate::not_less>;

/// The two that combine others' answers: less or greater, and equal or unordered.
struct NotEqualOrdered {
  static std::string name() { return "compare <>"; }
  FP16_HD constexpr bool operator()(half a, half b) const { return Less{}(a, b) || Greater{}(a, b); }
};
struct EqualUnordered {
  static std::string name() { return "compare =?"; }
  FP16_HD constexpr bool operator()(half a, half b) const { return !NotEqualOrdered{}(a, b); }
};

struct Negate {
  static std::string name() { return "negate"; }
  FP16_HD constexpr half operator()(half a) const { return isnan(a) ? detail::canonical_nan() : -a; }
};

struct Absolute {
  static std::string name() { return "abs"; }
  FP16_HD constexpr half operator()(half a) const { return isnan(a) ? detail::canonical_nan() : abs(a); }
};

struct IsNan {
  static std::string name() { return "is_nan"; }
  FP16_HD constexpr bool operator()(half a) const { return isnan(a); }
};

/// 1 for +infinity, -1 for -infinity, else 0.
struct InfinitySign {
  static std::string name() { return "infinity_sign"; }
  FP16_HD constexpr int operator()(half a) const { return !isinf(a) ? 0 : signbit(a) ? -1 : 1; }
};

struct SquareRoot {
  static std::string name() { return "sqrt"; }
  FP16_HD constexpr half operator()(half a) const {
    return detail::as_half(sqrt<binary16>(a.bits(), detail::attributes()));
  }
};

struct Reciprocal {
  static std::string name() { return "reciprocal"; }
  FP16_HD constexpr half operator()(half a) const { return Divide{}(half(1.0f), a); }
};

template <Rounding rounding>
struct RoundToIntegral {
  static std::string name() { return "round_to_integral " + std::string(detail::name_of(rounding)); }
  FP16_HD constexpr half operator()(half a) const {
    return detail::as_half(round_to_integral<binary16>(a.bits(), detail::attributes(rounding)));
  }
};

/// From float or double.
template <typename Value, Rounding rounding>
struct FromFloating {
  static std::string name() {
    return "from_binary" + std::to_string(8 * sizeof(Value)) + " " + std::string(detail::name_of(rounding));
  }
  FP16_HD constexpr half operator()(Value value) const {
    return detail::as_half(encode<binary16>(value, detail::attributes(rounding)));
  }
};

struct ToFloat {
  static std::string name() { return "to_binary32"; }
  FP16_HD constexpr float operator()(half a) const {
    return std::bit_cast<float>(convert<binary32, binary16>(a.bits(), detail::attributes()).bits);
  }
};

template <typename Integer, Rounding rounding>
struct FromInteger {
  static std::string name() {
    return "from_" + detail::integer_name<Integer>() + " " + std::string(detail::name_of(rounding));
  }
  FP16_HD constexpr half operator()(Integer value) const {
    return detail::as_half(from_integer<binary16>(value, detail::attributes(rounding)));
  }
};

/// Saturates. A NaN becomes 0, but in 64 bits, with or without a sign, the code of the highest bit alone.
template <typename Integer, Rounding rounding>
struct ToInteger {
  static std::string name() {
    return "to_" + detail::integer_name<Integer>() + " " + std::string(detail::name_of(rounding));
  }
  FP16_HD constexpr Integer operator()(half a) const {
    if (sizeof(Integer) == 8 && isnan(a)) return static_cast<Integer>(std::uint64_t{1} << 63);
    return to_integer<Integer, binary16>(a.bits(), {.rounding = rounding, .saturate = true}).value;
  }
};

}  // namespace fp16::ops
