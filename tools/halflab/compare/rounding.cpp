#include "tools/halflab/compare/rounding.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <concepts>
#include <functional>

#include "fp16/bulk.h"
#include "tools/halflab/compare/findings.h"

namespace halflab::compare {
namespace {

/// Values rounded to F, to nearest even and toward zero.
template <const fp16::Format& F>
struct Rounded {
  std::vector<fp16::Bits<F>> nearest, truncated;
  std::vector<std::uint8_t> is_exact;  // 0 or 1
};

template <const fp16::Format& F, class Number>
void encode(std::span<const Number> values, std::vector<fp16::Bits<F>>& codes,
            const fp16::Attributes& attributes) {
  codes.resize(values.size());
  if constexpr (std::same_as<Number, float>) {
    fp16::encode<F>(values, codes, attributes);
  } else {
    std::ranges::transform(values, codes.begin(),
                           [&](Number value) { return fp16::encode<F>(value, attributes).bits; });
  }
}

/// Which values are of F, as far as codes to nearest tell.
template <const fp16::Format& F, class Number>
std::vector<std::uint8_t> exact(std::span<const Number> values, const std::vector<fp16::Bits<F>>& nearest) {
  std::vector<float> decoded(values.size());
  fp16::decode<F>(std::span<const fp16::Bits<F>>(nearest), decoded);
  std::vector<std::uint8_t> is_exact(values.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    const Number value = values[i];
    is_exact[i] = static_cast<std::uint8_t>((static_cast<Number>(decoded[i]) == value) | (value != value));
  }
  return is_exact;
}

template <const fp16::Format& F, class Number>
Rounded<F> rounded(std::span<const Number> values) {
  Rounded<F> result;
  encode<F>(values, result.nearest, {});
  encode<F>(values, result.truncated, {.rounding = fp16::Rounding::toward_zero});
  result.is_exact = exact<F>(values, result.nearest);
  return result;
}

template <class Number>
bool differ(Number a, Number b) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) != std::isnan(b);
  return a != b || std::signbit(a) != std::signbit(b);
}

template <class Number>
struct Values {
  std::vector<Number> equal, differing_a, differing_b;
};

/// The values where both are equal, and those where they differ.
template <class Number>
Values<Number> parted(std::span<const Number> a, std::span<const Number> b) {
  Values<Number> values;
  values.equal.reserve(a.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (differ(a[i], b[i])) {
      values.differing_a.push_back(a[i]);
      values.differing_b.push_back(b[i]);
    } else {
      values.equal.push_back(a[i]);
    }
  }
  return values;
}

template <const fp16::Format& F, class Number>
void add_equal(const std::vector<Number>& values, RoundedTo& found) {
  if (values.empty() || (found.inexact_a && found.inexact_b)) return;
  std::vector<fp16::Bits<F>> nearest;
  encode<F>(std::span<const Number>(values), nearest, {});
  if (std::ranges::count(exact<F>(std::span<const Number>(values), nearest), 0) > 0)
    found.inexact_a = found.inexact_b = true;
}

template <const fp16::Format& F, class Number>
void add_differing(const std::vector<Number>& a, const std::vector<Number>& b, RoundedTo& found) {
  if (a.empty()) return;
  const Rounded<F> of_a = rounded<F>(std::span<const Number>(a)),
                   of_b = rounded<F>(std::span<const Number>(b));
  const auto same = [](fp16::Bits<F> x, fp16::Bits<F> y) {
    return x == y || (fp16::is_nan<F>(x) && fp16::is_nan<F>(y));
  };
  for (std::size_t i = 0; i < a.size(); ++i) {
    const bool agree = same(of_a.nearest[i], of_b.nearest[i]);
    const bool exact_a = of_a.is_exact[i] != 0, exact_b = of_b.is_exact[i] != 0;
    found.inexact_a |= !exact_a;
    found.inexact_b |= !exact_b;
    found.agree += agree;
    found.a_rounded += agree && exact_a;
    found.b_rounded += agree && exact_b;
    found.a_truncated += exact_a && same(of_a.nearest[i], of_b.truncated[i]);
    found.b_truncated += exact_b && same(of_b.nearest[i], of_a.truncated[i]);
  }
}

}  // namespace

RoundedTo& RoundedTo::operator+=(const RoundedTo& other) {
  agree += other.agree;
  a_rounded += other.a_rounded;
  b_rounded += other.b_rounded;
  a_truncated += other.a_truncated;
  b_truncated += other.b_truncated;
  inexact_a |= other.inexact_a;
  inexact_b |= other.inexact_b;
  return *this;
}

RoundingFound& RoundingFound::operator+=(const RoundingFound& other) {
  for (std::size_t i = 0; i < by_format.size(); ++i) {
    by_format[i] += other.by_format[i];
    applies[i] = applies[i] && other.applies[i];
  }
  return *this;
}

template <class Number>
void RoundingFound::add(std::span<const Number> a, std::span<const Number> b) {
  const Values<Number> values = parted(a, b);
  [&]<std::size_t... i>(std::index_sequence<i...>) {
    const auto add_format = [&]<const fp16::Format & F>(std::size_t row) {
      if (!applies[row]) return;
      add_differing<F>(values.differing_a, values.differing_b, by_format[row]);
      add_equal<F>(values.equal, by_format[row]);
    };
    (add_format.template operator()<rounding_formats[i].format>(i), ...);
  }
  (std::make_index_sequence<rounding_formats.size()>());
}
template void RoundingFound::add(std::span<const float>, std::span<const float>);
template void RoundingFound::add(std::span<const double>, std::span<const double>);

std::array<bool, rounding_formats.size()> coarser_than(const fp16::Format& a, const fp16::Format& b) {
  std::array<bool, rounding_formats.size()> result{};
  std::ranges::transform(rounding_formats, result.begin(), [&](const fp16::NamedFormat& row) {
    const auto is_wider = [&](const fp16::Format& stored) {
      return row.format != stored && contains(row.format, stored);
    };
    return (!contains(row.format, a) || !contains(row.format, b)) && !is_wider(a) && !is_wider(b);
  });
  return result;
}

std::vector<Explanation> explanations(const Counts& counts, const RoundingFound& rounding) {
  std::vector<Explanation> found;
  const auto add = [&](std::string text, std::uint64_t explained, bool holds_where_equal) {
    // Two NaNs are the same to every rounding, whatever their bits.
    if (explained > 0)
      found.push_back({std::move(text), explained + counts.nan_bits,
                       holds_where_equal && explained + counts.nan_bits == counts.differing});
  };
  const auto for_each_format = [&](auto&& visit) {
    for (std::size_t i = 0; i < rounding_formats.size(); ++i) {
      if (rounding.applies[i]) visit(rounding_formats[i].name, rounding.by_format[i]);
    }
  };
  for_each_format([&](std::string_view format, const RoundedTo& to) {
    add(fmt::format("A is B rounded to {}", format), to.a_rounded, !to.inexact_a);
    add(fmt::format("B is A rounded to {}", format), to.b_rounded, !to.inexact_b);
  });
  for_each_format([&](std::string_view format, const RoundedTo& to) {
    add(fmt::format("A is B cut off (rounded toward zero) to {}", format), to.a_truncated, !to.inexact_a);
    add(fmt::format("B is A cut off (rounded toward zero) to {}", format), to.b_truncated, !to.inexact_b);
  });
  const std::string_view flushed_nans = counts.nan_bits > 0 ? ", and NaNs of other bits" : "";
  add(fmt::format("A has zeros where B has subnormal numbers{}", flushed_nans), counts.flushed_a, true);
  add(fmt::format("B has zeros where A has subnormal numbers{}", flushed_nans), counts.flushed_b, true);
  add(fmt::format("only the signs of zeros {}differ", counts.nan_bits > 0 ? "and the bits of NaNs " : ""),
      counts.zero_signs, true);
  if (counts.nan_bits == counts.differing && counts.nan_bits > 0)
    found.push_back({"only the bits of NaNs differ", counts.nan_bits, true});
  return found;
}

}  // namespace halflab::compare
