#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <concepts>
#include <limits>
#include <type_traits>

#include "experiments/gpu/validate_gpu/operation_list.h"
#include "fp16/integral.h"

namespace experiments::validate_gpu {
namespace {

namespace ops = fp16::ops;

template <Rounding rounding, Direction direction>
struct Mode {
  static constexpr Rounding rounded = rounding;
  static constexpr Direction oracle = direction;
};
using ToNearest = Mode<Rounding::nearest_even, Direction::nearest_even>;
using ToZero = Mode<Rounding::toward_zero, Direction::toward_zero>;
using Upward = Mode<Rounding::toward_positive, Direction::up>;
using Downward = Mode<Rounding::toward_negative, Direction::down>;

/// visit.operator()<mode>(name) for CUDA's four names of roundings.
template <typename Visit>
void for_each_mode(Visit visit) {
  visit.template operator()<ToNearest>("rn");
  visit.template operator()<ToZero>("rz");
  visit.template operator()<Downward>("rd");
  visit.template operator()<Upward>("ru");
}

template <class Mode>
std::uint64_t from_single_oracle(const Operands& operands) {
  return encode(std::bit_cast<float>(static_cast<std::uint32_t>(operands.a)), Mode::oracle);
}

std::uint64_t to_single_oracle(const Operands& operands) {
  const double value = decode(static_cast<Code>(operands.a));
  return std::isnan(value) ? 0x7FFFFFFF : std::bit_cast<std::uint32_t>(static_cast<float>(value));
}

constexpr NumberType single{.bits = 32}, wide{.bits = 64};

void append_float_conversions(Operations& rows) {
  const auto append = [&](std::string name, const Domain& domain, Function software, Function oracle,
                          const std::vector<Subject>& subjects, NumberType operand = single,
                          NumberType result = {}) {
    rows.push_back({.name = std::move(name),
                    .family = "floating-point conversion",
                    .domain = &domain,
                    .software = software,
                    .oracle = oracle,
                    .subjects = subjects,
                    .operand = operand,
                    .result = result});
  };
  for_each_mode([&]<class Mode>(const char* mode) {
    append(fmt::format("float2half_{}", mode), domain_called("singles"),
           software<ops::FromFloating<float, Mode::rounded>>, from_single_oracle<Mode>,
           Mode::rounded == Rounding::nearest_even ? scalars_and_packed_gpu : scalars);
  });
  append("float2half", domain_called("singles"), software<ops::FromFloating<float, ops::rn>>,
         from_single_oracle<ToNearest>, {Subject::cuda_header, Subject::gpu});
  append(
      "double2half", domain_called("doubles"), software<ops::FromFloating<double, ops::rn>>,
      [](const Operands& operands) -> std::uint64_t { return encode(std::bit_cast<double>(operands.a)); },
      scalars, wide);
  append("half2float", domain_called("codes"), software<ops::ToFloat>, to_single_oracle,
         scalars_and_packed_gpu, {}, single);
}

/// Out of range is the nearest integer there is, NaN is 0.
template <fp16::MachineInteger Integer, Direction direction>
std::uint64_t to_integer_oracle(const Operands& operands) {
  const double value = decode(static_cast<Code>(operands.a));
  if (std::isnan(value)) return 0;
  // 2^digits is exact; the largest integer of 64 bits is not.
  const double limit = std::ldexp(1.0, std::numeric_limits<Integer>::digits);
  const double lowest = std::signed_integral<Integer> ? -limit : 0;
  const double whole = double_oracle::to_integral(value, direction);
  const Integer integer = whole >= limit   ? std::numeric_limits<Integer>::max()
                          : whole < lowest ? std::numeric_limits<Integer>::min()
                                           : static_cast<Integer>(whole);
  return std::make_unsigned_t<Integer>(integer);
}

/// Everything beyond 2^20 rounds as 2^20 does, and double holds the rest exactly.
template <fp16::MachineInteger Integer, Direction direction>
std::uint64_t from_integer_oracle(const Operands& operands) {
  const auto integer = static_cast<Integer>(operands.a);
  constexpr double limit = 0x1p20;
  return encode(std::fmax(-limit, std::fmin(limit, static_cast<double>(integer))), direction);
}

template <fp16::MachineInteger Integer, Rounding rounding>
std::uint64_t to_saturated_integer(Code a) {
  fp16::Attributes attributes = nvidia(rounding);
  attributes.saturate = true;
  return std::make_unsigned_t<Integer>(fp16::to_integer<Integer, binary16>(a, attributes).value);
}

template <fp16::MachineInteger Integer>
void append_integer_type(Operations& rows, const char* type, const Domain& domain) {
  constexpr NumberType integer{
      std::signed_integral<Integer> ? NumberKind::signed_integer : NumberKind::unsigned_integer,
      8 * static_cast<int>(sizeof(Integer))};
  for_each_mode([&]<class Mode>(const char* mode) {
    const bool in_header = Mode::rounded == Rounding::toward_zero;
    if (sizeof(Integer) == 1 && !in_header) return;
    rows.push_back({.name = fmt::format("half2{}_{}", type, mode),
                    .family = "integer conversion",
                    .domain = &domain_called("codes"),
                    .software = unary<to_saturated_integer<Integer, Mode::rounded>>,
                    .oracle = to_integer_oracle<Integer, Mode::oracle>,
                    .subjects = in_header ? scalars : not_in_header_scalar,
                    .result = integer});
    if (sizeof(Integer) == 1) return;
    rows.push_back({.name = fmt::format("{}2half_{}", type, mode),
                    .family = "integer conversion",
                    .domain = &domain,
                    .software = software<ops::FromInteger<Integer, Mode::rounded>>,
                    .oracle = from_integer_oracle<Integer, Mode::oracle>,
                    .subjects = scalars,
                    .operand = integer});
  });
}

template <class Mode>
void append_integral(Operations& rows, const char* name) {
  rows.push_back(
      {.name = name,
       .family = "rounding to integers",
       .domain = &domain_called("codes"),
       .software = software<ops::RoundToIntegral<Mode::rounded>>,
       .oracle = unary<[](Code a) { return encode(double_oracle::to_integral(decode(a), Mode::oracle)); }>,
       .subjects = not_in_header});
}

}  // namespace

void append_conversions(Operations& rows) {
  append_float_conversions(rows);
  append_integer_type<std::int8_t>(rows, "char", domain_called("codes"));
  append_integer_type<std::uint8_t>(rows, "uchar", domain_called("codes"));
  append_integer_type<std::int16_t>(rows, "short", domain_called("codes"));
  append_integer_type<std::uint16_t>(rows, "ushort", domain_called("codes"));
  append_integer_type<std::int32_t>(rows, "int", domain_called("words"));
  append_integer_type<std::uint32_t>(rows, "uint", domain_called("words"));
  append_integer_type<std::int64_t>(rows, "ll", domain_called("long_words"));
  append_integer_type<std::uint64_t>(rows, "ull", domain_called("long_words"));
  append_integral<ToNearest>(rows, "hrint");
  append_integral<Downward>(rows, "hfloor");
  append_integral<Upward>(rows, "hceil");
  append_integral<ToZero>(rows, "htrunc");
}

}  // namespace experiments::validate_gpu
