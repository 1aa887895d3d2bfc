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
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "fp16/formats.h"
#include "sim/ops/elements.h"
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

inline constexpr std::size_t rows_of_a_block = 16;
inline constexpr std::size_t interleaved_lanes = 16;

template <class Real>
using Lanes = std::array<Real, interleaved_lanes>;

/// The sums of columns, an array of them, block by block.
template <class Columns>
class BlockedSums {
 public:
  BlockedSums(fp16::Format reductions, Columns zeros)
      : one_block_(reductions == fp16::binary16), block_(std::move(zeros)) {}

  /// Where the next `rows` rows, at most 16 and all in one block, are to be added.
  Columns& block_for(std::size_t rows);
  Columns totals() &&;

 private:
  void append(Columns block);
  void join_last_two();

  bool one_block_;
  Columns block_;
  std::size_t rows_ = 0;          ///< of the block
  std::vector<Columns> waiting_;  ///< sums of 2^k finished blocks each, k descending
  std::size_t blocks_ = 0;        ///< finished ones
};

/// The interleaved sum of terms, which may arrive in pieces: all but the last of a multiple of 256. Terms and
/// partial sums are rounded to `reductions`. Real is float or double.
template <class Real>
class InterleavedSum {
 public:
  static constexpr std::size_t block = rows_of_a_block * interleaved_lanes;

  explicit InterleavedSum(fp16::Format reductions) : reductions_(reductions), sums_(reductions, {}) {}

  void add(std::span<const Real> terms);

  /// Adds function(inputs[i]...) for i = 0 .. count - 1.
  template <class Function, class... Inputs>
  void add(Function function, std::size_t count, const Inputs*... inputs) {
    Real terms[block];
    for (std::size_t first = 0; first < count; first += block) {
      const std::size_t n = std::min(block, count - first);
      apply_to_each(function, n, terms, (inputs + first)...);
      add(std::span<const Real>(terms, n));
    }
  }

  Real total() &&;

 private:
  fp16::Format reductions_;
  BlockedSums<Lanes<Real>> sums_;
};

template <class Real>
Real interleaved_sum(fp16::Format reductions, std::span<const Real> terms) {
  InterleavedSum<Real> sum(reductions);
  sum.add(terms);
  return std::move(sum).total();
}

/// The interleaved sum of function(inputs[i]...) for i = 0 .. count - 1.
template <class Real, class Function, class... Inputs>
Real interleaved_sum(fp16::Format reductions, Function function, std::size_t count, const Inputs*... inputs) {
  InterleavedSum<Real> sum(reductions);
  sum.add(function, count, inputs...);
  return std::move(sum).total();
}

/// The interleaved sum over `count`, also a value of `reductions`.
template <class Real>
Real mean_of_sum(fp16::Format reductions, Real sum, std::size_t count) {
  return rounded_to(reductions, sum / static_cast<Real>(count));
}

/// The sums of `columns` columns of terms, row by row; terms and partial sums are rounded to `reductions`.
/// Real is float or double.
template <class Real>
class ColumnSums {
 public:
  ColumnSums(fp16::Format reductions, std::size_t columns)
      : reductions_(reductions), sums_(reductions, std::vector<Real>(columns)) {}

  /// Adds terms[j] to the sum of column j.
  void add_row(const Real* terms);

  std::vector<Real> totals() &&;

 private:
  fp16::Format reductions_;
  BlockedSums<std::vector<Real>> sums_;
};

/// The sum of the squares of arrays, in binary64 (squares are exact, of floats): of each array the square of
/// element i goes to partial sum i mod 16, in ascending order; at the end those are added in ascending order.
class SumOfSquares {
 public:
  void add(std::span<const float> values);
  void add(std::span<const double> values);
  double total() const;

 private:
  Lanes<double> lanes_ = {};
};

/// The largest of `count` elements; NaNs are passed over. -infinity of none. Real is float or double.
template <class Real>
Real largest_of(const Real* values, std::size_t count);

}  // namespace sim
