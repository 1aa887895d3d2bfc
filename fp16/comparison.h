#pragma once
/// Comparisons of codes: the predicates of IEEE 754-2019 with their exceptions, and its total order.

#include <compare>
#include <cstdint>
#include <limits>

#include "bits.h"
#include "config.h"
#include "sign.h"
#include "unpacked.h"

namespace fp16 {

/// The four relations, of which exactly one holds between any two codes (IEEE 754-2019 clause 5.11). Each is
/// a bit, so that a Predicate can be a set of them.
enum class Relation : unsigned { less = 1, equal = 2, greater = 4, unordered = 8 };

/// The twelve predicates of IEEE 754-2019 tables 5.1 to 5.3, each the set of relations under which it holds.
enum class Predicate : unsigned {
  equal = 2,
  not_equal = 1 | 4 | 8,
  less = 1,
  less_equal = 1 | 2,
  greater = 4,
  greater_equal = 2 | 4,
  less_unordered = 1 | 8,
  not_greater = 1 | 2 | 8,
  greater_unordered = 4 | 8,
  not_less = 2 | 4 | 8,
  ordered = 1 | 2 | 4,
  unordered = 8
};

struct Comparison {
  bool holds;
  Flags flags;

  friend constexpr bool operator==(const Comparison&, const Comparison&) = default;
};

/// A number's place among the numbers of its format: it grows by one from each number to the next larger one,
/// both zeros have the same, and an infinity comes after the largest finite number. No NaNs.
template <const Format& F>
FP16_HD constexpr std::int64_t ordinal(Code<F> bits) {
  const auto distance = static_cast<std::int64_t>(magnitude<F>(bits));
  return is_negative<F>(bits) ? -distance : distance;
}

/// -0 equals +0; a NaN is unordered with everything, itself too. Of the attributes only `denormals_are_zero`
/// matters, here and in all comparisons.
template <const Format& F>
FP16_HD constexpr Relation relation(Code<F> a, Code<F> b, const Attributes& attributes = {}) {
  if (is_nan<F>(a) || is_nan<F>(b)) return Relation::unordered;
  const std::int64_t x = ordinal<F>(read_operand<F>(a, attributes));
  const std::int64_t y = ordinal<F>(read_operand<F>(b, attributes));
  return x < y ? Relation::less : x > y ? Relation::greater : Relation::equal;
}

/// compareQuiet...: only a signalling NaN is invalid (IEEE 754-2019 clause 5.6.1).
template <const Format& F>
FP16_HD constexpr Comparison compare_quiet(Code<F> a, Predicate predicate, Code<F> b,
                                           const Attributes& attributes = {}) {
  const auto found = static_cast<unsigned>(relation<F>(a, b, attributes));
  return {.holds = (found & static_cast<unsigned>(predicate)) != 0,
          .flags = {.invalid = is_signalling_nan<F>(a) || is_signalling_nan<F>(b)}};
}

/// compareSignaling...: any NaN is invalid.
template <const Format& F>
FP16_HD constexpr Comparison compare_signalling(Code<F> a, Predicate predicate, Code<F> b,
                                                const Attributes& attributes = {}) {
  const bool holds = compare_quiet<F>(a, predicate, b, attributes).holds;
  return {.holds = holds, .flags = {.invalid = is_nan<F>(a) || is_nan<F>(b)}};
}

/// The relation as the language writes it.
template <const Format& F>
FP16_HD constexpr std::partial_ordering compare(Code<F> a, Code<F> b) {
  if (is_nan<F>(a) || is_nan<F>(b)) return std::partial_ordering::unordered;
  return ordinal<F>(a) <=> ordinal<F>(b);
}

namespace detail {

template <const Format& F>
FP16_HD constexpr std::int64_t total_ordinal(Bits<F> bits) {
  if (F.encoding == Encoding::fnuz && is_nan<F>(bits)) return std::numeric_limits<std::int64_t>::min();
  return is_negative<F>(bits) ? -1 - static_cast<std::int64_t>(magnitude<F>(bits))
                              : static_cast<std::int64_t>(bits);
}

}  // namespace detail

/// totalOrder(a, b), "a comes before b or is the same code" (IEEE 754-2019 clause 5.10): numbers by value,
/// -0 before +0, NaNs outside of all numbers on the side of their sign; from the numbers outward first
/// signalling, then quiet NaNs, each by growing payload. The only NaN of a fnuz format has its sign bit set
/// and comes first.
template <const Format& F>
FP16_HD constexpr bool total_order(Code<F> a, Code<F> b) {
  return detail::total_ordinal<F>(a) <= detail::total_ordinal<F>(b);
}

/// totalOrderMag(a, b): the same of |a| and |b|.
template <const Format& F>
FP16_HD constexpr bool total_order_mag(Code<F> a, Code<F> b) {
  return total_order<F>(abs<F>(a), abs<F>(b));
}

}  // namespace fp16
