#pragma once
/// Optional, for programs that use the {fmt} library: halves in fmt::format.

#include <fmt/format.h>

#include <bit>
#include <cstddef>
#include <string_view>

#include "fp16/half.h"
#include "fp16/half_text.h"

/// `{}` is the shortest decimal that reads back as the same half. All the specifications of floating-point
/// numbers are there: [[fill]align][sign][#][0][width][.precision][L][type]; with a precision or a type they
/// show the exact value. The layout is fmt's own for a double.
template <>
struct fmt::formatter<fp16::half> : fmt::formatter<double> {
  constexpr auto parse(fmt::format_parse_context& context) {
    const auto* const begin = context.begin();
    const auto* const end = fmt::formatter<double>::parse(context);
    exact_ = has_precision_or_type({begin, static_cast<std::size_t>(end - begin)});
    return end;
  }

  template <typename Context>
  auto format(fp16::half a, Context& context) const {
    return fmt::formatter<double>::format(exact_ ? static_cast<double>(a) : shortest_as_double(a), context);
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
  static double shortest_as_double(fp16::half a) {
    const auto text = fp16::to_shortest<fp16::binary16>(a.bits());
    return std::bit_cast<double>(fp16::parse<fp16::binary64>(text).bits);
  }

  bool exact_ = false;
};
