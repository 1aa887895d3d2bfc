#pragma once
/// What fmt.h and std_format.h share: how a half meets the format specification of a floating-point number.

#include <bit>
#include <string_view>

#include "half.h"
#include "parse.h"
#include "text.h"

namespace fp16::detail {

/// A formatter of halves on top of `FormatterOfDouble`, fmt's or the standard library's.
template <typename FormatterOfDouble>
struct HalfFormatter : FormatterOfDouble {
  template <typename ParseContext>
  constexpr auto parse(ParseContext& context) {
    const auto begin = context.begin();
    const auto end = FormatterOfDouble::parse(context);
    exact_ = has_precision_or_type({begin, end});
    return end;
  }

  template <typename Context>
  auto format(half a, Context& context) const {
    return FormatterOfDouble::format(exact_ ? static_cast<double>(a) : shortest_as_double(a), context);
  }

 private:
  static constexpr bool has_precision_or_type(std::string_view specification) {
    constexpr std::string_view alignments = "<>^";
    const bool fill = specification.size() > 1 && alignments.find(specification[1]) != std::string_view::npos;
    if (fill) specification.remove_prefix(2);
    return specification.find('.') != std::string_view::npos ||
           (!specification.empty() &&
            std::string_view("aAeEfFgG").find(specification.back()) != std::string_view::npos);
  }

  /// The double whose shortest decimal is that of `a`.
  static double shortest_as_double(half a) {
    return std::bit_cast<double>(fp16::parse<binary64>(to_shortest<binary16>(a.bits())).bits);
  }

  bool exact_ = false;
};

}  // namespace fp16::detail
