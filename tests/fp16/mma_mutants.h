#pragma once
/// Wrong models of the tensor-core step, each one mistake away from the definition. The probes must tell
/// every one of them from it, and can tell none of the `equivalent_models`.

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "tests/fp16/mma_oracle.h"

namespace oracle::mma {

enum class Summation {
  fused,              ///< aligned together, added exactly
  running_alignment,  ///< the partial sum is truncated anew when a larger term comes
  addend_last,        ///< the products' sum is rounded, then c added and rounded
  chain,              ///< c + a0*b0, rounded, + a1*b1, rounded ...
  pairwise            ///< a tree over c, a0*b0, a1*b1 ..., each node rounded
};

enum class NanCode { all_ones, without_payload, of_addend };

/// The defaults are the definition.
struct Model {
  // The architecture
  int products_per_step = 0;
  int fraction_bits = 0;
  int binary32_floor = 0;
  int binary16_floor = 0;
  // Operands
  bool flush_subnormal_operands = false;
  bool flush_subnormal_addend = false;
  bool normalise_subnormal_operands = false;
  bool normalise_subnormal_addend = false;
  // Products
  bool normalise_products = false;
  bool round_products = false;              ///< to 11 bits, nearest-even
  bool overflow_binary16_products = false;  ///< with a binary16 accumulator, beyond 65504 already infinite
  // Alignment
  bool zero_products_align = false;
  bool zero_addend_aligns = false;
  bool addend_apart = false;  ///< c neither takes part in the alignment nor is truncated
  bool truncate_addend = true;
  Direction term_rounding = Direction::toward_zero;
  // The sum and its rounding
  Summation summation = Summation::fused;
  std::optional<int> integer_bits;  ///< the sum wraps at 2^(e_max + integer_bits)
  Direction binary32_rounding = Direction::toward_zero;
  Direction binary16_rounding = Direction::nearest_even;
  std::optional<Direction> by_way_of_binary32;  ///< a binary16 result is rounded so to binary32 first
  bool saturate = false;
  bool flush_subnormal_results = false;
  bool negative_zeros_add_to_negative_zero = false;
  bool zero_takes_sign_of_addend = false;
  bool underflow_to_negative_zero = false;
  // Infinities and NaNs
  NanCode nan = NanCode::all_ones;
  bool infinity_times_zero_is_zero = false;
  bool first_infinity_wins = false;
  bool infinity_beats_nan = false;
  // The chain of steps
  bool descending_steps = false;
  bool drop_incomplete_step = false;
};

/// c + a[0] * b[0] + ..., step after step.
std::uint32_t dot(const Model& model, Output output, std::span<const std::uint16_t> a,
                  std::span<const std::uint16_t> b, std::uint32_t c);

/// A row: what is changed in the model of any architecture, and the accumulators it is a mistake for.
struct Mutation {
  std::string_view name;
  std::vector<Output> outputs;
  void (*apply)(Model&);
};

extern const std::vector<Mutation> mutants;

/// Changes that no input can show; the proof of each stands beside its row.
extern const std::vector<Mutation> equivalent_models;

}  // namespace oracle::mma
