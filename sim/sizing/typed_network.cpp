#include "sim/sizing/typed_network.h"

#include <algorithm>
#include <span>

#include "sim/models/model.h"
#include "sim/ops/embedding.h"
#include "sim/tape/operation_formats.h"

namespace sim {
namespace {

class Typing {
 public:
  Typing(const Network& network, const PrecisionPolicy& policy)
      : typed_{.network = &network, .policy = &policy, .values = {}, .operators = {}, .parameters = {}} {
    for (const ParameterSpec& spec : network.parameters) {
      const fp16::Format model = model_format(policy, spec);
      typed_.parameters.push_back({.elements = element_count(spec.shape),
                                   .model = model,
                                   .master = kept_format(policy, spec),
                                   .unscaled_gradient = fp16::contains(model, policy.unscaled_gradients)
                                                            ? model
                                                            : policy.unscaled_gradients});
    }
    if (!network.input_is_indices)
      add_value({.elements = element_count(network.input), .format = policy.model});
    output_of_.push_back(0);
    for (const Network::Operator& op : network.operators) add_operator(op);
  }

  TypedNetwork result() && { return std::move(typed_); }

 private:
  TypedNetwork::ValueIndex add_value(const TypedNetwork::Value& value) {
    typed_.values.push_back(value);
    return typed_.values.size() - 1;
  }

  void add_operator(const Network::Operator& op) {
    const std::size_t index = typed_.operators.size();
    TypedNetwork::Operator result;
    std::vector<fp16::Format> seen;
    bool needs_gradient = !op.parameters.empty();
    if (op.operation->operation != &embedding) {
      for (const Network::ValueIndex input : op.inputs) {
        result.inputs.push_back(output_of_[input]);
        seen.push_back(typed_.values[output_of_[input]].format);
        needs_gradient |= typed_.values[output_of_[input]].needs_gradient;
      }
    }
    for (const std::size_t parameter : op.parameters) seen.push_back(typed_.parameters[parameter].model);
    const Operation* const operation = op.operation->operation;
    const OperationFormats formats = operation == nullptr ? OperationFormats{std::nullopt, seen.front()}
                                                          : formats_of(*operation, *typed_.policy, seen);
    for (TypedNetwork::ValueIndex& input : result.inputs) {
      if (formats.inputs && typed_.values[input].format != *formats.inputs) {
        const TypedNetwork::Cast cast{input, cast_to(*formats.inputs, input, index)};
        ++typed_.values[input].consumers;
        result.casts.push_back(cast);
        input = cast.to;
      }
      ++typed_.values[input].consumers;
    }
    for (const std::size_t parameter : op.parameters) {
      const fp16::Format model = typed_.parameters[parameter].model;
      result.parameters.push_back(formats.inputs.value_or(model));
      if (result.parameters.back() != model) typed_.parameters[parameter].cast = formats.inputs;
    }
    result.output = add_value({.elements = element_count(op.shape.output),
                               .format = formats.output,
                               .needs_gradient = needs_gradient,
                               .producer = index});
    output_of_.push_back(result.output);
    typed_.operators.push_back(std::move(result));
  }

  TypedNetwork::ValueIndex cast_to(fp16::Format format, TypedNetwork::ValueIndex from, std::size_t consumer) {
    TypedNetwork::Value value = typed_.values[from];
    value.format = format;
    value.producer = consumer;
    value.consumers = 0;
    return add_value(value);
  }

  TypedNetwork typed_;
  std::vector<TypedNetwork::ValueIndex> output_of_;  ///< by Network::ValueIndex
};

}  // namespace

TypedNetwork typed(const Network& network, const PrecisionPolicy& policy) {
  return Typing(network, policy).result();
}

}  // namespace sim
