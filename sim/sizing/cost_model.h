#pragma once
/// What a training step computes and moves, kernel by kernel, and how long a card takes at least: the
/// roofline (S. Williams, A. Waterman, D. Patterson, CACM 2009).

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "fp16/formats.h"
#include "sim/sizing/typed_network.h"

namespace sim {

enum class Phase { forward, backward };

/// "forward", "backward".
constexpr std::string_view name_of(Phase phase) {
  return phase == Phase::forward ? "forward" : "backward";
}

/// One pass over memory. Nothing is fused: every kernel reads its operands and writes its results once, as
/// frameworks do that run operator by operator.
struct Kernel {
  std::size_t op = 0;  ///< operator that it belongs to
  /// "operation"; of a linear map its "product" for the output or the gradients of input and weight, and its
  /// "bias"; "cast", "cast of weight"; "sum of gradients" where a value has several readers.
  std::string_view name;
  Phase phase = Phase::forward;
  OperatorClass operator_class = OperatorClass::element_wise;
  fp16::Format operands = fp16::binary32;  ///< of a contraction: what it multiplies
  std::uint64_t flop = 0;                  ///< conversions count as none
  std::uint64_t bytes = 0;

  /// FLOP per byte.
  double intensity() const { return static_cast<double>(flop) / static_cast<double>(bytes); }
};

/// Forward in the order of the operators, then backward. The update of the weights is left out.
std::vector<Kernel> kernels_of(const TypedNetwork& network);

/// What cards multiply where a policy narrows operands to FP8 or fewer bits.
inline constexpr fp16::Format narrowed_products = fp16::e4m3;

/// FLOP per second that a card multiplies at, in contractions of operands of a format.
struct ContractionPeak {
  fp16::Format operands;
  double flop_per_s;  ///< dense; 0: the card has no such unit
};

/// Nominal rates.
struct Card {
  std::string_view name;
  std::string_view description;
  std::string_view source;
  std::uint64_t memory_bytes;
  double bytes_per_s;
  double vector_flop_per_s;                     ///< binary32, of everything that is no contraction
  std::array<ContractionPeak, 5> contractions;  ///< from narrow to wide

  /// Where the card has no unit for the format, that of the next wider one.
  double contraction_flop_per_s(fp16::Format operands) const;
  double flop_per_s(const Kernel& kernel) const;
  /// Seconds: what takes longer of arithmetic and memory.
  double time_s(const Kernel& kernel) const;
  bool is_bound_by_memory(const Kernel& kernel) const;
};

std::span<const Card> cards();

/// Throws std::invalid_argument, naming the known ones, for an unknown name.
const Card& find_card(std::string_view name);

}  // namespace sim
