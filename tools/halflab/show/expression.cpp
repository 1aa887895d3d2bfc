#include "tools/halflab/show/expression.h"

#include <fmt/format.h>

#include <charconv>
#include <cstdint>
#include <cstdlib>
#include <stdexcept>

#include "fp16/formats.h"
#include "fp16/parse.h"
#include "tools/halflab/show/exact_number.h"

namespace halflab::show {
namespace {

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text), rest_(text) {}

  Expression expression() {
    sum();
    skip_space();
    if (!rest_.empty()) fail("an operator or the end" + hint());
    return std::move(nodes_);
  }

 private:
  [[noreturn]] void fail(std::string_view expected) const {
    const std::string found =
        rest_.empty() ? "at its end" : fmt::format("at '{:.20}'", std::string_view(rest_));
    throw std::invalid_argument(fmt::format("'{:.80}' {}: must be {}", text_, found, expected));
  }

  /// For who writes decimals with a comma.
  std::string hint() const {
    const bool is_comma = rest_.size() > 1 && rest_[0] == ',' && rest_[1] >= '0' && rest_[1] <= '9';
    return is_comma ? "; decimals are written with a point: 0.1" : "";
  }

  void skip_space() {
    while (rest_.starts_with(' ') || rest_.starts_with('\t')) rest_.remove_prefix(1);
  }

  bool take(std::string_view word) {
    skip_space();
    if (!rest_.starts_with(word)) return false;
    rest_.remove_prefix(word.size());
    return true;
  }

  void require(std::string_view word) {
    if (!take(word)) fail(fmt::format("'{}'", word));
  }

  std::size_t add(Node node) {
    constexpr std::size_t most = 200;
    if (nodes_.size() == most) fail(fmt::format("an expression of at most {} parts", most));
    nodes_.push_back(std::move(node));
    return nodes_.size() - 1;
  }

  std::size_t sum() {
    std::size_t left = product();
    for (;;) {
      if (take("+")) {
        left = add({Operator::add, {left, product()}});
      } else if (take("-")) {
        left = add({Operator::subtract, {left, product()}});
      } else {
        return left;
      }
    }
  }

  std::size_t product() {
    std::size_t left = factor();
    for (;;) {
      if (take("*")) {
        left = add({Operator::multiply, {left, factor()}});
      } else if (take("/")) {
        left = add({Operator::divide, {left, factor()}});
      } else {
        return left;
      }
    }
  }

  std::size_t factor() {
    constexpr int deepest = 100;
    skip_space();
    if (++depth_ > deepest) fail("less deep");
    const std::size_t node = signed_operand();
    --depth_;
    return node;
  }

  std::size_t signed_operand() {
    const bool is_negative = take("-");
    if (!is_negative) take("+");
    skip_space();
    const std::string_view name =
        rest_.substr(0, rest_.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789"));
    const std::string_view behind = rest_.substr(name.size());
    if (!behind.starts_with('(')) return literal(is_negative);
    const std::size_t node = call(name);
    return is_negative ? add({Operator::negate, {node}}) : node;
  }

  /// A group where the name is empty.
  std::size_t call(std::string_view name) {
    const Function* const function = function_named(name);
    const bool is_fma = name == "fma";
    if (!name.empty() && function == nullptr && !is_fma && name != "sqrt") fail("one of " + calls());
    rest_.remove_prefix(name.size());
    require("(");
    std::vector<std::size_t> operands{sum()};
    while (is_fma && operands.size() < 3) {
      require(",");
      operands.push_back(sum());
    }
    require(")");
    if (name.empty()) return operands[0];
    if (is_fma) return add({Operator::fused_multiply_add, operands});
    if (function == nullptr) return add({Operator::square_root, operands});
    return add({.operation = Operator::function, .operands = operands, .function = function});
  }

  std::size_t literal(bool is_negative) {
    const std::string sign = is_negative ? "-" : "";
    if (rest_.starts_with("2^")) return power_of_two(sign);
    const auto number = fp16::parse<fp16::binary64>(rest_);
    if (number.error != std::errc{} || rest_.starts_with('-') || rest_.starts_with('+'))
      fail("a number, a code such as 0x3c00, or one of " + calls());
    const std::string_view token(rest_.data(), static_cast<std::size_t>(number.end - rest_.data()));
    const bool is_hexadecimal = token.starts_with("0x") || token.starts_with("0X");
    if (is_hexadecimal && token.find_first_of("pP") == std::string_view::npos)
      return code(token, is_negative);
    rest_.remove_prefix(token.size());
    return add({Operator::number, {}, sign + std::string(token)});
  }

  std::size_t code(std::string_view token, bool is_negative) {
    if (token.find('.') != std::string_view::npos)
      fail("a code such as 0x3c00 or, with an exponent, a number such as 0x1.8p0");
    std::uint64_t bits = 0;
    const auto [end, error] = std::from_chars(token.data() + 2, token.data() + token.size(), bits, 16);
    if (error != std::errc{} || end != token.data() + token.size()) fail("a code of at most 64 bits");
    rest_.remove_prefix(token.size());
    const std::size_t node = add({Operator::code, {}, {}, bits});
    return is_negative ? add({Operator::negate, {node}}) : node;
  }

  std::size_t power_of_two(const std::string& sign) {
    int exponent = 0;
    const char* const begin = rest_.data() + 2;
    const auto [end, error] = std::from_chars(begin, rest_.data() + rest_.size(), exponent);
    constexpr int largest = ExactNumber::largest_read;
    if (error != std::errc{} || std::abs(std::int64_t{exponent}) > largest)
      fail(fmt::format("a power of two such as 2^-24, up to 2^{}", largest));
    rest_.remove_prefix(static_cast<std::size_t>(end - rest_.data()));
    return add({Operator::number, {}, fmt::format("{}0x1p{}", sign, exponent)});
  }

  std::string_view text_;
  std::string_view rest_;
  Expression nodes_;
  int depth_ = 0;
};

}  // namespace

std::string calls() {
  std::string list = "sqrt(a), fma(a, b, c)";
  for (const Function& function : functions()) list += fmt::format(", {}(a)", function.name);
  return list;
}

Expression parse_expression(std::string_view text) {
  return Parser(text).expression();
}

}  // namespace halflab::show
