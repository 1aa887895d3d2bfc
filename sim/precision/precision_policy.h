#pragma once
/// A precision policy says, for every role in training, which format holds it, how it is rounded and how sums
/// are accumulated.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fp16/format.h"
#include "fp16/rounding.h"
#include "sim/precision/arithmetic.h"
#include "sim/precision/autocast.h"
#include "sim/precision/operand_narrowing.h"

namespace sim {

struct PrecisionPolicy {
  std::string_view name;
  std::string_view description;
  CastList casts = CastList::none;
  /// Inputs and parameters as operations see them (Apex: cast_model_type).
  fp16::Format model = fp16::binary32;
  fp16::Format lower_precision = fp16::binary32;  ///< under a cast list
  fp16::Format full_precision = fp16::binary32;   ///< under a cast list, and of losses under none
  /// Parameters and running statistics of batch norm stay in binary32 in a model of another format (Apex:
  /// keep_batchnorm_fp32).
  bool keep_batchnorm_fp32 = false;
  /// The parameters that the optimizer changes; wider than `model`, they are master weights.
  fp16::Format weights = fp16::binary32;
  /// Parameter gradients after unscaling; those of parameters that the model keeps wider stay as wide. Where
  /// an FP16 model has no master weights, unscaling writes back into FP16 and flushes a second time.
  fp16::Format unscaled_gradients = fp16::binary32;
  fp16::Format optimizer_state = fp16::binary32;
  fp16::Format update_operations = fp16::binary32;  ///< what the optimizer computes in (UpdateArithmetic)
  ProductAccumulation products = {};                ///< of linear maps
  OperandFormats operands = {};                     ///< of linear and conv2d, narrower than tensors
  fp16::Format reductions = fp16::binary32;         ///< partial sums of everything else
  fp16::Rounding activation_rounding = fp16::Rounding::nearest_even;
  fp16::Rounding gradient_rounding = fp16::Rounding::nearest_even;
  fp16::Rounding weight_rounding = fp16::Rounding::nearest_even;
  /// The scaler that the recipe comes with.
  std::string_view loss_scaling = "none";
  double static_scale = 1;  ///< of `static`

  constexpr bool has_master_weights() const { return weights != model; }
  UpdateArithmetic update_arithmetic(std::uint64_t seed, int threads) const;
  /// The recipe's scaler as a spec: "dynamic", "static:scale=128"; Apex's static ones never skip.
  std::string scaler_spec() const;
};

/// Every policy, by name.
std::span<const PrecisionPolicy> precision_policies();

/// Throws std::invalid_argument, naming the known ones, for an unknown name.
const PrecisionPolicy& find_precision_policy(std::string_view name);

/// A policy with overrides (fp16/names.h), each by the name of the role it changes:
/// - cast_model_type: the format of the model and its inputs; under a cast list binary32 alone, which changes
///   nothing
/// - keep_batchnorm_fp32: of the same, true or false; without master weights updates then run in binary32, as does their
///   state where optimizer_state says nothing else
/// - master_weights: of the same, whether the optimizer keeps FP32 weights or the model's own
/// - loss_scale: the recipe's scaler, "dynamic" or the S of a static one
/// - accumulation: of products, as product_accumulation_names()
/// - reductions, optimizer_state, update_operations: formats
/// - activation_rounding, gradient_rounding, weight_rounding: names of fp16::Rounding
///
/// Throws std::invalid_argument, naming what is allowed, for an unknown policy or override, a value that is
/// not allowed, or an override that the policy rejects (Apex O1 has no other model type, no batch norm or
/// masters to choose).
PrecisionPolicy make_precision_policy(std::string_view spec);

/// Every role of the policy and what it has, for people and manifests: {"weights", "binary32"}, ...
std::vector<std::pair<std::string, std::string>> roles_of(const PrecisionPolicy& policy);

}  // namespace sim
