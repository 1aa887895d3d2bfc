#pragma once
/// What an operation is: a row of functions. The tape chooses formats and allocates; the operation computes.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "sim/ops/elements.h"
#include "sim/ops/operation_options.h"
#include "sim/precision/arithmetic.h"
#include "sim/precision/autocast.h"
#include "sim/precision/operand_narrowing.h"
#include "sim/precision/unit_scaling.h"
#include "sim/tensor/random.h"
#include "sim/tensor/shard.h"
#include "sim/tensor/tensor.h"

namespace sim {

/// One forward evaluation. Inputs are already in the format that the operation's class asks for.
struct OperationCall {
  std::span<const Tensor* const> inputs;
  const OperationOptions& options;
  const Arithmetic& arithmetic;
  fp16::Format output_format;
  bool training;        ///< false: evaluation (running statistics, no dropout)
  RandomStream random;  ///< this evaluation's own; backward gets the same
  Shard shard = {};     ///< of the batch, whose other shards draw from the same stream
  /// With which the statistics of a batch are those of all its shards; null: of this one.
  ShardGathering* gathering = nullptr;
  /// What a linear map narrows its operands with; null: they are multiplied as they are.
  const OperandNarrowing* narrowing = nullptr;
  const ElementRounding* rounding = nullptr;
  fp16::RoundingCounts* counts = nullptr;
  std::vector<Tensor> saved =
      {};  ///< what forward wants back in backward, e.g. the probabilities of a softmax

  /// An output or a saved value of this evaluation as a place to store to, each with a `use` of its own.
  RoundedOutput into(Tensor& tensor, std::uint64_t use = 0) const { return {&tensor, counts, rounding, use}; }
};

/// One backward evaluation: from the gradient of the output to those of the inputs. The output gradient may
/// be wider than the forward values: the twin of a step runs the same backward in FP32 or FP64.
struct OperationGradient {
  std::span<const Tensor* const> inputs;
  const Tensor& output;
  std::span<const Tensor> saved;
  const OperationOptions& options;
  const Arithmetic& arithmetic;
  bool training;
  RandomStream random;
  Shard shard = {};                             ///< as in forward
  ShardGathering* gathering = nullptr;          ///< as in forward
  const OperandNarrowing* narrowing = nullptr;  ///< as in forward; null for a twin
  const Tensor& output_gradient;
  /// One per input, shaped like it, the input's number its `use`; a null tensor where no gradient is wanted.
  std::span<const RoundedOutput> input_gradients;
};

/// In which format an operation runs, by the list that a policy follows. `input_type` is every operation that
/// a list does not name.
struct CastClasses {
  AutocastClass torch_autocast = AutocastClass::input_type;
  AutocastClass apex_o1 = AutocastClass::input_type;
};

/// The classes of an operation that neither list names.
inline constexpr CastClasses on_no_list = {};

/// One evaluation under unit scaling, before anything is multiplied.
struct UnitScaledCall {
  const UnitScaling& rule;
  std::span<const Tensor* const> inputs;
  std::string_view layer;
  OperationOptions options;  ///< of the evaluation; a loss exchanges them, to be evaluated as a sum
};

/// All ones: what an operation says for which the source of unit scaling has no rule.
inline UnitMultipliers no_unit_multipliers(UnitScaledCall&) {
  return {};
}

/// An operation as a row. Members without a default must be said, if only as on_no_list or as
/// no_unit_multipliers: the test of the registry refuses a row that leaves one out.
struct Operation {
  std::string_view name;
  std::string_view description;
  std::optional<CastClasses> casts;
  /// The gradient of the output is looked at as the activation gradient of a layer (linear maps).
  bool is_layer = false;
  /// A loss takes the model's outputs, which a policy without a cast list hands over in binary32.
  bool is_loss = false;
  /// The output has the format of the first input, however wide the others are (batch_norm's parameters).
  bool keeps_first_format = false;
  /// What `banned` names as the way out.
  std::string_view replacement = {};
  Tensor (*forward)(OperationCall&);
  void (*backward)(const OperationGradient&);
  UnitMultipliers (*unit_multipliers)(UnitScaledCall&);
};

/// Calls body(float{}) or body(double{}): binary64 anywhere makes the computation binary64.
template <class Body>
decltype(auto) with_real(bool binary64, Body body) {
  return binary64 ? body(double{}) : body(float{});
}

}  // namespace sim
