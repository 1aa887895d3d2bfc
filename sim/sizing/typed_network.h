#pragma once
/// A network under a precision policy: the format of every value, and the casts that the tape would insert.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "sim/precision/precision_policy.h"
#include "sim/sizing/network_description.h"

namespace sim {

struct TypedNetwork {
  using ValueIndex = std::size_t;

  struct Value {
    std::uint64_t elements = 0;
    fp16::Format format = fp16::binary32;
    bool needs_gradient = false;          ///< a parameter lies upstream
    std::optional<std::size_t> producer;  ///< operator that computes it, or for which it is cast
    std::size_t consumers = 0;            ///< casts among them

    std::uint64_t bytes() const { return elements * static_cast<std::uint64_t>(format.size_bytes()); }
  };
  struct Cast {
    ValueIndex from, to;
  };
  struct Operator {
    std::vector<Cast> casts;  ///< of activations, for this operator alone
    std::vector<ValueIndex> inputs =
        {};  ///< as it sees them; without the network's input where that is indices
    ValueIndex output = 0;
    std::vector<fp16::Format> parameters;  ///< as it sees them
  };
  /// A parameter in the formats that the model and the optimizer have it in.
  struct Parameter {
    std::uint64_t elements = 0;
    fp16::Format model = fp16::binary32;  ///< and of its gradient
    fp16::Format master =
        fp16::binary32;  ///< what the optimizer changes; another than `model` is a second copy
    fp16::Format unscaled_gradient = fp16::binary32;
    std::optional<fp16::Format> cast;  ///< of the copy that autocast makes once a step
  };

  const Network* network;  ///< must outlive it
  const PrecisionPolicy* policy;
  std::vector<Value> values;  ///< the network's input first, unless that is indices
  std::vector<Operator> operators;
  std::vector<Parameter> parameters;
};

/// Network and policy must outlive the result.
TypedNetwork typed(const Network& network, const PrecisionPolicy& policy);

}  // namespace sim
