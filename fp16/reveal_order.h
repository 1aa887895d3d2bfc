#pragma once
/// The order in which a black box sums, told from its results alone.
///
/// A large M at i, -M at j and ones elsewhere: what is added to the side of M or -M before the two meet is absorbed, what
/// is added later counts. The result therefore says how many terms lie below the node where i and j meet, and these
/// numbers for all pairs are the tree (FPRev: Xie et al., USENIX ATC 2025). It holds where a sum's order does not depend on
/// its values, M absorbs any sum of ones, and zeros do not matter.

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <map>
#include <numeric>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "format.h"
#include "formats.h"
#include "summation_tree.h"

namespace fp16 {

/// What a box is asked with. All are numbers of the box's format.
struct RevealMasks {
  double large;           ///< M
  double one;             ///< what the others are
  std::size_t most_ones;  ///< as many are counted exactly; more go in blocks, a call each
};

/// For terms and results of a format that are summed in it or in binary32 (of binary32: or in binary64). The ones are the
/// smallest subnormal, so that as many are counted as the format has significands. M absorbs as many as a quarter of its
/// last digit holds: what lies below M, a power of two, is twice as dense as what lies above.
constexpr RevealMasks masks_for(const Format& format) {
  if (format.precision >= binary32.precision)
    return {.large = detail::power_of_two(format.emax() - 27), .one = 1, .most_ones = std::size_t{1} << 24};
  const bool is_wide = format.exponent_bits >= 8;  // its subnormals lie below what others keep
  const int absorbed = is_wide ? format.precision : format.emax() - format.emin() - 2;  // log2
  return {.large = detail::power_of_two(is_wide ? format.emax() - 27 : format.emax()),
          .one = is_wide ? 1 : format.min_subnormal(),
          .most_ones = std::size_t{1} << std::min(format.precision, absorbed)};
}

/// The results of a box that are no counts: it is no sum of its terms, or has another order each time.
struct NotATree : std::runtime_error {
  using std::runtime_error::runtime_error;
};

namespace detail {

template <class Sum>
class OrderProbe {
 public:
  OrderProbe(Sum& sum, std::size_t leaves, const RevealMasks& masks)
      : sum_(sum), masks_(masks), terms_(leaves) {}

  /// How many leaves lie below the node where i and j meet.
  std::size_t leaves_below(std::size_t i, std::size_t j) {
    std::size_t counted = 0;
    for (std::size_t first = 0; first < terms_.size(); first += masks_.most_ones) {
      std::fill(terms_.begin(), terms_.end(), 0.0);
      const std::size_t end = std::min(terms_.size(), first + masks_.most_ones);
      std::fill(terms_.begin() + static_cast<std::ptrdiff_t>(first),
                terms_.begin() + static_cast<std::ptrdiff_t>(end), masks_.one);
      terms_[i] = masks_.large;
      terms_[j] = -masks_.large;
      counted += count(sum_(std::span<const double>(terms_)), i, j);
    }
    return terms_.size() - counted;
  }

 private:
  std::size_t count(double result, std::size_t i, std::size_t j) const {
    const double ones = result / masks_.one;
    if (ones >= 0 && ones <= static_cast<double>(terms_.size() - 2) && ones == std::floor(ones))
      return static_cast<std::size_t>(ones);
    throw NotATree("with " + text(masks_.large) + " at " + std::to_string(i) + ", its negative at " +
                   std::to_string(j) + " and " + text(masks_.one) + " elsewhere the result is " +
                   text(result) +
                   ", which counts no terms: it is no sum of them, or absorbs less than its format does");
  }

  static std::string text(double value) {
    char digits[32];
    return {digits, std::to_chars(digits, digits + sizeof digits, value).ptr};
  }

  Sum& sum_;
  RevealMasks masks_;
  std::vector<double> terms_;
};

/// Where each leaf meets the first leaf of its set.
using Meetings = std::map<std::size_t, std::size_t>;

template <class Probe>
class TreeBuilder {
 public:
  TreeBuilder(Probe& probe, std::size_t leaves) : probe_(probe) { tree_.leaves = leaves; }

  SummationTree build() {
    if (tree_.leaves <= 1) return std::move(tree_);
    const Meetings meetings = meetings_of(0, all_but_first());
    const bool absorbs_nothing =
        std::ranges::all_of(meetings, [](const auto& meeting) { return meeting.second == 2; });
    if (absorbs_nothing && tree_.leaves > 2) {
      tree_.nodes.emplace_back(tree_.leaves);
      std::iota(tree_.nodes.back().begin(), tree_.nodes.back().end(), 0);
    } else {
      add(0, meetings);
    }
    return std::move(tree_);
  }

 private:
  struct Part {
    std::size_t node;    ///< a leaf, or leaves + its place among the nodes
    std::size_t leaves;  ///< below it
  };

  std::vector<std::size_t> all_but_first() const {
    std::vector<std::size_t> rest(tree_.leaves - 1);
    std::iota(rest.begin(), rest.end(), 1);
    return rest;
  }

  Meetings meetings_of(std::size_t first, std::span<const std::size_t> others) {
    Meetings meetings;
    for (const std::size_t other : others) meetings[other] = probe_.leaves_below(first, other);
    return meetings;
  }

  /// The part of `first` and of all that meet it.
  Part add(std::size_t first, const Meetings& meetings) {
    std::map<std::size_t, std::vector<std::size_t>> by_size;
    for (const auto& [leaf, size] : meetings) by_size[size].push_back(leaf);
    Part part{first, 1};
    for (auto& [size, met] : by_size) {
      std::vector<std::size_t> children{part.node};
      std::size_t below = part.leaves;
      while (!met.empty()) {
        const Part child = take_part(met, size);
        children.push_back(child.node);
        below += child.leaves;
      }
      if (below != size)
        throw NotATree("leaf " + std::to_string(first) + " meets " + std::to_string(below) +
                       " leaves where " + std::to_string(size) +
                       " should be: the order changes from call to call, or with the values");
      tree_.nodes.push_back(std::move(children));
      part = {tree_.leaves + tree_.nodes.size() - 1, below};
    }
    return part;
  }

  /// The first of these leaves with those that it meets below a node of so many leaves.
  Part take_part(std::vector<std::size_t>& leaves, std::size_t size) {
    const std::size_t first = leaves.front();
    Meetings meetings = meetings_of(first, std::span(leaves).subspan(1));
    std::erase_if(meetings, [size](const auto& meeting) { return meeting.second >= size; });
    std::erase_if(leaves, [&](std::size_t leaf) { return leaf == first || meetings.contains(leaf); });
    return add(first, meetings);
  }

  Probe& probe_;
  SummationTree tree_;
};

}  // namespace detail

/// The tree of sum(terms), a callable that takes a span of `leaves` doubles, numbers of the format that the masks are of,
/// and returns a number. It is called at most leaves^2 / 2 times, and about leaves times where the order is sequential.
/// Throws NotATree where the results tell none. A box that absorbs nothing, as an exact
/// accumulator or one wider than the masks assume, is one node of all terms.
template <class Sum>
SummationTree reveal_order(Sum&& sum, std::size_t leaves, const RevealMasks& masks) {
  detail::OrderProbe probe(sum, leaves, masks);
  return detail::TreeBuilder(probe, leaves).build();
}

}  // namespace fp16
