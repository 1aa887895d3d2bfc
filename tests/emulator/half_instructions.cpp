/// PTX ISA, "Half Precision Floating Point Instructions". Sums and products of halves are exact in binary64 and
/// then rounded once. a * b + c is not exact there, but its first rounding cannot change the second: the product
/// has 22 bits, and a sum that is no tie of binary16 lies further from the next tie than 53 bits reach.

#include <cmath>

#include "tests/emulator/builder.h"
#include "tests/emulator/select.h"

namespace emulator {

namespace {

Half rounded(const Modifiers& modifiers, double exact) {
  return finish(modifiers, half_from_double(exact, modifiers.rounding));
}
double operand(const Modifiers& modifiers, Half a) {
  return to_double(flush(modifiers, a));
}

Half add(const Modifiers& modifiers, Half a, Half b) {
  return rounded(modifiers, operand(modifiers, a) + operand(modifiers, b));
}
Half subtract(const Modifiers& modifiers, Half a, Half b) {
  return rounded(modifiers, operand(modifiers, a) - operand(modifiers, b));
}
Half multiply(const Modifiers& modifiers, Half a, Half b) {
  return rounded(modifiers, operand(modifiers, a) * operand(modifiers, b));
}
Half multiply_add(const Modifiers& modifiers, Half a, Half b, Half c) {
  return rounded(modifiers, operand(modifiers, a) * operand(modifiers, b) + operand(modifiers, c));
}
Half negate(const Modifiers& modifiers, Half a) {
  return finish(modifiers, Half{static_cast<std::uint16_t>(a.code ^ 0x8000)});
}
Half absolute(const Modifiers& modifiers, Half a) {
  return finish(modifiers, Half{static_cast<std::uint16_t>(a.code & 0x7fff)});
}

Half extremum(const Modifiers& modifiers, Half a, Half b, bool maximum) {
  const double x = operand(modifiers, a), y = operand(modifiers, b);
  if (is_nan(x) || is_nan(y)) {
    if (modifiers.nan || (is_nan(x) && is_nan(y))) return canonical_nan16;
    return finish(modifiers, is_nan(x) ? b : a);
  }
  const bool a_is_less = x < y || (x == y && std::signbit(x));
  return finish(modifiers, a_is_less == maximum ? b : a);
}
Half minimum(const Modifiers& modifiers, Half a, Half b) {
  return extremum(modifiers, a, b, false);
}
Half maximum(const Modifiers& modifiers, Half a, Half b) {
  return extremum(modifiers, a, b, true);
}

/// The function of both halves of packed operands.
template <auto function, typename... Operands>
Half2 packed(const Modifiers& modifiers, Operands... operands) {
  return {function(modifiers, Half{operands.low}...).code, function(modifiers, Half{operands.high}...).code};
}

template <Half (*function)(const Modifiers&, Half)>
Half2 packed_unary(const Modifiers& modifiers, Half2 a) {
  return packed<function>(modifiers, a);
}
template <Half (*function)(const Modifiers&, Half, Half)>
Half2 packed_binary(const Modifiers& modifiers, Half2 a, Half2 b) {
  return packed<function>(modifiers, a, b);
}
template <Half (*function)(const Modifiers&, Half, Half, Half)>
Half2 packed_ternary(const Modifiers& modifiers, Half2 a, Half2 b, Half2 c) {
  return packed<function>(modifiers, a, b, c);
}

Type take_flags_and_type(Builder& builder) {
  builder.take_rounding();
  builder.take_flags();
  return builder.opcode.take_type();
}
template <Half (*function)(const Modifiers&, Half)>
Handler build_unary(Builder& builder) {
  const Type type = take_flags_and_type(builder);
  builder.operands({type, type});
  return type == Type::f16 ? map<function> : map<&packed_unary<function>>;
}
template <Half (*function)(const Modifiers&, Half, Half)>
Handler build_binary(Builder& builder) {
  const Type type = take_flags_and_type(builder);
  builder.operands({type, type, type});
  return type == Type::f16 ? map<function> : map<&packed_binary<function>>;
}
Handler build_fma(Builder& builder) {
  const Type type = take_flags_and_type(builder);
  builder.operands({type, type, type, type});
  return type == Type::f16 ? map<&multiply_add> : map<&packed_ternary<multiply_add>>;
}

constexpr Row rows[] = {
    {"add", half_types, build_binary<add>},      {"sub", half_types, build_binary<subtract>},
    {"mul", half_types, build_binary<multiply>}, {"fma", half_types, build_fma},
    {"neg", half_types, build_unary<negate>},    {"abs", half_types, build_unary<absolute>},
    {"min", half_types, build_binary<minimum>},  {"max", half_types, build_binary<maximum>},
};

}  // namespace

std::span<const Row> half_rows() {
  return rows;
}

}  // namespace emulator
