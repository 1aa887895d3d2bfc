#pragma once
/// The operations of ops.h by name, on codes.

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "half.h"
#include "ops.h"

namespace fp16 {

using OperandCodes = std::array<std::uint64_t, 3>;

/// Operands and results are codes: the bits of floating-point numbers, integers as unsigned ones of their
/// width, 0 or 1 for a predicate.
struct Operation {
  std::string name;
  int arity;
  std::array<int, 3> operand_bits;  ///< 0 beyond the arity
  int result_bits;                  ///< 1 for a predicate
  std::uint64_t (*apply)(const OperandCodes&);
};

namespace ops {

namespace detail {

template <typename Value>
inline constexpr int bits_of = std::is_same_v<Value, bool> ? 1 : 8 * static_cast<int>(sizeof(Value));

template <typename Value>
using CodeOf = std::conditional_t<
    sizeof(Value) == 1, std::uint8_t,
    std::conditional_t<sizeof(Value) == 2, std::uint16_t,
                       std::conditional_t<sizeof(Value) == 4, std::uint32_t, std::uint64_t>>>;

template <typename Signature>
struct OnCodes;
template <typename Value, typename... Operands>
struct OnCodes<Value(Operands...)> {
  static constexpr std::array<int, 3> operand_bits{bits_of<Operands>...};
  static constexpr int arity = sizeof...(Operands);
  static constexpr int result_bits = bits_of<Value>;

  template <typename Functor>
  static std::uint64_t apply(const OperandCodes& codes) {
    return [&]<std::size_t... i>(std::index_sequence<i...>)->std::uint64_t {
      return std::bit_cast<CodeOf<Value>>(
          Functor{}(std::bit_cast<Operands>(static_cast<CodeOf<Operands>>(codes[i]))...));
    }
    (std::index_sequence_for<Operands...>{});
  }
};

}  // namespace detail

/// What a functor of ops.h gives, from codes to the result's code.
template <typename Functor>
std::uint64_t apply_to_codes(const OperandCodes& codes) {
  return detail::OnCodes<SignatureOf<Functor>>::template apply<Functor>(codes);
}

namespace detail {

template <typename Functor>
Operation describe() {
  using Codes = OnCodes<SignatureOf<Functor>>;
  return {.name = Functor::name(),
          .arity = Codes::arity,
          .operand_bits = Codes::operand_bits,
          .result_bits = Codes::result_bits,
          .apply = apply_to_codes<Functor>};
}

template <typename... Functors>
std::vector<Operation> describe_all(std::type_identity<std::tuple<Functors...>>) {
  return {describe<Functors>()...};
}

template <typename Integer>
using IntegerConversions =
    std::tuple<FromInteger<Integer, rn>, FromInteger<Integer, rz>, FromInteger<Integer, ru>,
               FromInteger<Integer, rd>, ToInteger<Integer, rn>, ToInteger<Integer, rz>,
               ToInteger<Integer, ru>, ToInteger<Integer, rd>>;

template <typename... Tuples>
using Joined = decltype(std::tuple_cat(std::declval<Tuples>()...));

}  // namespace detail

using All = detail::Joined<
    std::tuple<Add, Subtract, Multiply, Divide, FusedMultiplyAdd, Saturated<Add>, Saturated<Subtract>,
               Saturated<Multiply>, Saturated<FusedMultiplyAdd>, Relu<FusedMultiplyAdd>, MinimumNumber,
               MaximumNumber, Minimum, Maximum, Equal, Less, LessEqual, Greater, GreaterEqual,
               NotEqualOrdered, EqualUnordered, LessUnordered, LessEqualUnordered, GreaterUnordered,
               GreaterEqualUnordered, NotEqualUnordered, Negate, Absolute, IsNan, InfinitySign, SquareRoot,
               Reciprocal, RoundToIntegral<rn>, RoundToIntegral<rz>, RoundToIntegral<ru>, RoundToIntegral<rd>,
               FromFloating<float, rn>, FromFloating<float, rz>, FromFloating<float, ru>,
               FromFloating<float, rd>, FromFloating<double, rn>, ToFloat, ToInteger<signed char, rz>,
               ToInteger<unsigned char, rz>>,
    detail::IntegerConversions<short>, detail::IntegerConversions<unsigned short>,
    detail::IntegerConversions<int>, detail::IntegerConversions<unsigned>,
    detail::IntegerConversions<long long>, detail::IntegerConversions<unsigned long long>>;

}  // namespace ops

/// Every operation.
inline const std::vector<Operation>& operations() {
  static const std::vector<Operation> all = ops::detail::describe_all(std::type_identity<ops::All>{});
  return all;
}

/// nullptr if there is none of this name.
inline const Operation* find_operation(std::string_view name) {
  for (const Operation& operation : operations()) {
    if (operation.name == name) return &operation;
  }
  return nullptr;
}

}  // namespace fp16
