/// PTX ISA, "Floating Point Instructions": binary32 and binary64, correctly rounded.

#include "tests/emulator/builder.h"
#include "tests/emulator/select.h"

namespace emulator {

namespace {

template <typename Float, HostOperation operation>
Float calculate(const Modifiers& modifiers, Float a, Float b, Float c) {
  a = flush(modifiers, a);
  b = flush(modifiers, b);
  if constexpr (operation == HostOperation::fma) c = flush(modifiers, c);
  Float result{};
  if (modifiers.rounding == Rounding::nearest_even) {
    if constexpr (operation == HostOperation::add) result = a + b;
    if constexpr (operation == HostOperation::subtract) result = a - b;
    if constexpr (operation == HostOperation::multiply) result = a * b;
    if constexpr (operation == HostOperation::divide) result = a / b;
    if constexpr (operation == HostOperation::fma) result = std::fma(a, b, c);
    if constexpr (operation == HostOperation::square_root) result = std::sqrt(a);
  } else {
    result = host_operation(operation, modifiers.rounding, a, b, c);
  }
  return finish(modifiers, result);
}

template <typename Float, HostOperation operation>
struct OfTwo {
  static Float apply(const Modifiers& modifiers, Float a, Float b) {
    return calculate<Float, operation>(modifiers, a, b, 0);
  }
};
template <typename Float>
using Add = OfTwo<Float, HostOperation::add>;
template <typename Float>
using Subtract = OfTwo<Float, HostOperation::subtract>;
template <typename Float>
using Multiply = OfTwo<Float, HostOperation::multiply>;
template <typename Float>
using Divide = OfTwo<Float, HostOperation::divide>;

template <typename Float>
struct FusedMultiplyAdd {
  static Float apply(const Modifiers& modifiers, Float a, Float b, Float c) {
    return calculate<Float, HostOperation::fma>(modifiers, a, b, c);
  }
};
template <typename Float>
struct SquareRoot {
  static Float apply(const Modifiers& modifiers, Float a) {
    return calculate<Float, HostOperation::square_root>(modifiers, a, 0, 0);
  }
};
template <typename Float>
struct Reciprocal {
  static Float apply(const Modifiers& modifiers, Float a) {
    return calculate<Float, HostOperation::divide>(modifiers, 1, a, 0);
  }
};
template <typename Float>
struct Negate {
  static Float apply(const Modifiers& modifiers, Float a) { return finish(modifiers, -flush(modifiers, a)); }
};
template <typename Float>
struct Absolute {
  static Float apply(const Modifiers& modifiers, Float a) {
    return finish(modifiers, std::fabs(flush(modifiers, a)));
  }
};
/// Its first operand gives the sign.
template <typename Float>
struct CopySign {
  static Float apply(Float a, Float b) { return std::copysign(b, a); }
};

/// -0 is less than +0; a NaN loses against a number unless the instruction has .NaN.
template <typename Float>
Float extremum(const Modifiers& modifiers, Float a, Float b, bool maximum) {
  a = flush(modifiers, a);
  b = flush(modifiers, b);
  if (is_nan(a) || is_nan(b)) {
    const bool both = is_nan(a) && is_nan(b);
    if (both || modifiers.nan) return finish(modifiers, std::numeric_limits<Float>::quiet_NaN());
    return finish(modifiers, is_nan(a) ? b : a);
  }
  const bool a_is_less = a < b || (a == b && std::signbit(a));
  return finish(modifiers, a_is_less == maximum ? b : a);
}
template <typename Float>
struct Minimum {
  static Float apply(const Modifiers& modifiers, Float a, Float b) {
    return extremum(modifiers, a, b, false);
  }
};
template <typename Float>
struct Maximum {
  static Float apply(const Modifiers& modifiers, Float a, Float b) { return extremum(modifiers, a, b, true); }
};

struct TestProperty {
  std::string_view name;
  std::uint8_t accepted;  ///< bits of FP_NAN, FP_INFINITE, ...
};
constexpr TestProperty properties[] = {
    {"finite", 1 << FP_ZERO | 1 << FP_SUBNORMAL | 1 << FP_NORMAL},
    {"infinite", 1 << FP_INFINITE},
    {"number", 1 << FP_ZERO | 1 << FP_SUBNORMAL | 1 << FP_NORMAL | 1 << FP_INFINITE},
    {"notanumber", 1 << FP_NAN},
    {"normal", 1 << FP_NORMAL},
    {"subnormal", 1 << FP_SUBNORMAL},
};
template <typename Float>
struct Test {
  static bool apply(const Modifiers& modifiers, Float a) {
    return modifiers.accepted >> std::fpclassify(a) & 1;
  }
};

template <template <typename> typename Operation, int sources>
Handler build_rounded(Builder& builder) {
  builder.take_rounding();
  builder.take_flags();
  const Type type = builder.opcode.take_type();
  if constexpr (sources == 1) builder.operands({type, type});
  if constexpr (sources == 2) builder.operands({type, type, type});
  if constexpr (sources == 3) builder.operands({type, type, type, type});
  return by_float<Operation>(type);
}

/// Division, which is correctly rounded even where PTX asks for an approximation only.
template <template <typename> typename Operation, int sources>
Handler build_quotient(Builder& builder) {
  builder.opcode.ignore({"approx", "full"});
  return build_rounded<Operation, sources>(builder);
}

Handler build_testp(Builder& builder) {
  for (const TestProperty& property : properties) {
    if (builder.opcode.take(property.name)) builder.out.modifiers.accepted = property.accepted;
  }
  const Type type = builder.opcode.take_type();
  builder.operands({Type::pred, type});
  return by_float<Test>(type);
}

Handler build_copysign(Builder& builder) {
  const Type type = builder.opcode.take_type();
  builder.operands({type, type, type});
  return by_float<CopySign>(type);
}

constexpr Row rows[] = {
    {"add", float_types, build_rounded<Add, 2>},
    {"sub", float_types, build_rounded<Subtract, 2>},
    {"mul", float_types, build_rounded<Multiply, 2>},
    {"fma", float_types, build_rounded<FusedMultiplyAdd, 3>},
    {"mad", float_types, build_rounded<FusedMultiplyAdd, 3>},
    {"div", float_types, build_quotient<Divide, 2>},
    {"rcp", float_types, build_quotient<Reciprocal, 1>},
    {"sqrt", float_types, build_quotient<SquareRoot, 1>},
    {"neg", float_types, build_rounded<Negate, 1>},
    {"abs", float_types, build_rounded<Absolute, 1>},
    {"min", float_types, build_rounded<Minimum, 2>},
    {"max", float_types, build_rounded<Maximum, 2>},
    {"copysign", float_types, build_copysign},
    {"testp", float_types, build_testp},
};

}  // namespace

std::span<const Row> floating_rows() {
  return rows;
}

}  // namespace emulator
