#include "sim/sizing/memory_model.h"

#include <algorithm>
#include <memory>
#include <optional>

#include "sim/optimizers/registry.h"

namespace sim {
namespace {

std::uint64_t bytes_of(std::uint64_t elements, fp16::Format format) {
  return elements * static_cast<std::uint64_t>(format.size_bytes());
}

/// The stretch that an operator is recomputed with: none, or operators of one repetition of a block.
std::optional<std::size_t> stretch_of(const Network::Operator& op, Recomputation recomputation) {
  const bool recomputed = (recomputation == Recomputation::full && op.in_checkpoint) ||
                          (recomputation == Recomputation::selective && op.recompute);
  return recomputed ? std::optional(op.block) : std::nullopt;
}

/// Decides what is kept, operator by operator.
class Keeping {
 public:
  Keeping(const TypedNetwork& network, Recomputation recomputation)
      : network_(network), recomputation_(recomputation), is_kept_(network.values.size(), false) {
    result_.of_operators.resize(network.operators.size());
    for (std::size_t i = 0; i < network.operators.size(); ++i) visit(i);
    // A value that enters a stretch and is kept, or that one after it keeps, is not recomputed.
    for (const auto& [stretch, values] : recomputed_values_) {
      for (const TypedNetwork::ValueIndex value : values) {
        if (!is_kept_[value]) recomputed_bytes_[stretch] += network.values[value].bytes();
      }
    }
    for (const auto& [stretch, bytes] : recomputed_bytes_)
      result_.recomputed = std::max(result_.recomputed, bytes);
  }

  Activations result() && { return std::move(result_); }

 private:
  void visit(std::size_t index) {
    const Network::Operator& op = network_.network->operators[index];
    const TypedNetwork::Operator& typed = network_.operators[index];
    const std::optional<std::size_t> stretch = stretch_of(op, recomputation_);
    std::vector<TypedNetwork::ValueIndex> needed;
    if (op.operation->keeps_inputs) needed = typed.inputs;
    if (op.operation->keeps_output) needed.push_back(typed.output);
    if (!stretch) {
      for (const TypedNetwork::ValueIndex value : needed) keep(value, index);
      result_.of_operators[index].saved = saved_bytes(network_, op);
      result_.of_operators[index].masks = op.operation->mask_bytes(op.shape);
      return;
    }
    for (const TypedNetwork::Cast& cast : typed.casts) keep_if_entering(cast.from, *stretch, index);
    for (const TypedNetwork::ValueIndex input : typed.inputs) keep_if_entering(input, *stretch, index);
    std::vector<TypedNetwork::ValueIndex>& recomputed = recomputed_values_[*stretch];
    for (const TypedNetwork::ValueIndex value : needed) {
      if (std::ranges::find(recomputed, value) == recomputed.end()) recomputed.push_back(value);
    }
    recomputed_bytes_[*stretch] += saved_bytes(network_, op) + op.operation->mask_bytes(op.shape);
  }

  /// The recomputation starts from what was computed outside of it.
  void keep_if_entering(TypedNetwork::ValueIndex value, std::size_t stretch, std::size_t consumer) {
    const std::optional<std::size_t> producer = network_.values[value].producer;
    if (!producer || stretch_of(network_.network->operators[*producer], recomputation_) != stretch)
      keep(value, consumer);
  }

  void keep(TypedNetwork::ValueIndex value, std::size_t consumer) {
    if (is_kept_[value]) return;
    is_kept_[value] = true;
    result_.of_operators[consumer].values += network_.values[value].bytes();
  }

  const TypedNetwork& network_;
  Recomputation recomputation_;
  std::vector<bool> is_kept_;
  std::map<std::size_t, std::vector<TypedNetwork::ValueIndex>> recomputed_values_;  ///< by stretch
  std::map<std::size_t, std::uint64_t> recomputed_bytes_;
  Activations result_;
};

constexpr std::array roles{MemoryRoleOfStep{"weights", &StepMemory::weights},
                           MemoryRoleOfStep{"cast_weights", &StepMemory::cast_weights},
                           MemoryRoleOfStep{"master_weights", &StepMemory::master_weights},
                           MemoryRoleOfStep{"gradients", &StepMemory::gradients},
                           MemoryRoleOfStep{"unscaled_gradients", &StepMemory::unscaled_gradients},
                           MemoryRoleOfStep{"optimizer_state", &StepMemory::optimizer_state},
                           MemoryRoleOfStep{"buffers", &StepMemory::buffers},
                           MemoryRoleOfStep{"activations", &StepMemory::activations}};

std::uint64_t buffer_bytes(const TypedNetwork& network) {
  const PrecisionPolicy& policy = *network.policy;
  std::uint64_t bytes = 0;
  for (const ParameterSpec& buffer : network.network->buffers)
    bytes +=
        bytes_of(element_count(buffer.shape), policy.keep_batchnorm_fp32 ? fp16::binary32 : policy.model);
  return bytes;
}

}  // namespace

std::string_view name_of(Recomputation recomputation) {
  switch (recomputation) {
    case Recomputation::none:
      return "none";
    case Recomputation::selective:
      return "selective";
    case Recomputation::full:
      return "full";
  }
  return {};
}

ActivationBytes& ActivationBytes::operator+=(const ActivationBytes& other) {
  values += other.values;
  saved += other.saved;
  masks += other.masks;
  return *this;
}

ActivationBytes Activations::kept() const {
  ActivationBytes sum;
  for (const ActivationBytes& bytes : of_operators) sum += bytes;
  return sum;
}

std::uint64_t saved_bytes(const TypedNetwork& network, const Network::Operator& op) {
  const bool binary64 = network.policy->full_precision == fp16::binary64;
  return bytes_of(op.operation->saved_elements(op.shape), binary64 ? fp16::binary64 : fp16::binary32);
}

Activations activations(const TypedNetwork& network, Recomputation recomputation) {
  return Keeping(network, recomputation).result();
}

std::uint64_t kept_for_backward(const TypedNetwork& network) {
  std::uint64_t bytes = activations(network).total();
  for (std::size_t i = 0; i < network.operators.size(); ++i) {
    const Network::Operator& op = network.network->operators[i];
    const bool hands_on = std::ranges::any_of(
        network.operators[i].inputs, [&](std::size_t input) { return network.values[input].needs_gradient; });
    if (op.operation->operator_class != OperatorClass::tensor_contraction || op.parameters.empty() ||
        !hands_on)
      continue;
    const TypedNetwork::Parameter& weight = network.parameters[op.parameters.front()];
    if (weight.cast) bytes += bytes_of(weight.elements, *weight.cast);
  }
  return bytes;
}

OptimizerState::OptimizerState(const names::Spec& optimizer, const PrecisionPolicy& policy)
    : spec_(optimizer), arithmetic_(policy.update_arithmetic(0, 1)) {
  allocated(1);
}

std::uint64_t OptimizerState::allocated(std::uint64_t elements) const {
  const std::unique_ptr<Optimizer> optimizer =
      make_optimizer(spec_.name, names::numeric_options(spec_), arithmetic_);
  optimizer->allocate(0, elements);
  return optimizer->state_bytes();
}

std::uint64_t OptimizerState::bytes(std::uint64_t elements) {
  if (const auto found = known_.find(elements); found != known_.end()) return found->second;
  constexpr std::uint64_t block = DynamicMap::block, largest_probe = 32 * block;
  std::uint64_t bytes = 0;
  if (elements <= largest_probe) {
    bytes = allocated(elements);
  } else {
    const std::uint64_t probe = largest_probe - block + elements % block;
    bytes = allocated(probe) + (elements - probe) / block * (allocated(probe + block) - allocated(probe));
  }
  return known_[elements] = bytes;
}

std::uint64_t StepMemory::fixed() const {
  return weights + cast_weights + master_weights + gradients + unscaled_gradients + optimizer_state + buffers;
}

std::span<const MemoryRoleOfStep> step_roles() {
  return roles;
}

StepMemory step_memory(const TypedNetwork& network, const names::Spec& optimizer,
                       Recomputation recomputation) {
  OptimizerState state(optimizer, *network.policy);
  StepMemory memory{.buffers = buffer_bytes(network),
                    .activations = activations(network, recomputation).total()};
  for (const TypedNetwork::Parameter& parameter : network.parameters) {
    const std::uint64_t n = parameter.elements;
    memory.weights += bytes_of(n, parameter.model);
    if (parameter.cast) memory.cast_weights += bytes_of(n, *parameter.cast);
    if (parameter.master != parameter.model) memory.master_weights += bytes_of(n, parameter.master);
    memory.gradients += bytes_of(n, parameter.model);
    if (parameter.unscaled_gradient != parameter.model)
      memory.unscaled_gradients += bytes_of(n, parameter.unscaled_gradient);
    memory.optimizer_state += state.bytes(n);
  }
  return memory;
}

LargestBatch largest_batch(const NetworkDescription& description,
                           const std::map<std::string, std::uint64_t>& symbols,
                           const FittingOptions& options) {
  const auto memory_at = [&](std::uint64_t batch) {
    std::map<std::string, std::uint64_t> bound = symbols;
    bound["batch"] = batch;
    const Network network = network_of(description, bound);
    return step_memory(typed(network, options.policy), options.optimizer, options.recomputation);
  };
  LargestBatch found{.batch = 0, .memory = memory_at(1)};
  std::uint64_t too_large = largest_tried_batch + 1;
  const auto try_batch = [&](std::uint64_t batch) {
    const StepMemory memory = memory_at(batch);
    if (memory.total() <= options.bytes) {
      found = {.batch = batch, .memory = memory};
    } else {
      too_large = batch;
    }
  };
  for (std::uint64_t batch = 1; batch < too_large; batch *= 2) try_batch(batch);
  while (found.batch + 1 < too_large) try_batch(found.batch + (too_large - found.batch) / 2);
  return found;
}

}  // namespace sim
