#pragma once
/// The order in which a carrier of messages sums arrays, which it does not tell and which is found by probing.

#include <cstddef>
#include <functional>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "fp16/summation_tree.h"
#include "sim/trainer/allreduce.h"
#include "sim/trainer/wire.h"

namespace sim {

class AllReduceArithmetic;

/// The order of the sums of arrays of one length, of which parts may be summed in different orders.
struct RevealedOrder {
  struct Piece {
    std::size_t end;  ///< behind its last element; it begins where the piece before ends
    fp16::SummationTree tree;
    bool operator==(const Piece&) const = default;
  };
  std::vector<Piece> pieces;

  bool operator==(const RevealedOrder&) const = default;
  std::size_t workers() const { return pieces.empty() ? 0 : pieces.front().tree.leaves; }
  std::size_t elements() const { return pieces.empty() ? 0 : pieces.back().end; }
  /// "0-2: ((0+1)+2); 3-4: (0+(1+2))", elements from and to.
  std::string text() const;
};

/// Those of all lengths that a run sends.
struct RevealedOrders {
  std::vector<RevealedOrder> orders;
};

/// Throws std::invalid_argument where there is none.
const RevealedOrder& order_for(const RevealedOrders* orders, std::size_t workers, std::size_t elements);

/// The sums of arrays, terms[i] that of worker i, each addition as the arithmetic has it.
std::vector<float> sum_in_order(const fp16::SummationTree& tree, std::span<const std::vector<float>> terms,
                                AllReduceArithmetic& arithmetic);

/// What text() wrote. Throws std::invalid_argument for anything else.
RevealedOrder revealed_order_from(const std::string& text);

/// The sums of arrays of `elements` numbers each, all those of worker i being terms[i].
using SumOfConstants = std::function<std::vector<double>(std::span<const double> terms)>;

/// Asks `sum` as often as it takes to tell the orders of all elements apart. Throws fp16::NotATree where an element's
/// results tell none. At least one worker.
RevealedOrder reveal(const SumOfConstants& sum, std::size_t workers, std::size_t elements,
                     AllReducePrecision precision);

/// Sums of a carrier that are those of no order.
struct NoOrder : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// The order of Wire::sum for so many elements of binary16, or of binary32 for fp32: probed, then held to the carrier's
/// sums of random numbers of all magnitudes, bit for bit and on every rank. All ranks call it. Throws NoOrder on
/// all of them where there is none.
RevealedOrder reveal(Wire& wire, std::size_t elements, AllReducePrecision precision);

/// Throws std::invalid_argument for what no carrier adds: bfloat16.
void require_carried(AllReducePrecision precision);

/// "ring", "recursive_doubling, rabenseifner": the orders of sim that have these trees, in this succession; "another" where
/// none has.
std::string known_names(const RevealedOrder& order);

}  // namespace sim
