#include "tools/halflab/show/numbers.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <stdexcept>
#include <vector>

#include "fp16/arithmetic.h"
#include "fp16/classification.h"
#include "fp16/codec.h"
#include "fp16/neighbours.h"
#include "fp16/parse.h"
#include "fp16/text.h"
#include "tools/halflab/formats.h"

namespace halflab::show {
namespace {

template <const fp16::Format& F>
fp16::Bits<F> bits(std::uint64_t code) {
  return static_cast<fp16::Bits<F>>(code);
}

std::string_view kind_of(fp16::NumberClass number) {
  using enum fp16::NumberClass;
  switch (number) {
    case signalling_nan:
      return "signalling NaN";
    case quiet_nan:
      return "quiet NaN";
    case negative_infinity:
    case positive_infinity:
      return "infinity";
    case negative_normal:
    case positive_normal:
      return "normal";
    case negative_subnormal:
    case positive_subnormal:
      return "subnormal";
    case negative_zero:
    case positive_zero:
      return "zero";
  }
  return "";
}

template <const fp16::Format& F>
Rounded rounded(const auto& result) {
  return {result.bits, result.flags};
}

/// The function where it is no exact number that is rounded: of NaNs, infinities and zeros, at poles and outside the domain.
template <const fp16::Format& F>
Rounded limit_in(const Function& function, std::uint64_t operand, const fp16::Attributes& attributes) {
  const fp16::Bits<F> a = bits<F>(operand), zero = fp16::encode<F>(0.0).bits;
  if (fp16::is_nan<F>(a)) return rounded<F>(fp16::add<F>(a, a, attributes));
  const double limit = function.limit(fp16::decode<F>(a));
  if (std::isnan(limit)) return rounded<F>(fp16::divide<F>(zero, zero, attributes));
  if (std::isinf(limit) && fp16::is_finite<F>(a))
    return rounded<F>(fp16::divide<F>(fp16::encode<F>(std::copysign(1.0, limit)).bits, zero, attributes));
  return rounded<F>(fp16::convert<F, fp16::binary64>(std::bit_cast<std::uint64_t>(limit), attributes));
}

template <const fp16::Format& F>
Rounded apply_in(const Node& node, std::span<const std::uint64_t> operands,
                 const fp16::Attributes& attributes) {
  const auto operand = [&](std::size_t i) { return bits<F>(operands[i]); };
  switch (node.operation) {
    case Operator::negate:
      return {fp16::negate<F>(operand(0)), {}};
    case Operator::add:
      return rounded<F>(fp16::add<F>(operand(0), operand(1), attributes));
    case Operator::subtract:
      return rounded<F>(fp16::subtract<F>(operand(0), operand(1), attributes));
    case Operator::multiply:
      return rounded<F>(fp16::multiply<F>(operand(0), operand(1), attributes));
    case Operator::divide:
      return rounded<F>(fp16::divide<F>(operand(0), operand(1), attributes));
    case Operator::square_root:
      return rounded<F>(fp16::sqrt<F>(operand(0), attributes));
    case Operator::fused_multiply_add:
      return rounded<F>(fp16::fma<F>(operand(0), operand(1), operand(2), attributes));
    case Operator::function:
      return limit_in<F>(*node.function, operands[0], attributes);
    case Operator::number:
    case Operator::code:
      break;
  }
  throw std::logic_error("a literal has no operands");
}

/// At a finite x; none at a pole and outside the domain.
std::optional<ExactNumber> function_at(const Function& function, double x) {
  if (x != 0) return function.value(x);
  return exact_value(fp16::binary64, std::bit_cast<std::uint64_t>(function.limit(x)));
}

std::optional<std::uint64_t> neighbour(const fp16::Format& format, std::uint64_t code, bool upward) {
  return with_format(format, [&]<const fp16::Format & F>() -> std::optional<std::uint64_t> {
    if constexpr (F.has_arithmetic()) {
      if (fp16::is_nan<F>(bits<F>(code))) return std::nullopt;
      const std::uint64_t next =
          upward ? fp16::next_up<F>(bits<F>(code)).bits : fp16::next_down<F>(bits<F>(code)).bits;
      if (next != code) return next;
    }
    return std::nullopt;
  });
}

}  // namespace

Description describe(const fp16::Format& format, std::uint64_t code) {
  constexpr std::size_t short_enough = 20;
  return with_format(format, [&]<const fp16::Format & F>() {
    const fp16::Bits<F> its_bits = bits<F>(code);
    Description number{.code = code,
                       .code_text = fmt::format("0x{:0{}x}", code, (F.width() + 3) / 4),
                       .fields = fp16::to_fields<F>(its_bits),
                       .kind = std::string(kind_of(fp16::classify<F>(its_bits))),
                       .shortest = fp16::to_shortest<F>(its_bits),
                       .exact = fp16::to_exact<F>(its_bits),
                       .hexadecimal = fp16::to_hex<F>(its_bits),
                       .brief = {}};
    number.brief = number.exact.size() <= short_enough
                       ? number.exact
                       : fmt::format("{:.{}g}", fp16::decode<F>(its_bits), F.max_digits10());
    return number;
  });
}

Rounded read(const fp16::Format& format, std::string_view text, const fp16::Attributes& attributes) {
  return with_format(format,
                     [&]<const fp16::Format & F>() { return rounded<F>(fp16::parse<F>(text, attributes)); });
}

Rounded round(const fp16::Format& format, const ExactNumber& number, const fp16::Attributes& attributes) {
  return with_format(format, [&]<const fp16::Format & F>() {
    return rounded<F>(fp16::round_pack<F>(number.leading(), attributes));
  });
}

Rounded apply(const fp16::Format& format, const Node& node, std::span<const std::uint64_t> operands,
              const std::optional<ExactNumber>& exact, const fp16::Attributes& attributes) {
  return with_format(format, [&]<const fp16::Format & F>() -> Rounded {
    if constexpr (F.has_arithmetic()) {
      const bool is_zero = fp16::is_zero<F>(bits<F>(operands[0]));
      if (node.operation == Operator::function && exact && !is_zero) return round(format, *exact, attributes);
      return apply_in<F>(node, operands, attributes);
    } else {
      throw std::invalid_argument(
          fmt::format("{} is a format of scales, without arithmetic", fp16::name_of(format)));
    }
  });
}

Rounded convert(const fp16::Format& to, const fp16::Format& from, std::uint64_t code) {
  // A NaN or an infinity: by way of binary64, which has all of them.
  const std::uint64_t wide = with_format(from, [&]<const fp16::Format & F>() -> std::uint64_t {
    return fp16::convert<fp16::binary64, F>(bits<F>(code)).bits;
  });
  return with_format(
      to, [&]<const fp16::Format & F>() { return rounded<F>(fp16::convert<F, fp16::binary64>(wide)); });
}

std::optional<ExactNumber> exact_value(const fp16::Format& format, std::uint64_t code) {
  return with_format(format, [&]<const fp16::Format & F>() -> std::optional<ExactNumber> {
    if (!fp16::is_finite<F>(bits<F>(code))) return std::nullopt;
    return ExactNumber(fp16::unpack<F, std::uint64_t>(bits<F>(code)));
  });
}

std::optional<ExactNumber> exact_result(const fp16::Format& format, const Node& node,
                                        std::span<const std::uint64_t> operands) {
  std::vector<ExactNumber> numbers;
  for (const std::uint64_t operand : operands) {
    const auto number = exact_value(format, operand);
    if (!number) return std::nullopt;
    numbers.push_back(*number);
  }
  switch (node.operation) {
    case Operator::add:
      return numbers[0] + numbers[1];
    case Operator::subtract:
      return numbers[0] + -numbers[1];
    case Operator::multiply:
      return numbers[0] * numbers[1];
    case Operator::divide:
      return numbers[1].is_zero() ? std::nullopt : std::optional(numbers[0] / numbers[1]);
    case Operator::square_root:
      if (numbers[0].is_zero()) return numbers[0];
      return numbers[0].is_negative()
                 ? std::nullopt
                 : std::optional(square_root(numbers[0], ExactNumber::leading_bit_count));
    case Operator::fused_multiply_add:
      return numbers[0] * numbers[1] + numbers[2];
    case Operator::negate:
      return -numbers[0];
    case Operator::function:
      return function_at(*node.function, with_format(format, [&]<const fp16::Format & F>() -> double {
        return fp16::decode<F>(bits<F>(operands[0]));
      }));
    case Operator::number:
    case Operator::code:
      break;
  }
  return std::nullopt;
}

std::optional<std::uint64_t> next_down(const fp16::Format& format, std::uint64_t code) {
  return neighbour(format, code, false);
}

std::optional<std::uint64_t> next_up(const fp16::Format& format, std::uint64_t code) {
  return neighbour(format, code, true);
}

int ulp_exponent(const fp16::Format& format, int leading_exponent) {
  return std::max(leading_exponent - format.trailing_bits(), format.emin_subnormal());
}

std::string text_of(fp16::Flags flags) {
  std::vector<std::string_view> raised;
  if (flags.invalid) raised.push_back("invalid");
  if (flags.divide_by_zero) raised.push_back("divide by zero");
  if (flags.overflow) raised.push_back("overflow");
  if (flags.underflow) raised.push_back("underflow");
  if (flags.inexact) raised.push_back("inexact");
  return raised.empty() ? "none" : fmt::format("{}", fmt::join(raised, ", "));
}

}  // namespace halflab::show
