#pragma once
/// Sums over many terms, all in one stated order that vector units and the threads of a GPU can follow.
///
/// Rows of terms give a sum a column. They are cut into blocks of 16 rows; in a block each column adds its
/// terms in ascending order, from zero; the blocks' sums are added pairwise, as fp16::sum_pairwise adds. A
/// term of n goes through at most 15 + ceil(log2(ceil(n / 16))) roundings, which bounds the error (Higham
/// 2002, 4.2). In one chain of all rows many terms that are alike would all be rounded to one side.
///
/// A single row of terms, the interleaved sum, is laid out in rows of 16: term i is in column i mod 16. At the
/// end column j takes up j + 8, then j + 4, j + 2 and j + 1, which makes four roundings more.
///
/// Where partial sums are rounded to binary16 all rows are one block: what plain chains of FP16 lose is to
/// show.
///
/// A sum that is a NaN is the default one: which of several a chain hands on is the compiler's choice.

#include <algorithm>
#include <array>
#include <cstddef>
#include <functional>
#include <numeric>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "fp16/config.h"
#include "fp16/elementary.h"
#include "fp16/formats.h"
#include "sim/precision/arithmetic.h"

namespace sim {

/// `value` in the format of partial sums; doubles stay as they are.
template <class Real>
Real rounded_to(fp16::Format reductions, Real value) {
  if constexpr (std::is_same_v<Real, float>) {
    if (reductions == fp16::binary16) return rounded_to_binary16(value);
  }
  return value;
}

/// sum + term, both the term and the result rounded to binary16 if `InBinary16` (of floats only). The binary32
/// sum of two halves rounds to binary16 as their exact sum does: 24 >= 2 * 11 + 2 (Figueroa 1995).
template <bool InBinary16>
struct Accumulate {
  template <class Real>
  Real operator()(Real sum, Real term) const {
    if constexpr (InBinary16 && std::is_same_v<Real, float>) {
      return rounded_to_binary16(sum + rounded_to_binary16(term));
    } else {
      return sum + term;
    }
  }
};

/// Calls body(Accumulate) as `reductions` asks for.
template <class Body>
decltype(auto) with_accumulation(fp16::Format reductions, Body body) {
  return reductions == fp16::binary16 ? body(Accumulate<true>{}) : body(Accumulate<false>{});
}

inline constexpr std::size_t rows_of_a_block = 16;

/// The sums of columns, an array of them, block by block.
template <class Columns>
class BlockedSums {
 public:
  BlockedSums(fp16::Format reductions, Columns zeros)
      : one_block_(reductions == fp16::binary16), block_(std::move(zeros)) {}

  /// Where the next `rows` rows, at most 16 and all in one block, are to be added.
  Columns& block_for(std::size_t rows) {
    if (rows_ + rows > rows_of_a_block && !one_block_) {
      append(block_);
      std::ranges::fill(block_, 0);
      rows_ = 0;
    }
    rows_ += rows;
    return block_;
  }

  Columns totals() && {
    if (waiting_.empty()) return std::move(block_);
    append(std::move(block_));
    while (waiting_.size() > 1) join_last_two();
    return std::move(waiting_.front());
  }

 private:
  void append(Columns block) {
    waiting_.push_back(std::move(block));
    for (std::size_t n = ++blocks_; n % 2 == 0; n /= 2) join_last_two();
  }
  void join_last_two() {
    Columns& left = waiting_[waiting_.size() - 2];
    std::ranges::transform(left, waiting_.back(), left.begin(), std::plus<>());
    waiting_.pop_back();
  }

  bool one_block_;
  Columns block_;
  std::size_t rows_ = 0;          ///< of the block
  std::vector<Columns> waiting_;  ///< sums of 2^k finished blocks each, k descending
  std::size_t blocks_ = 0;        ///< finished ones
};

template <class Real>
Real with_default_nan(Real sum) {
  return sum == sum ? sum : fp16::elementary::default_nan<Real>;
}

inline constexpr std::size_t interleaved_lanes = 16;
template <class Real>
using Lanes = std::array<Real, interleaved_lanes>;

/// lanes[i mod 16] = combine(lanes[i mod 16], term(i)) for i = 0 .. count - 1.
template <class Real, class Combine, class Term>
inline void combine_interleaved(Lanes<Real>& lanes, std::size_t count, Combine combine, Term term) {
  constexpr std::size_t width = interleaved_lanes;
  Lanes<Real> local = lanes;  // never indexed by a variable, so that it stays in registers
  std::size_t i = 0;
  for (; i + width <= count; i += width) {
    for (std::size_t j = 0; j < width; ++j) local[j] = combine(local[j], term(i + j));
  }
  lanes = local;
  for (std::size_t j = 0; i + j < count; ++j) lanes[j] = combine(lanes[j], term(i + j));
}

/// The lanes in one: j takes up j + 8, then j + 4, j + 2 and j + 1.
template <class Real, class Combine>
inline Real fold(Lanes<Real> lanes, Combine combine) {
  for (std::size_t j = 0; j < 8; ++j) lanes[j] = combine(lanes[j], lanes[j + 8]);
  for (std::size_t j = 0; j < 4; ++j) lanes[j] = combine(lanes[j], lanes[j + 4]);
  for (std::size_t j = 0; j < 2; ++j) lanes[j] = combine(lanes[j], lanes[j + 2]);
  return combine(lanes[0], lanes[1]);
}

/// The interleaved sum of terms, which may arrive in pieces: all but the last of a multiple of 256.
template <class Real>
class InterleavedSum {
 public:
  static constexpr std::size_t block = rows_of_a_block * interleaved_lanes;

  explicit InterleavedSum(fp16::Format reductions) : reductions_(reductions), sums_(reductions, {}) {}

  /// Adds term(0), ..., term(count - 1).
  template <class Term>
  void add(std::size_t count, Term term) {
    with_accumulation(reductions_, [&](auto accumulate) {
      for (std::size_t first = 0; first < count; first += block) {
        add_terms(sums_.block_for(rows_of_a_block), std::min(block, count - first), accumulate,
                  [first, term](std::size_t i) { return term(first + i); });
      }
    });
  }

  Real total() && {
    return with_default_nan(with_accumulation(
        reductions_, [&](auto accumulate) { return fold(std::move(sums_).totals(), accumulate); }));
  }

 private:
  template <class Accumulation, class Term>
  FP16_VECTOR_CLONES static void add_terms(Lanes<Real>& lanes, std::size_t count, Accumulation accumulate,
                                           Term term) {
    combine_interleaved(lanes, count, accumulate, term);
  }

  fp16::Format reductions_;
  BlockedSums<Lanes<Real>> sums_;
};

/// The interleaved sum of term(0), ..., term(count - 1); terms and partial sums are rounded to `reductions`.
template <class Real, class Term>
Real interleaved_sum(fp16::Format reductions, std::size_t count, Term term) {
  InterleavedSum<Real> sum(reductions);
  sum.add(count, term);
  return std::move(sum).total();
}

/// The interleaved sum over `count`, also a value of `reductions`.
template <class Real, class Term>
Real interleaved_mean(fp16::Format reductions, std::size_t count, Term term) {
  return rounded_to(reductions, interleaved_sum<Real>(reductions, count, term) / static_cast<Real>(count));
}

/// The sums of `columns` columns of terms, row by row; terms and partial sums are rounded to `reductions`.
template <class Real>
class ColumnSums {
 public:
  ColumnSums(fp16::Format reductions, std::size_t columns)
      : reductions_(reductions), sums_(reductions, std::vector<Real>(columns)) {}

  /// Adds term(j) to the sum of column j.
  template <class Term>
  void add_row(Term term) {
    std::vector<Real>& block = sums_.block_for(1);
    with_accumulation(reductions_,
                      [&](auto accumulate) { add_terms(block.data(), block.size(), accumulate, term); });
  }

  std::vector<Real> totals() && {
    std::vector<Real> totals = std::move(sums_).totals();
    std::ranges::transform(totals, totals.begin(), with_default_nan<Real>);
    return totals;
  }

 private:
  template <class Accumulation, class Term>
  FP16_VECTOR_CLONES static void add_terms(Real* sums, std::size_t count, Accumulation accumulate,
                                           Term term) {
    for (std::size_t j = 0; j < count; ++j) sums[j] = accumulate(sums[j], term(j));
  }

  fp16::Format reductions_;
  BlockedSums<std::vector<Real>> sums_;
};

/// The sum of the squares of arrays, in binary64 (squares are exact, of floats): of each array the square of
/// element i goes to partial sum i mod 16, in ascending order; at the end those are added in ascending order.
class SumOfSquares {
 public:
  template <class Real>
  void add(std::span<const Real> values) {
    add_to(lanes_, values);
  }
  double total() const { return std::accumulate(lanes_.begin(), lanes_.end(), 0.0); }

 private:
  template <class Real>
  FP16_VECTOR_CLONES static void add_to(Lanes<double>& lanes, std::span<const Real> values) {
    combine_interleaved(lanes, values.size(), std::plus<>(), [values](std::size_t i) {
      const double value = values[i];
      return value * value;
    });
  }

  Lanes<double> lanes_ = {};
};

}  // namespace sim
