#include "sim/ops/sums.h"

#include <functional>
#include <limits>
#include <numeric>
#include <utility>

#include "fp16/config.h"
#include "fp16/elementary.h"

namespace sim {
namespace {

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

template <class Real>
Real with_default_nan(Real sum) {
  return sum == sum ? sum : fp16::elementary::default_nan<Real>;
}

/// lanes[i mod 16] = combine(lanes[i mod 16], values[i]) for i = 0 .. count - 1.
template <class Sum, class Real, class Combine>
FP16_VECTOR_CLONES void combine_interleaved(Lanes<Sum>& lanes, const Real* values, std::size_t count,
                                            Combine combine) {
  constexpr std::size_t width = interleaved_lanes;
  Lanes<Sum> local = lanes;  // never indexed by a variable, so that it stays in registers
  std::size_t i = 0;
  for (; i + width <= count; i += width) {
    for (std::size_t j = 0; j < width; ++j) local[j] = combine(local[j], values[i + j]);
  }
  lanes = local;
  for (std::size_t j = 0; i + j < count; ++j) lanes[j] = combine(lanes[j], values[i + j]);
}

/// sums[j] = combine(sums[j], terms[j]).
template <class Real, class Combine>
FP16_VECTOR_CLONES void combine_columns(Real* sums, const Real* terms, std::size_t count, Combine combine) {
  for (std::size_t j = 0; j < count; ++j) sums[j] = combine(sums[j], terms[j]);
}

/// The lanes in one: j takes up j + 8, then j + 4, j + 2 and j + 1.
template <class Real, class Combine>
Real fold(Lanes<Real> lanes, Combine combine) {
  for (std::size_t j = 0; j < 8; ++j) lanes[j] = combine(lanes[j], lanes[j + 8]);
  for (std::size_t j = 0; j < 4; ++j) lanes[j] = combine(lanes[j], lanes[j + 4]);
  for (std::size_t j = 0; j < 2; ++j) lanes[j] = combine(lanes[j], lanes[j + 2]);
  return combine(lanes[0], lanes[1]);
}

struct AddSquare {
  double operator()(double sum, double value) const { return sum + value * value; }
};

struct Larger {
  template <class Real>
  Real operator()(Real a, Real b) const {
    return b > a ? b : a;
  }
};

}  // namespace

template <class Columns>
Columns& BlockedSums<Columns>::block_for(std::size_t rows) {
  if (rows_ + rows > rows_of_a_block && !one_block_) {
    append(block_);
    std::ranges::fill(block_, 0);
    rows_ = 0;
  }
  rows_ += rows;
  return block_;
}

template <class Columns>
Columns BlockedSums<Columns>::totals() && {
  if (waiting_.empty()) return std::move(block_);
  append(std::move(block_));
  while (waiting_.size() > 1) join_last_two();
  return std::move(waiting_.front());
}

template <class Columns>
void BlockedSums<Columns>::append(Columns block) {
  waiting_.push_back(std::move(block));
  for (std::size_t n = ++blocks_; n % 2 == 0; n /= 2) join_last_two();
}

template <class Columns>
void BlockedSums<Columns>::join_last_two() {
  Columns& left = waiting_[waiting_.size() - 2];
  std::ranges::transform(left, waiting_.back(), left.begin(), std::plus<>());
  waiting_.pop_back();
}

template <class Real>
void InterleavedSum<Real>::add(std::span<const Real> terms) {
  with_accumulation(reductions_, [&](auto accumulate) {
    for (std::size_t first = 0; first < terms.size(); first += block) {
      combine_interleaved(sums_.block_for(rows_of_a_block), terms.data() + first,
                          std::min(block, terms.size() - first), accumulate);
    }
  });
}

template <class Real>
Real InterleavedSum<Real>::total() && {
  return with_default_nan(with_accumulation(
      reductions_, [&](auto accumulate) { return fold(std::move(sums_).totals(), accumulate); }));
}

template <class Real>
void ColumnSums<Real>::add_row(const Real* terms) {
  std::vector<Real>& block = sums_.block_for(1);
  with_accumulation(reductions_,
                    [&](auto accumulate) { combine_columns(block.data(), terms, block.size(), accumulate); });
}

template <class Real>
std::vector<Real> ColumnSums<Real>::totals() && {
  std::vector<Real> totals = std::move(sums_).totals();
  std::ranges::transform(totals, totals.begin(), with_default_nan<Real>);
  return totals;
}

template <class Real>
Real largest_of(const Real* values, std::size_t count) {
  Lanes<Real> lanes;
  lanes.fill(-std::numeric_limits<Real>::infinity());
  combine_interleaved(lanes, values, count, Larger{});
  return fold(lanes, Larger{});
}

void SumOfSquares::add(std::span<const float> values) {
  combine_interleaved(lanes_, values.data(), values.size(), AddSquare{});
}
void SumOfSquares::add(std::span<const double> values) {
  combine_interleaved(lanes_, values.data(), values.size(), AddSquare{});
}
double SumOfSquares::total() const {
  return std::accumulate(lanes_.begin(), lanes_.end(), 0.0);
}

template class InterleavedSum<float>;
template class InterleavedSum<double>;
template class ColumnSums<float>;
template class ColumnSums<double>;
template float largest_of(const float*, std::size_t);
template double largest_of(const double*, std::size_t);

}  // namespace sim
