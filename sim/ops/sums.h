#pragma once
/// Sums over many terms, all in one stated order that vector units can follow.

#include <array>
#include <cstddef>
#include <functional>
#include <numeric>
#include <span>
#include <type_traits>

#include "fp16/config.h"
#include "fp16/formats.h"
#include "sim/arithmetic.h"

namespace sim {

/// `value` in the format of partial sums; doubles stay as they are.
template <class Real>
Real rounded_to(fp16::Format reductions, Real value) {
  if constexpr (std::is_same_v<Real, float>) {
    if (reductions == fp16::binary16) return rounded_to_binary16(value);
  }
  return value;
}

/// sum + term, both the term and the result rounded to binary16 if `InBinary16` (of floats only).
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

/// term(0), ..., term(count - 1) combined into 16 lanes that begin with `start`, and those into one.
template <class Real, class Combine, class Term>
FP16_VECTOR_CLONES Real reduce_interleaved(Real start, std::size_t count, Combine combine, Term term) {
  Lanes<Real> lanes;
  for (std::size_t j = 0; j < interleaved_lanes; ++j) lanes[j] = start;
  combine_interleaved(lanes, count, combine, term);
  return fold(lanes, combine);
}

/// The interleaved sum of term(0), ..., term(count - 1): 16 partial sums start from zero; term i goes to
/// partial sum i mod 16, in ascending order; at the end partial sum j takes up j + 8, then j + 4, j + 2 and
/// j + 1. Terms and partial sums are rounded to `reductions`.
template <class Real, class Term>
Real interleaved_sum(fp16::Format reductions, std::size_t count, Term term) {
  return with_accumulation(
      reductions, [&](auto accumulate) { return reduce_interleaved(Real{0}, count, accumulate, term); });
}

/// The same sum of terms that arrive in pieces, all but the last of a length that is a multiple of 16.
template <class Real>
class InterleavedSum {
 public:
  explicit InterleavedSum(fp16::Format reductions) : reductions_(reductions) {}

  void add(std::span<const Real> terms) {
    with_accumulation(reductions_, [&](auto accumulate) { add_terms(lanes_, terms, accumulate); });
  }
  Real total() const {
    return with_accumulation(reductions_, [&](auto accumulate) { return fold(lanes_, accumulate); });
  }

 private:
  template <class Accumulation>
  FP16_VECTOR_CLONES static void add_terms(Lanes<Real>& lanes, std::span<const Real> terms,
                                           Accumulation accumulate) {
    combine_interleaved(lanes, terms.size(), accumulate, [terms](std::size_t i) { return terms[i]; });
  }

  fp16::Format reductions_;
  Lanes<Real> lanes_ = {};
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

/// The interleaved sum over `count`, also a value of `reductions`.
template <class Real, class Term>
Real interleaved_mean(fp16::Format reductions, std::size_t count, Term term) {
  return rounded_to(reductions, interleaved_sum<Real>(reductions, count, term) / static_cast<Real>(count));
}

/// sums[j] = accumulate(sums[j], term(j)): one more row for sums that run down the columns.
template <class Real, class Accumulation, class Term>
FP16_VECTOR_CLONES void add_row(Real* sums, std::size_t count, Accumulation accumulate, Term term) {
  for (std::size_t j = 0; j < count; ++j) sums[j] = accumulate(sums[j], term(j));
}

}  // namespace sim
