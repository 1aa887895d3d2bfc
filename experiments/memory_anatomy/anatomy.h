#pragma once
/// Where the bytes and the operations of one network's training step go.

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "experiments/memory_anatomy/networks.h"
#include "experiments/memory_anatomy/options.h"
#include "sim/sizing/cost_model.h"
#include "sim/sizing/memory_model.h"

namespace experiments::memory_anatomy {

/// The network with --batch and --sequence bound. Throws as find_network() and network_of() do.
NetworkChoice network_of(const Options& options);

/// The card with --memory-gib, --peak-tflops and --bandwidth in place of its own.
sim::Card card_of(const Options& options, const sim::PrecisionPolicy& policy);

/// What the card is called, and which of its figures the options replace.
std::string card_text(const Options& options);

/// Bytes that a weight of a linear map costs, which every policy casts, under a policy and an optimizer with
/// its options. Activations are none.
struct ParameterCost {
  std::string policy;
  std::string optimizer;
  sim::StepMemory memory;  ///< of `weights` weights
  std::uint64_t weights;

  double bytes(std::uint64_t total) const {
    return static_cast<double>(total) / static_cast<double>(weights);
  }
};
ParameterCost parameter_cost(const std::string& policy, const std::string& optimizer);

/// What one operator of the description costs, all repetitions together.
struct OperatorCost {
  std::string name;
  std::string_view kernel;
  sim::Phase phase = sim::Phase::forward;
  sim::OperatorClass operator_class = sim::OperatorClass::element_wise;
  std::uint64_t kernels = 0;
  std::uint64_t flop = 0;
  std::uint64_t bytes = 0;
  double time_s = 0;
  bool bound_by_memory = false;

  double intensity() const { return static_cast<double>(flop) / static_cast<double>(bytes); }
  double flop_per_s() const { return static_cast<double>(flop) / time_s; }
};

/// Kernels in the order of their first appearance.
std::vector<OperatorCost> operator_costs(const sim::TypedNetwork& network, const sim::Card& card);

struct ClassShare {
  std::uint64_t flop = 0;
  std::uint64_t bytes = 0;
  double time_s = 0;
  double flop_share = 0;
  double bytes_share = 0;
  double time_share = 0;
};
/// By OperatorClass.
using ClassShares = std::array<ClassShare, sim::operator_classes.size()>;

/// Shares of the whole network, or of the blocks that repeat alone.
ClassShares class_shares(const sim::TypedNetwork& network, const sim::Card& card,
                         bool repeated_blocks_only = false);

/// FLOP of contractions, forward and backward.
struct ProductFlop {
  std::uint64_t forward = 0;
  std::uint64_t backward = 0;
};
ProductFlop product_flop(const sim::TypedNetwork& network);

}  // namespace experiments::memory_anatomy
