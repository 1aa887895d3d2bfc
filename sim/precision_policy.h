#pragma once
/// A precision policy says, for every role in training, which format holds it and how sums are accumulated.

#include <span>
#include <string_view>

#include "fp16/format.h"
#include "fp16/gemm.h"

namespace sim {

/// How an operation chooses the format it runs in, as in PyTorch's torch.autocast (and Apex O1's lists).
enum class AutocastClass {
  lower_precision,  ///< inputs are cast to the policy's lower-precision format (matrix products,
                    ///< convolutions)
  full_precision,   ///< inputs are cast to the policy's full-precision format (losses)
  input_type,       ///< runs in the format its inputs already have (activations, pooling)
};

struct PrecisionPolicy {
  std::string_view name;
  std::string_view description;
  /// The trained parameters as stored; wider than lower_precision, they are master weights. Optimizer state
  /// and the arithmetic of an update are FP32 in every policy; the new weight is rounded once to this format.
  fp16::Format weights;
  fp16::Format lower_precision;     ///< operands, outputs and gradients of lower_precision operations
  fp16::Format full_precision;      ///< operands, outputs and gradients of full_precision operations
  fp16::Accumulation accumulation;  ///< of matrix products, convolutions and reductions
};

/// Every policy, by name: fp32, amp, fp16.
std::span<const PrecisionPolicy> precision_policies();

/// Throws std::invalid_argument, naming the known ones, for an unknown name.
const PrecisionPolicy& find_precision_policy(std::string_view name);

}  // namespace sim
