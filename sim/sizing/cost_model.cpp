#include "sim/sizing/cost_model.h"

#include <algorithm>
#include <numeric>

#include "fp16/names.h"
#include "sim/ops/conv2d.h"
#include "sim/ops/embedding.h"
#include "sim/ops/linear.h"
#include "sim/sizing/memory_model.h"

namespace sim {
namespace {

constexpr std::uint64_t gib(std::uint64_t count) {
  return count << 30;
}

constexpr std::array<ContractionPeak, 5> peaks(double fp8, double bf16, double half, double fp32,
                                               double fp64) {
  return {{{fp16::e4m3, fp8},
           {fp16::bfloat16, bf16},
           {fp16::binary16, half},
           {fp16::binary32, fp32},
           {fp16::binary64, fp64}}};
}

/// binary32 products are those of the vector units: TF32 is another format.
constexpr std::array rows{
    Card{.name = "v100",
         .description = "NVIDIA Tesla V100 SXM2, 16 GB",
         .source = "NVIDIA Tesla V100 GPU architecture, WP-08608-001, table 1",
         .memory_bytes = gib(16),
         .bytes_per_s = 900e9,
         .vector_flop_per_s = 15.7e12,
         .contractions = peaks(0, 0, 125e12, 15.7e12, 7.8e12)},
    Card{.name = "v100-32gb",
         .description = "NVIDIA Tesla V100 SXM2, 32 GB",
         .source = "NVIDIA V100 datasheet, January 2020",
         .memory_bytes = gib(32),
         .bytes_per_s = 900e9,
         .vector_flop_per_s = 15.7e12,
         .contractions = peaks(0, 0, 125e12, 15.7e12, 7.8e12)},
    Card{.name = "a100",
         .description = "NVIDIA A100 SXM4, 40 GB",
         .source = "NVIDIA A100 datasheet, June 2021",
         .memory_bytes = gib(40),
         .bytes_per_s = 1555e9,
         .vector_flop_per_s = 19.5e12,
         .contractions = peaks(0, 312e12, 312e12, 19.5e12, 19.5e12)},
    Card{.name = "a100-80gb",
         .description = "NVIDIA A100 SXM4, 80 GB",
         .source = "NVIDIA A100 datasheet, June 2021",
         .memory_bytes = gib(80),
         .bytes_per_s = 2039e9,
         .vector_flop_per_s = 19.5e12,
         .contractions = peaks(0, 312e12, 312e12, 19.5e12, 19.5e12)},
    Card{.name = "h100",
         .description = "NVIDIA H100 SXM5, 80 GB",
         .source = "NVIDIA H100 datasheet, dense rates",
         .memory_bytes = gib(80),
         .bytes_per_s = 3350e9,
         .vector_flop_per_s = 66.9e12,
         .contractions = peaks(1978.9e12, 989.4e12, 989.4e12, 66.9e12, 66.9e12)},
};
static_assert(names::has_unique_names(rows));

class KernelList {
 public:
  explicit KernelList(const TypedNetwork& network)
      : network_(network), is_weight_cast_(network.parameters.size()) {}

  std::vector<Kernel> kernels() && {
    for (op_ = 0; op_ < network_.operators.size(); ++op_) forward();
    for (op_ = network_.operators.size(); op_-- > 0;) backward();
    return std::move(kernels_);
  }

 private:
  const Network::Operator& described() const { return network_.network->operators[op_]; }
  const NetworkOperation& operation() const { return *described().operation; }
  const TypedNetwork::Operator& typed() const { return network_.operators[op_]; }
  const TypedNetwork::Value& value(TypedNetwork::ValueIndex index) const { return network_.values[index]; }
  bool is_contraction() const { return operation().operator_class == OperatorClass::tensor_contraction; }
  bool is_embedding() const { return operation().operation == &embedding; }

  void add(std::string_view name, Phase phase, OperatorClass operator_class, std::uint64_t flop,
           std::uint64_t bytes) {
    kernels_.push_back({.op = op_,
                        .name = name,
                        .phase = phase,
                        .operator_class = operator_class,
                        .operands = product_format(),
                        .flop = flop,
                        .bytes = bytes});
  }

  /// FP8 and narrower formats where the policy narrows the operands of this operation.
  fp16::Format product_format() const {
    const OperandFormat& narrow = network_.policy->operands.activations;
    const Operation* operation = this->operation().operation;
    if (narrow.kind != OperandFormat::Kind::as_stored && (operation == &linear || operation == &conv2d))
      return narrowed_products;
    return typed().inputs.empty() ? value(typed().output).format : value(typed().inputs.front()).format;
  }

  std::uint64_t parameter_bytes(std::size_t number) const {
    return network_.parameters[described().parameters[number]].elements *
           static_cast<std::uint64_t>(typed().parameters[number].size_bytes());
  }

  std::uint64_t saved_and_mask_bytes() const {
    return saved_bytes(network_, described()) + operation().mask_bytes(described().shape);
  }

  std::uint64_t input_bytes() const {
    std::uint64_t bytes = 0;
    for (const TypedNetwork::ValueIndex input : typed().inputs) bytes += value(input).bytes();
    return bytes;
  }

  /// Bytes of all parameters; an embedding looks at as many of its rows as it has outputs.
  std::uint64_t all_parameter_bytes() const {
    if (is_embedding()) return value(typed().output).bytes();
    std::uint64_t bytes = 0;
    for (std::size_t i = 0; i < described().parameters.size(); ++i) bytes += parameter_bytes(i);
    return bytes;
  }

  void cast_weights(Phase phase) {
    for (std::size_t i = 0; i < described().parameters.size(); ++i) {
      const std::size_t parameter = described().parameters[i];
      const TypedNetwork::Parameter& row = network_.parameters[parameter];
      bool& is_done = is_weight_cast_[parameter][static_cast<std::size_t>(phase)];
      if (is_done || !row.cast || typed().parameters[i] == row.model) continue;
      is_done = true;
      add("cast of weight", phase, OperatorClass::element_wise, 0,
          row.elements * static_cast<std::uint64_t>(row.model.size_bytes() + row.cast->size_bytes()));
    }
  }

  void forward() {
    for (const TypedNetwork::Cast& cast : typed().casts)
      add("cast", Phase::forward, OperatorClass::element_wise, 0,
          value(cast.from).bytes() + value(cast.to).bytes());
    cast_weights(Phase::forward);
    const TypedNetwork::Value& output = value(typed().output);
    if (!is_contraction()) {
      add("operation", Phase::forward, operation().operator_class,
          operation().forward_flop(described().shape),
          input_bytes() + all_parameter_bytes() + output.bytes() + saved_and_mask_bytes());
      return;
    }
    const bool has_weight = !described().parameters.empty();
    add("product", Phase::forward, OperatorClass::tensor_contraction, product_flop(),
        input_bytes() + (has_weight ? parameter_bytes(0) : 0) + output.bytes());
    if (described().parameters.size() > 1)
      add("bias", Phase::forward, OperatorClass::element_wise, output.elements,
          2 * output.bytes() + parameter_bytes(1));
  }

  std::uint64_t product_flop() const {
    return 2 * operation().product_terms(described().shape) * value(typed().output).elements;
  }

  void backward() {
    sum_gradients();
    if (!value(typed().output).needs_gradient || operation().passes_gradient_on) {
      cast_gradients();
      return;
    }
    if (is_contraction()) {
      differentiate_product();
    } else {
      differentiate();
    }
    cast_gradients();
  }

  /// Where the output has several readers.
  void sum_gradients() {
    const TypedNetwork::Value& output = value(typed().output);
    for (std::size_t more = 1; output.needs_gradient && more < output.consumers; ++more)
      add("sum of gradients", Phase::backward, OperatorClass::element_wise, output.elements,
          3 * output.bytes());
  }

  void cast_gradients() {
    for (const TypedNetwork::Cast& cast : typed().casts) {
      if (value(cast.from).needs_gradient)
        add("cast", Phase::backward, OperatorClass::element_wise, 0,
            value(cast.from).bytes() + value(cast.to).bytes());
    }
    cast_weights(Phase::backward);
  }

  void differentiate_product() {
    const TypedNetwork::Value& output = value(typed().output);
    std::vector<std::uint64_t> operands;
    std::vector<bool> wanted;
    for (const TypedNetwork::ValueIndex input : typed().inputs) {
      operands.push_back(value(input).bytes());
      wanted.push_back(value(input).needs_gradient);
    }
    if (!described().parameters.empty()) {
      operands.push_back(parameter_bytes(0));
      wanted.push_back(true);
    }
    const std::uint64_t all = std::accumulate(operands.begin(), operands.end(), output.bytes());
    for (std::size_t i = 0; i < operands.size(); ++i) {
      // Reads the output's gradient and the other operand, writes what is as large as this one.
      if (wanted[i]) add("product", Phase::backward, OperatorClass::tensor_contraction, product_flop(), all);
    }
    if (described().parameters.size() > 1)
      add("bias", Phase::backward, OperatorClass::element_wise, output.elements,
          output.bytes() + parameter_bytes(1));
  }

  void differentiate() {
    const TypedNetwork::Value& output = value(typed().output);
    std::uint64_t bytes = output.bytes() + saved_and_mask_bytes() + all_parameter_bytes();
    if (operation().keeps_inputs) bytes += input_bytes();
    if (operation().keeps_output) bytes += output.bytes();
    for (const TypedNetwork::ValueIndex input : typed().inputs) {
      if (value(input).needs_gradient) bytes += value(input).bytes();
    }
    add("operation", Phase::backward, operation().operator_class,
        operation().backward_flop(described().shape), bytes);
  }

  const TypedNetwork& network_;
  std::vector<std::array<bool, 2>> is_weight_cast_;  ///< by parameter and phase
  std::size_t op_ = 0;
  std::vector<Kernel> kernels_;
};

}  // namespace

std::vector<Kernel> kernels_of(const TypedNetwork& network) {
  return KernelList(network).kernels();
}

double Card::contraction_flop_per_s(fp16::Format operands) const {
  const auto row = std::ranges::find_if(contractions, [&](const ContractionPeak& peak) {
    return peak.flop_per_s > 0 && fp16::contains(peak.operands, operands);
  });
  return row->flop_per_s;
}

double Card::flop_per_s(const Kernel& kernel) const {
  return kernel.operator_class == OperatorClass::tensor_contraction ? contraction_flop_per_s(kernel.operands)
                                                                    : vector_flop_per_s;
}

double Card::time_s(const Kernel& kernel) const {
  return std::max(static_cast<double>(kernel.flop) / flop_per_s(kernel),
                  static_cast<double>(kernel.bytes) / bytes_per_s);
}

bool Card::is_bound_by_memory(const Kernel& kernel) const {
  return static_cast<double>(kernel.flop) / flop_per_s(kernel) <
         static_cast<double>(kernel.bytes) / bytes_per_s;
}

std::span<const Card> cards() {
  return rows;
}

const Card& find_card(std::string_view name) {
  return names::find_by_name(rows, "card", name);
}

}  // namespace sim
