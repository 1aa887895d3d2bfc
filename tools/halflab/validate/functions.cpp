#include "tools/halflab/validate/functions.h"

#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <stdexcept>

#include "fp16/arithmetic.h"
#include "fp16/codec.h"
#include "fp16/dot.h"
#include "fp16/elementary.h"
#include "fp16/integral.h"
#include "fp16/math.h"
#include "fp16/min_max.h"
#include "fp16/names.h"
#include "fp16/neighbours.h"
#include "fp16/remainder.h"
#include "tools/halflab/formats.h"

namespace halflab::validate {
namespace {

using fp16::Attributes;
using fp16::Bits;
using fp16::Format;
using fp16::Result;
using fp16::Rounding;

constexpr std::string_view reciprocal = "rcp";

/// `of`, called as of<F>(a, b, c, attributes) with codes of F.
template <const Format& F, class Of>
Evaluate applied(Of of) {
  return [of](const Operands& codes, const Attributes& attributes) -> std::uint64_t {
    const auto code = [&](std::size_t i) { return static_cast<Bits<F>>(codes[i]); };
    return of.template operator()<F>(code(0), code(1), code(2), attributes).bits;
  };
}

/// Operands of F, which are binary32 numbers, too, and the result in binary32.
template <const Format& F, class Of>
Evaluate applied_in_binary32(Of of) {
  return [wide_of = applied<fp16::binary32>(of)](const Operands& codes, const Attributes& attributes) {
    Operands wide{};
    for (std::size_t i = 0; i < wide.size(); ++i)
      wide[i] = fp16::detail::widened<fp16::binary32, F>(static_cast<Bits<F>>(codes[i]), attributes).bits;
    return wide_of(wide, attributes);
  };
}

/// An operation of every format with arithmetic.
template <class Of>
Function operation(std::string_view name, int arity, Of of) {
  return {.name = name, .arity = arity, .in = [of](const Format& operands, const Format& result, Rounding) {
            return with_format(operands, [&]<const Format & F>() -> Evaluate {
              if constexpr (F.has_arithmetic()) {
                if (result == F) return applied<F>(of);
                if constexpr (F.width() <= 16) {
                  if (result == fp16::binary32) return applied_in_binary32<F>(of);
                }
              }
              return {};
            });
          }};
}

// clang-format off
std::vector<Function> operations() {
  return {
      operation("add", 2, []<const Format& F>(auto a, auto b, auto, auto& to) { return fp16::add<F>(a, b, to); }),
      operation("subtract", 2, []<const Format& F>(auto a, auto b, auto, auto& to) { return fp16::subtract<F>(a, b, to); }),
      operation("multiply", 2, []<const Format& F>(auto a, auto b, auto, auto& to) { return fp16::multiply<F>(a, b, to); }),
      operation("divide", 2, []<const Format& F>(auto a, auto b, auto, auto& to) { return fp16::divide<F>(a, b, to); }),
      operation("fma", 3, []<const Format& F>(auto a, auto b, auto c, auto& to) { return fp16::fma<F>(a, b, c, to); }),
      operation("sqrt", 1, []<const Format& F>(auto a, auto, auto, auto& to) { return fp16::sqrt<F>(a, to); }),
      operation(reciprocal, 1, []<const Format& F>(auto a, auto, auto, auto& to) {
        return fp16::divide<F>(fp16::encode<F>(1.0f).bits, a, to);
      }),
      operation("fmod", 2, []<const Format& F>(auto a, auto b, auto, auto& to) { return fp16::fmod<F>(a, b, to); }),
      operation("remainder", 2, []<const Format& F>(auto a, auto b, auto, auto& to) { return fp16::remainder<F>(a, b, to); }),
      operation("minimum", 2, []<const Format& F>(auto a, auto b, auto, auto& to) { return fp16::minimum<F>(a, b, to); }),
      operation("maximum", 2, []<const Format& F>(auto a, auto b, auto, auto& to) { return fp16::maximum<F>(a, b, to); }),
      operation("minimum_number", 2, []<const Format& F>(auto a, auto b, auto, auto& to) { return fp16::minimum_number<F>(a, b, to); }),
      operation("maximum_number", 2, []<const Format& F>(auto a, auto b, auto, auto& to) { return fp16::maximum_number<F>(a, b, to); }),
      operation("round_to_integral", 1, []<const Format& F>(auto a, auto, auto, auto& to) { return fp16::round_to_integral<F>(a, to); })};
}
// clang-format on

Evaluate cast_in(const Format& operands, const Format& result, Rounding) {
  return with_format(operands, [&]<const Format & From>() -> Evaluate {
    return with_format(result, []<const Format & To>() -> Evaluate {
      return [](const Operands& codes, const Attributes& attributes) -> std::uint64_t {
        return fp16::convert<To, From>(static_cast<Bits<From>>(codes[0]), attributes).bits;
      };
    });
  });
}

/// What a function of halves is in a format within binary16, by way of its value to odd in `Wide`, which has enough digits
/// and range to lose nothing to the rounding that follows.
template <const Format& Wide>
Evaluate function_of_halves(const Format& operands, const Format& result, Rounding rounding,
                            const std::function<Bits<Wide>(const Operands& halves)>& to_odd) {
  return with_format(operands, [&]<const Format & F>() -> Evaluate {
    if constexpr (!F.has_arithmetic() || !contains(fp16::binary16, F)) {
      return {};
    } else {
      const auto halves = [](const Operands& codes, const Attributes& attributes) {
        Operands result{};
        for (std::size_t i = 0; i < codes.size(); ++i)
          result[i] =
              fp16::detail::widened<fp16::binary16, F>(static_cast<Bits<F>>(codes[i]), attributes).bits;
        return result;
      };
      if (result == F)
        return [=](const Operands& codes, const Attributes& attributes) -> std::uint64_t {
          return fp16::convert<F, Wide>(to_odd(halves(codes, attributes)), attributes).bits;
        };
      if (result == Wide && rounding == Rounding::to_odd)
        return [=](const Operands& codes, const Attributes& attributes) -> std::uint64_t {
          return to_odd(halves(codes, attributes));
        };
      return {};
    }
  });
}

Function of_halves(const fp16::math::UnaryFunction& function) {
  return {.name = function.name(),
          .arity = 1,
          .in = [&function](const Format& operands, const Format& result, Rounding rounding) -> Evaluate {
            if (operands == fp16::binary16 && result == fp16::binary16)
              return [&function](const Operands& codes, const Attributes& attributes) -> std::uint64_t {
                return function(static_cast<std::uint16_t>(codes[0]), attributes).bits;
              };
            return function_of_halves<fp16::binary32>(operands, result, rounding, [&](const Operands& codes) {
              return function.to_odd()[codes[0]];
            });
          }};
}

Function of_halves(std::string_view name, fp16::math::PairFunction function) {
  return {.name = name,
          .arity = 2,
          .in = [function](const Format& operands, const Format& result, Rounding rounding) -> Evaluate {
            const auto of = [function](const Operands& codes, const Attributes& attributes) {
              return function(static_cast<std::uint16_t>(codes[0]), static_cast<std::uint16_t>(codes[1]),
                              attributes)
                  .bits;
            };
            if (operands == fp16::binary16 && result == fp16::binary16) return of;
            if (result == fp16::binary16) return {};
            return function_of_halves<fp16::binary16>(
                operands, result, rounding,
                [of](const Operands& codes) { return of(codes, {.rounding = Rounding::to_odd}); });
          }};
}

/// Functions of fp16/elementary.h in bfloat16: their values in binary64 are right to 4 ulp, and both ends of twice that
/// round to one number, or an exception says that they do not.
struct InDoubles {
  std::string_view name;
  double (*function)(double);
};

constexpr std::array in_doubles{
    InDoubles{"exp", fp16::exp<double>},         InDoubles{"expm1", fp16::expm1<double>},
    InDoubles{"log", fp16::log<double>},         InDoubles{"log1p", fp16::log1p<double>},
    InDoubles{"sigmoid", fp16::sigmoid<double>}, InDoubles{"softplus", fp16::softplus<double>},
    InDoubles{"tanh", fp16::tanh<double>},       InDoubles{"erf", fp16::erf<double>}};

std::uint64_t rounded_bfloat16(const InDoubles& row, const Operands& codes, Attributes attributes) {
  using fp16::bfloat16, fp16::binary64;
  // Before rounding it is not known on which side of the smallest normal number the value lies.
  attributes.tininess = fp16::Tininess::after_rounding;
  const auto operand = static_cast<std::uint16_t>(codes[0]);
  if (fp16::is_nan<bfloat16>(operand)) return fp16::convert<bfloat16, bfloat16>(operand, attributes).bits;
  const Bits<binary64> argument = fp16::detail::widened<binary64, bfloat16>(operand, attributes).bits;
  const double value = row.function(std::bit_cast<double>(argument));
  const auto bits = std::bit_cast<std::uint64_t>(value);
  const std::uint64_t rounded = fp16::convert<bfloat16, binary64>(bits, attributes).bits;
  constexpr double surely_zero = 0x1p-140;
  if (std::fabs(value) < surely_zero || !std::isfinite(value)) return rounded;
  for (const std::uint64_t end : {bits - 8, bits + 8}) {
    if (fp16::convert<bfloat16, binary64>(end, attributes).bits != rounded)
      throw std::runtime_error(fmt::format(
          "{} of 0x{:04x} in bfloat16 lies too near the middle of two numbers", row.name, operand));
  }
  return rounded;
}

Evaluate in_bfloat16(const InDoubles& row, const Format& operands, const Format& result, Rounding rounding) {
  if (!(operands == fp16::bfloat16)) return {};
  if (result == fp16::bfloat16 && (rounding == Rounding::nearest_even || rounding == Rounding::nearest_away))
    return [&row](const Operands& codes, const Attributes& attributes) {
      return rounded_bfloat16(row, codes, attributes);
    };
  if (result == fp16::binary32 && rounding == Rounding::to_odd)
    return [&row](const Operands& codes, const Attributes& attributes) -> std::uint64_t {
      const double value = row.function(fp16::decode<fp16::bfloat16>(static_cast<std::uint16_t>(codes[0])));
      return fp16::encode<fp16::binary32>(value, attributes).bits;
    };
  return {};
}

std::vector<Function> all_functions() {
  std::vector<Function> all = operations();
  all.push_back({"cast", 1, cast_in});
  for (const fp16::math::UnaryFunction* const function : fp16::math::unary_functions()) {
    if (function->name() == reciprocal) continue;  // of every format
    Function row = of_halves(*function);
    for (const InDoubles& wide : in_doubles) {
      if (wide.name != row.name) continue;
      row.in = [halves = row.in, &wide](const Format& operands, const Format& result,
                                        Rounding rounding) -> Evaluate {
        if (Evaluate found = halves(operands, result, rounding)) return found;
        return in_bfloat16(wide, operands, result, rounding);
      };
    }
    all.push_back(std::move(row));
  }
  all.push_back(of_halves("pow", fp16::math::pow));
  all.push_back(of_halves("hypot", fp16::math::hypot));
  all.push_back(of_halves("atan2", fp16::math::atan2));
  return all;
}

}  // namespace

const std::vector<Function>& functions() {
  static const std::vector<Function> all = all_functions();
  return all;
}

const Function& find_function(std::string_view name) {
  return names::find_by_name(functions(), "operation", name);
}

CodeQuestions questions_of(const Format& format) {
  return with_format(format, []<const Format & F>() {
    return CodeQuestions{
        .is_nan = [](std::uint64_t code) { return fp16::is_nan<F>(static_cast<Bits<F>>(code)); },
        .is_zero = [](std::uint64_t code) { return fp16::is_zero<F>(static_cast<Bits<F>>(code)); },
        .is_infinite = [](std::uint64_t code) { return fp16::is_infinite<F>(static_cast<Bits<F>>(code)); },
        .ordinal = [](std::uint64_t code) { return fp16::ordinal<F>(static_cast<Bits<F>>(code)); },
        .distance =
            [](std::uint64_t a, std::uint64_t b) {
              return fp16::ulp_distance<F>(static_cast<Bits<F>>(a), static_cast<Bits<F>>(b));
            }};
  });
}

}  // namespace halflab::validate
