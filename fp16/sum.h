#pragma once
/// Sums with a stated order, on codes of any format with arithmetic, and the exact sum, which has none.
///
/// A sum of n values takes n-1 additions: it starts from the first value, not from a zero. A single value is
/// returned as it is; the sum of nothing is +0. `attributes` hold for every step (stochastic rounding would
/// use the same random bits in each of them, so that it wants a loop of its own). Flags are the union over
/// the steps that the result depends on.
///
/// Error bounds are those of Higham, "Accuracy and Stability of Numerical Algorithms", 2nd edition, 2002,
/// chapter 4, for rounding to nearest: u is the unit roundoff 2^-p, gamma(n) = n u / (1 - n u) with n u < 1,
/// S the sum of all |values|. They hold unless a step overflows, and with gradual underflow, where a sum in
/// the subnormal range is exact: `flush_to_zero` and `denormals_are_zero` may lose up to the smallest normal
/// number more in each step. In every rounding but to nearest u becomes 2u, except for the compensated sums,
/// whose bounds need rounding to nearest.

#include <array>
#include <cstddef>
#include <span>
#include <string_view>

#include "arithmetic.h"
#include "config.h"
#include "exact_accumulator.h"
#include "unpacked.h"

namespace fp16 {

namespace detail {

/// Arithmetic on results: the flags of the operands stay with the value made from them.
template <const Format& F>
struct FlaggedArithmetic {
  const Attributes& attributes;

  FP16_HD constexpr Result<F> plus(const Result<F>& a, const Result<F>& b) const {
    Result<F> result = add<F>(a.bits, b.bits, attributes);
    result.flags |= a.flags | b.flags;
    return result;
  }
  FP16_HD constexpr Result<F> minus(const Result<F>& a, const Result<F>& b) const {
    Result<F> result = subtract<F>(a.bits, b.bits, attributes);
    result.flags |= a.flags | b.flags;
    return result;
  }
};

}  // namespace detail

/// ((v[0] + v[1]) + v[2]) + ... Error at most gamma(n-1) S.
template <const Format& F>
FP16_HD constexpr Result<F> sum_sequential(std::span<const Bits<F>> values,
                                           const Attributes& attributes = {}) {
  if (values.empty()) return {.bits = 0, .flags = {}};
  const detail::FlaggedArithmetic<F> arithmetic{attributes};
  Result<F> sum{values[0], {}};
  for (const Bits<F> value : values.subspan(1)) sum = arithmetic.plus(sum, {value, {}});
  return sum;
}

/// The sum of the first 2^k values plus the sum of the others, each found likewise, where 2^k is the largest
/// power of two below n. Error at most gamma(ceil(log2 n)) S.
template <const Format& F>
FP16_HD constexpr Result<F> sum_pairwise(std::span<const Bits<F>> values, const Attributes& attributes = {}) {
  if (values.size() <= 1) return sum_sequential<F>(values, attributes);
  const std::size_t left = std::size_t{1} << (bit_width(values.size() - 1) - 1);
  return detail::FlaggedArithmetic<F>{attributes}.plus(sum_pairwise<F>(values.first(left), attributes),
                                                       sum_pairwise<F>(values.subspan(left), attributes));
}

namespace detail {

template <const Format& F, std::size_t width>
struct BlockedTree {
  std::span<const Bits<F>> values;
  const Attributes& attributes;

  /// How many values a level has: the input's are level 0, each level the sums of blocks of the one below.
  FP16_HD constexpr std::size_t count(int level) const {
    std::size_t result = values.size();
    for (; level > 0; --level) result = result / width + (result % width != 0);
    return result;
  }

  FP16_HD constexpr Result<F> value(int level, std::size_t index) const {
    if (level == 0) return {values[index], {}};
    const std::size_t first = index * width;
    const std::size_t left = count(level - 1) - first;
    return lane(level - 1, first, left < width ? left : width, 1);
  }

  /// What the first of `present` lanes from `first` on holds when `live` lanes are left.
  FP16_HD constexpr Result<F> lane(int level, std::size_t first, std::size_t present,
                                   std::size_t live) const {
    if (live == width) return value(level, first);
    const Result<F> own = lane(level, first, present, 2 * live);
    if (present <= live) return own;
    return FlaggedArithmetic<F>{attributes}.plus(own, lane(level, first + live, present - live, 2 * live));
  }
};

}  // namespace detail

/// The order in which GPUs reduce. Each block of `width` consecutive values is a tree: lane t adds what lane t + width/2
/// holds, for t < width/2; then t + width/4, and so on down to t + 1 (the order of __shfl_down_sync and of
/// strided reductions in shared memory). The blocks' sums, in order, are summed in the same way, until one is
/// left. A lane without a partner keeps its value; no zeros are added in place of missing values. Error at
/// most gamma(h) S, with h = log2(width) * ceil(log(n) / log(width)).
template <const Format& F, std::size_t width>
FP16_HD constexpr Result<F> sum_blocked_tree(std::span<const Bits<F>> values,
                                             const Attributes& attributes = {}) {
  static_assert(width >= 2 && (width & (width - 1)) == 0);
  if (values.empty()) return {.bits = 0, .flags = {}};
  const detail::BlockedTree<F, width> tree{values, attributes};
  int top = 0;
  while (tree.count(top) > 1) ++top;
  return tree.value(top, 0);
}

/// Kahan, "Further remarks on reducing truncation errors", 1965: with s = v[0] and c = 0, for each further v
/// y = v - c, t = s + y, c = (t - s) - y, s = t. Error at most (2u + O(n u^2)) S. An infinity among the
/// values or partial sums makes c, and with it every later s, a NaN.
template <const Format& F>
FP16_HD constexpr Result<F> sum_kahan(std::span<const Bits<F>> values, const Attributes& attributes = {}) {
  if (values.empty()) return {.bits = 0, .flags = {}};
  const detail::FlaggedArithmetic<F> arithmetic{attributes};
  Result<F> sum{values[0], {}};
  Result<F> compensation{0, {}};
  for (const Bits<F> value : values.subspan(1)) {
    const Result<F> corrected = arithmetic.minus({value, {}}, compensation);
    const Result<F> next = arithmetic.plus(sum, corrected);
    compensation = arithmetic.minus(arithmetic.minus(next, sum), corrected);
    sum = next;
  }
  return sum;
}

/// Neumaier, "Rundungsfehleranalyse einiger Verfahren zur Summation endlicher Summen", 1974: a sequential sum
/// s; the error of each step, (larger - t) + smaller by magnitude, v being the smaller when they are equal,
/// is added to c, which starts from +0; the result is s + c. Error at most u |sum| + gamma(n-1)^2 S (Ogita,
/// Rump and Oishi, "Accurate sum and dot product", 2005, proposition 4.5). An infinity among two or more
/// values or their partial sums makes the result a NaN.
template <const Format& F>
FP16_HD constexpr Result<F> sum_neumaier(std::span<const Bits<F>> values, const Attributes& attributes = {}) {
  if (values.size() <= 1) return sum_sequential<F>(values, attributes);
  const detail::FlaggedArithmetic<F> arithmetic{attributes};
  Result<F> sum{values[0], {}};
  Result<F> compensation{0, {}};
  for (const Bits<F> value : values.subspan(1)) {
    const Result<F> term{value, {}};
    const Result<F> next = arithmetic.plus(sum, term);
    const bool sum_is_larger = magnitude<F>(sum.bits) >= magnitude<F>(value);
    const Result<F> error = sum_is_larger ? arithmetic.plus(arithmetic.minus(sum, next), term)
                                          : arithmetic.plus(arithmetic.minus(term, next), sum);
    compensation = arithmetic.plus(compensation, error);
    sum = next;
  }
  return arithmetic.plus(sum, compensation);
}

/// The exact sum of all values, rounded once to the format To: the same for every order. Special values as
/// in `ExactAccumulator`. At most 2^ExactAccumulator<From>::max_terms_log2 values, never less than 2^40.
template <const Format& To, const Format& From = To>
FP16_HD constexpr Result<To> sum_exact(std::span<const Bits<From>> values,
                                       const Attributes& attributes = {}) {
  ExactAccumulator<From> sum;
  for (const Bits<From> value : values) sum.add(read_operand<From>(value, attributes));
  return sum.template rounded<To>(attributes);
}

/// A way to add up an array.
template <const Format& F>
struct SumOrder {
  std::string_view name;
  Result<F> (*sum)(std::span<const Bits<F>> values, const Attributes& attributes);
};

/// A new order is one row.
template <const Format& F>
inline constexpr std::array sum_orders{
    SumOrder<F>{"sequential", sum_sequential<F>},
    SumOrder<F>{"pairwise", sum_pairwise<F>},
    SumOrder<F>{"blocked_tree_32", sum_blocked_tree<F, 32>},
    SumOrder<F>{"blocked_tree_256", sum_blocked_tree<F, 256>},
    SumOrder<F>{"kahan", sum_kahan<F>},
    SumOrder<F>{"neumaier", sum_neumaier<F>},
    SumOrder<F>{"exact", sum_exact<F, F>},
};

}  // namespace fp16
