#pragma once
/// How many bytes a training step of a network takes, by what they are for, by formula: nothing is allocated
/// but small probes of an optimizer's state.
///
/// Counted is what a framework must hold at the end of the forward pass and over the update. Left out are
/// temporaries (the results of operators until the next has read them, gradients of activations on their way,
/// a convolution's workspace, FP8 copies of operands), what an allocator adds, and what the device's own
/// kernels take.

#include <array>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fp16/names.h"
#include "sim/sizing/typed_network.h"

namespace sim {

enum class Recomputation {
  none,
  selective,  ///< of the operators that say so: of a transformer the attention's core
  full,       ///< of all in the blocks that repeat: what enters each repetition is kept
};
inline constexpr std::array recomputations{Recomputation::none, Recomputation::selective,
                                           Recomputation::full};

/// "none", "selective", "full".
std::string_view name_of(Recomputation recomputation);

/// What one operator has kept for backward. A value that several need counts for the first of them.
struct ActivationBytes {
  std::uint64_t values = 0;
  std::uint64_t saved = 0;  ///< NetworkOperation::saved_elements
  std::uint64_t masks = 0;  ///< NetworkOperation::mask_bytes

  std::uint64_t total() const { return values + saved + masks; }
  ActivationBytes& operator+=(const ActivationBytes& other);
};

struct Activations {
  std::vector<ActivationBytes> of_operators;  ///< by operator
  /// What the largest recomputed stretch has again while it is in backward.
  std::uint64_t recomputed = 0;

  ActivationBytes kept() const;
  std::uint64_t total() const { return kept().total() + recomputed; }
};

Activations activations(const TypedNetwork& network, Recomputation recomputation = Recomputation::none);

/// Bytes that backward finds from the forward pass, without recomputation: activations, and casts of the weights
/// by which a contraction multiplies the gradient it hands on. Other casts, of biases and of weights whose layer
/// has no gradient to hand on (a first layer), end with autocast's cache.
std::uint64_t kept_for_backward(const TypedNetwork& network);

/// Bytes of moments that an optimizer keeps for a parameter of some size: asked of the optimizer itself, and
/// of large parameters extrapolated from block to block (DynamicMap::block), which is exact for a state that
/// is the same for every block.
class OptimizerState {
 public:
  /// Throws std::invalid_argument as make_optimizer() does.
  OptimizerState(const names::Spec& optimizer, const PrecisionPolicy& policy);
  std::uint64_t bytes(std::uint64_t elements);

 private:
  std::uint64_t allocated(std::uint64_t elements) const;

  names::Spec spec_;
  UpdateArithmetic arithmetic_;
  std::map<std::uint64_t, std::uint64_t> known_;
};

/// In bytes.
struct StepMemory {
  std::uint64_t weights = 0;         ///< in the format of the model
  std::uint64_t cast_weights = 0;    ///< copies in autocast's cache at the end of the forward pass
  std::uint64_t master_weights = 0;  ///< where the optimizer changes others than those of the model
  std::uint64_t gradients = 0;       ///< of the parameters, as backward gives them
  /// Gradients in a wider format, where unscaling gives another; else it happens in place.
  std::uint64_t unscaled_gradients = 0;
  std::uint64_t optimizer_state = 0;
  std::uint64_t buffers = 0;
  std::uint64_t activations = 0;  ///< with what is recomputed at a time

  /// What does not depend on the batch.
  std::uint64_t fixed() const;
  std::uint64_t total() const { return fixed() + activations; }
  /// Weights as the forward pass sees them.
  std::uint64_t inference() const { return weights + cast_weights; }
};

struct MemoryRoleOfStep {
  std::string_view name;
  std::uint64_t StepMemory::*bytes;
};
/// Bytes of what an operator saves besides values, but for masks.
std::uint64_t saved_bytes(const TypedNetwork& network, const Network::Operator& op);

/// Every field of StepMemory, by name.
std::span<const MemoryRoleOfStep> step_roles();

StepMemory step_memory(const TypedNetwork& network, const names::Spec& optimizer,
                       Recomputation recomputation = Recomputation::none);

/// The largest batch that is tried.
inline constexpr std::uint64_t largest_tried_batch = std::uint64_t{1} << 20;

/// The largest value of the symbol `batch` whose step fits into so many bytes, up to largest_tried_batch; 0: not even
/// one example does.
struct LargestBatch {
  std::uint64_t batch = 0;
  StepMemory memory = {};  ///< at that batch, or at one example where none fits
};
struct FittingOptions {
  const PrecisionPolicy& policy;
  names::Spec optimizer;
  Recomputation recomputation = Recomputation::none;
  std::uint64_t bytes = 0;
};
/// `symbols` are those of network_of(). Throws as network_of() does, and std::invalid_argument for a network
/// without a symbol `batch`.
LargestBatch largest_batch(const NetworkDescription& description,
                           const std::map<std::string, std::uint64_t>& symbols,
                           const FittingOptions& options);

}  // namespace sim
