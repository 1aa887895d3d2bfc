#include "sim/sizing/tape_memory.h"

#include <algorithm>
#include <span>
#include <vector>

#include "sim/sizing/memory_model.h"

namespace sim {
namespace {

std::uint64_t bytes_of(std::uint64_t elements, fp16::Format format) {
  return elements * static_cast<std::uint64_t>(format.size_bytes());
}

/// The gradients that live while backward walks through the network, as Tape::backward allocates and frees.
class BackwardWalk {
 public:
  explicit BackwardWalk(const TypedNetwork& network)
      : network_(network),
        has_gradient_(network.values.size(), false),
        parameter_has_gradient_(network.parameters.size(), false) {
    live_ = network.values.back().bytes();  // of the loss, the seed
    has_gradient_.back() = true;
    for (std::size_t i = network.operators.size(); i-- > 0;) differentiate(i);
    std::uint64_t unscaled = 0;
    for (const TypedNetwork::Parameter& parameter : network.parameters)
      unscaled += bytes_of(parameter.elements, parameter.unscaled_gradient);
    peak_ = std::max(peak_, live_ + unscaled);
  }

  std::uint64_t peak() const { return peak_; }

 private:
  void allocate(std::uint64_t bytes) {
    live_ += bytes;
    peak_ = std::max(peak_, live_);
  }

  /// Hands a fresh gradient to a value; to one that has a gradient already it is added, and freed.
  void hand_to(TypedNetwork::ValueIndex value) {
    if (has_gradient_[value]) live_ -= network_.values[value].bytes();
    has_gradient_[value] = true;
  }
  void hand_to_parameter(std::size_t parameter) {
    if (parameter_has_gradient_[parameter])
      live_ -= bytes_of(network_.parameters[parameter].elements, network_.parameters[parameter].model);
    parameter_has_gradient_[parameter] = true;
  }

  void differentiate(std::size_t index) {
    const Network::Operator& op = network_.network->operators[index];
    const TypedNetwork::Operator& typed = network_.operators[index];
    const TypedNetwork::Value& output = network_.values[typed.output];
    if (!output.needs_gradient || !has_gradient_[typed.output]) return;
    for (const TypedNetwork::ValueIndex input : typed.inputs) {
      if (network_.values[input].needs_gradient) allocate(network_.values[input].bytes());
    }
    for (std::size_t i = 0; i < op.parameters.size(); ++i)
      allocate(bytes_of(network_.parameters[op.parameters[i]].elements, typed.parameters[i]));
    for (const TypedNetwork::ValueIndex input : typed.inputs) {
      if (network_.values[input].needs_gradient) hand_to(input);
    }
    for (std::size_t i = 0; i < op.parameters.size(); ++i) {
      if (typed.parameters[i] == network_.parameters[op.parameters[i]].model)
        hand_to_parameter(op.parameters[i]);
    }
    const Operation* operation = op.operation->operation;
    const bool is_site = operation != nullptr && operation->is_layer && !op.parameters.empty();
    if (!is_site) live_ -= output.bytes();
    undo_casts(op, typed);
  }

  /// In the reverse of their order on the tape: parameters come after other inputs.
  void undo_casts(const Network::Operator& op, const TypedNetwork::Operator& typed) {
    for (std::size_t i = op.parameters.size(); i-- > 0;) {
      const TypedNetwork::Parameter& parameter = network_.parameters[op.parameters[i]];
      if (typed.parameters[i] == parameter.model) continue;
      allocate(bytes_of(parameter.elements, parameter.model));
      hand_to_parameter(op.parameters[i]);
      live_ -= bytes_of(parameter.elements, typed.parameters[i]);
    }
    for (std::size_t i = typed.casts.size(); i-- > 0;) {
      const auto [from, to] = typed.casts[i];
      if (!network_.values[from].needs_gradient) continue;
      allocate(network_.values[from].bytes());
      hand_to(from);
      live_ -= network_.values[to].bytes();
    }
  }

  const TypedNetwork& network_;
  std::vector<bool> has_gradient_, parameter_has_gradient_;
  std::uint64_t live_ = 0, peak_ = 0;
};

}  // namespace

TapeMemory tape_memory(const TypedNetwork& network) {
  TapeMemory memory{.gradients = BackwardWalk(network).peak()};
  for (const TypedNetwork::Value& value : network.values) memory.activations += value.bytes();
  for (const TypedNetwork::Parameter& parameter : network.parameters) {
    if (parameter.cast) memory.activations += bytes_of(parameter.elements, *parameter.cast);
  }
  for (const Network::Operator& op : network.network->operators)
    memory.activations += saved_bytes(network, op);
  return memory;
}

}  // namespace sim
