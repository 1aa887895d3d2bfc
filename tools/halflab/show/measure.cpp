#include <fmt/format.h>

#include <array>
#include <cmath>
#include <limits>
#include <span>
#include <stdexcept>
#include <utility>

#include "fp16/rounding_names.h"
#include "tools/halflab/show/findings.h"

namespace halflab::show {
namespace {

/// The value of a node.
struct Evaluated {
  Rounded result;
  std::optional<ExactNumber> exact;  ///< before it was rounded
};

class Evaluation {
 public:
  Evaluation(const Expression& expression, const fp16::NamedFormat& format) : format_(format) {
    for (const Node& node : expression) values_.push_back(value_of(node));
  }

  const Evaluated& root() const { return values_.back(); }
  std::vector<Step>& steps() { return steps_; }
  std::vector<std::string>& rounded_first() { return rounded_first_; }

  std::vector<std::uint64_t> operands_of(const Node& node) const {
    std::vector<std::uint64_t> codes;
    for (const std::size_t operand : node.operands) codes.push_back(values_[operand].result.code);
    return codes;
  }

 private:
  Evaluated value_of(const Node& node) {
    const fp16::Format& format = format_.format;
    if (node.operation == Operator::code) {
      if (format.width() < 64 && node.code >> format.width() != 0)
        throw std::invalid_argument(fmt::format("code 0x{:x} is too long for {}; allowed: {} bits", node.code,
                                                format_.name, format.width()));
      return {{node.code, {}}, exact_value(format, node.code)};
    }
    if (node.operation == Operator::number) {
      const bool is_number = node.text.find_first_of("nN") == std::string::npos;  // no inf, no nan
      const Rounded number = read(format, node.text);
      if (number.flags.inexact) rounded_first_.push_back(node.text);
      return {number, is_number ? std::optional(ExactNumber::from_text(node.text)) : std::nullopt};
    }
    const std::vector<std::uint64_t> operands = operands_of(node);
    std::optional<ExactNumber> exact = exact_result(format, node, operands);
    Evaluated value{apply(format, node, operands, exact), std::move(exact)};
    const Description result = describe(format, value.result.code);
    if (value.exact && value.exact->is_zero())
      value.exact = ExactNumber(result.shortest.starts_with('-'), {}, 0);
    steps_.push_back({text_of(node, operands), value.exact, result, value.result.flags});
    return value;
  }

  /// "2048 + 1", with the operands as they were rounded.
  std::string text_of(const Node& node, std::span<const std::uint64_t> operands) const {
    std::vector<std::string> texts;
    for (const std::uint64_t operand : operands) texts.push_back(describe(format_.format, operand).brief);
    switch (node.operation) {
      case Operator::add:
        return fmt::format("{} + {}", texts[0], texts[1]);
      case Operator::subtract:
        return fmt::format("{} - {}", texts[0], texts[1]);
      case Operator::multiply:
        return fmt::format("{} * {}", texts[0], texts[1]);
      case Operator::divide:
        return fmt::format("{} / {}", texts[0], texts[1]);
      case Operator::square_root:
        return fmt::format("sqrt({})", texts[0]);
      case Operator::fused_multiply_add:
        return fmt::format("fma({}, {}, {})", texts[0], texts[1], texts[2]);
      case Operator::negate:
        return fmt::format("-({})", texts[0]);
      case Operator::function:
        return fmt::format("{}({})", node.function->name, texts[0]);
      case Operator::number:
      case Operator::code:
        break;
    }
    return {};
  }

  fp16::NamedFormat format_;
  std::vector<Evaluated> values_;
  std::vector<Step> steps_;
  std::vector<std::string> rounded_first_;
};

Discarded discarded_by(const fp16::Format& format, const ExactNumber& exact) {
  const int ulp = ulp_exponent(format, exact.leading_exponent());
  return {.ulp_exponent = ulp,
          .kept = exact.binary_down_to(ulp),
          .guard = exact.bit(ulp - 1),
          .round = exact.bit(ulp - 2),
          .sticky = exact.has_bits_below(ulp - 2),
          .fraction = std::ldexp(static_cast<double>(exact.fraction_below(ulp)), -64)};
}

std::vector<RoundedSo> all_roundings(const Findings& found) {
  std::vector<RoundedSo> rows;
  for (const fp16::NamedRounding& rounding : fp16::named_roundings) {
    const auto add = [&](std::uint64_t random_bits, double chance) {
      const Rounded result =
          rounded_again(found, {.rounding = rounding.rounding, .random_bits = random_bits});
      rows.push_back({rounding.name, describe(*found.format, result.code), result.flags, chance});
    };
    const double away = found.discarded ? found.discarded->fraction : 0;
    add(std::numeric_limits<std::uint64_t>::max(), 1);
    if (rounding.rounding != fp16::Rounding::stochastic || away == 0) continue;
    add(0, away);
    RoundedSo& inner = rows[rows.size() - 2];
    if (inner.result.code == rows.back().result.code) {
      rows.pop_back();
    } else {
      inner.chance = 1 - away;
    }
  }
  return rows;
}

std::vector<InFormat> in_all_formats(const Findings& found) {
  // An infinity or a NaN as it was asked for, which the format may lack.
  const bool is_literal = found.last.operation == Operator::number;
  const fp16::Format& from = is_literal ? fp16::binary64 : *found.format;
  const std::uint64_t code =
      is_literal && !found.exact ? read(from, found.last.text).code : found.result.code;
  std::vector<InFormat> rows;
  for (const fp16::NamedFormat& row : fp16::formats) {
    const Rounded rounded = found.exact ? round(row.format, *found.exact) : convert(row.format, from, code);
    InFormat in{row.name, describe(row.format, rounded.code), rounded.flags, std::nullopt};
    const auto value = exact_value(row.format, rounded.code);
    if (found.exact && value && !found.exact->is_zero() && !rounded.flags.invalid)
      in.relative_error = rounded.flags.inexact ? ratio(*value + -*found.exact, *found.exact) : 0;
    rows.push_back(std::move(in));
  }
  return rows;
}

std::optional<Description> described(const fp16::Format& format, std::optional<std::uint64_t> code) {
  return code ? std::optional(describe(format, *code)) : std::nullopt;
}

}  // namespace

double Findings::error_in_ulps() const {
  const ExactNumber value = *exact_value(*format, result.code);
  return ratio(value + -*exact, ExactNumber(false, {1}, *ulp_exponent));
}

std::vector<std::uint64_t> operands_of(const Findings& found) {
  std::vector<std::uint64_t> codes;
  for (const Part& part : found.operands) codes.push_back(part.number.code);
  return codes;
}

Rounded rounded_again(const Findings& found, const fp16::Attributes& attributes) {
  return found.last.operation == Operator::number
             ? read(*found.format, found.last.text, attributes)
             : apply(*found.format, found.last, operands_of(found), found.exact, attributes);
}

Findings measure(const std::string& input, const fp16::NamedFormat& format) {
  const Expression expression = parse_expression(input);
  Evaluation evaluation(expression, format);
  const Node& last = expression.back();
  const std::vector<std::uint64_t> operands = evaluation.operands_of(last);
  Findings found{.input = input,
                 .format_name = format.name,
                 .format = &format.format,
                 .last = last,
                 .steps = std::move(evaluation.steps()),
                 .rounded_first = {},
                 .operands = {},
                 .result = describe(format.format, evaluation.root().result.code),
                 .flags = evaluation.root().result.flags,
                 .exact = evaluation.root().exact,
                 .exact_text = {},
                 .discarded = {},
                 .ulp_exponent = {},
                 .below = described(format.format, next_down(format.format, evaluation.root().result.code)),
                 .above = described(format.format, next_up(format.format, evaluation.root().result.code)),
                 .roundings = {},
                 .formats = {}};
  if (last.operation != Operator::number) found.rounded_first = std::move(evaluation.rounded_first());
  constexpr std::array<std::string_view, 3> names{"a", "b", "c"};
  for (std::size_t i = 0; i < operands.size(); ++i)
    found.operands.push_back({std::string(names[i]), describe(format.format, operands[i])});
  if (found.exact) {
    const bool is_decimal =
        last.operation == Operator::number && last.text.find_first_of("xX") == std::string::npos;
    found.exact_text = is_decimal ? last.text : found.exact->decimal();
    if (found.is_rounded() && !found.exact->is_zero())
      found.discarded = discarded_by(format.format, *found.exact);
  }
  if (const auto value = exact_value(format.format, found.result.code))
    found.ulp_exponent = value->is_zero() ? format.format.emin_subnormal()
                                          : ulp_exponent(format.format, value->leading_exponent());
  if (found.is_rounded()) found.roundings = all_roundings(found);
  found.formats = in_all_formats(found);
  return found;
}

}  // namespace halflab::show
