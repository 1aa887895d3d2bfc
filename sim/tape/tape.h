#pragma once
/// Reverse-mode differentiation of one step: operations are recorded as they run, each in the format that the
/// precision policy and its autocast class give it; backward walks the record in reverse.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/loss_scaling/layer_scaler.h"
#include "sim/ops/operation.h"
#include "sim/precision/precision_policy.h"
#include "sim/precision/unit_scaling.h"
#include "sim/tensor/tensor.h"

namespace sim {

/// A value on a tape.
struct Variable {
  std::size_t index;
};

/// Where a gradient is looked at: every parameter, and the output of every layer (after its bias, before the
/// non-linearity).
struct GradientSite {
  enum class Kind { weight, activation };
  std::string name;  ///< "hidden1.weight", "hidden1.bias", or the layer's name for its activation gradient
  Kind kind;
  Variable variable;
};

constexpr std::string_view name_of(GradientSite::Kind kind) {
  return kind == GradientSite::Kind::weight ? "weight" : "activation";
}

/// A value in words.
struct ValueName {
  std::string_view operation;  ///< that computed it: "linear", "cast"; "parameter" or "input" where none did
  /// The layer it belongs to or, of an operation that belongs to none, the nearest one before it; of a
  /// parameter and its casts the parameter's name; empty where there is none.
  std::string layer;
};

/// How a value came about.
struct ValueOrigin {
  const Operation* operation;  ///< null for constants and parameters
  const std::vector<Variable>& inputs;
  const OperationOptions& options;
  bool needs_gradient;  ///< a parameter, or computed from one
};

/// The first gradient of a backward pass that was not finite, in the order of computation, as it was then.
struct NonfiniteGradient {
  Variable variable;    ///< whose gradient it is
  Variable consumer;    ///< whose backward computed it; the loss itself where backward starts
  std::size_t element;  ///< the first one that is infinite or NaN
  double value;         ///< of it
  double scale;         ///< what the gradient is a multiple of
};

/// Gradients of one backward pass, in the order of Tape::sites(), and what rounding them to their formats
/// lost. The gradient of FP32 master weights was rounded as that of their FP16 copy, so what is lost on a
/// cast's output counts for its input too.
struct SiteGradients {
  std::vector<Tensor> gradients;
  /// What each gradient is a multiple of: S, but where a layer rule has rescaled on the way.
  std::vector<double> scales;
  std::vector<fp16::RoundingCounts> rounding;        ///< empty unless counted
  std::optional<NonfiniteGradient> first_nonfinite;  ///< empty unless looked for and found
};

struct BackwardOptions {
  /// The loss scale S: backward starts from loss_scale / mean_over, the gradient of the loss itself, so that every
  /// gradient is S times that of loss / mean_over.
  float loss_scale = 1;
  /// The micro-batches whose mean loss is differentiated; this loss is one of them.
  float mean_over = 1;
  /// The twin: every gradient in this format, binary32 or binary64, and in arithmetic of the same, whatever
  /// the forward values are stored in; binary64 always where the policy itself computes in it. Otherwise each
  /// gradient has the format of its forward value, as in torch.autocast.
  std::optional<fp16::Format> twin;
  bool count_rounding = false;
  bool find_nonfinite = false;  ///< looks at every gradient as it is computed, at sites or not
  /// Shown the gradient of every value that the loss depends on, parameters and all, when it is whole: from the
  /// loss back, before a layer rule rescales it.
  std::function<void(Variable, const Tensor& gradient)> observe;
  /// Rescales the gradient at every layer, but not a twin's; null: none.
  LayerScaler* layer_scaler = nullptr;
};

/// Which step a tape records, and how.
struct TapeOptions {
  bool training = true;    ///< false: running statistics are used, nothing is dropped
  std::uint64_t seed = 0;  ///< with `step` the key of dropout and of stochastic rounding
  std::uint64_t step = 0;
  /// What of the step's batch is recorded. Of the random numbers each element draws the one that it would draw were
  /// the whole batch on one tape; gradients of parameters, which each shard has all of, draw numbers of their own.
  Shard shard = {};
  /// With which the statistics of a batch are those of all its shards, in backward as well; null: of this one. Must
  /// outlive the tape.
  ShardGathering* gathering = nullptr;
  int threads = 1;  ///< of one operation; no bit depends on it
  /// The scaler of a policy that narrows operands with a scale per tensor. It sees every operand, in forward and in
  /// each backward but a twin's. Must outlive the tape. Null: all scales are 1.
  TensorScaler* tensor_scaler = nullptr;
  /// Fixed multipliers around every operation; null: none. Must outlive the tape.
  const UnitScaling* unit_scaling = nullptr;
};

class Tape {
 public:
  /// The policy must outlive the tape.
  explicit Tape(const PrecisionPolicy& policy, const TapeOptions& options = {});

  /// A value without a gradient, such as the inputs.
  Variable constant(Tensor value);

  /// A trained parameter; `name` is unique on the tape. The tensor is borrowed and must outlive the tape.
  Variable parameter(std::string name, const Tensor& value);

  /// Runs `operation`, after casting its inputs as its class says, and records it. `layer` names the output's
  /// gradient site and the operands of a scaler per tensor, when the operation is a layer. Throws
  /// std::invalid_argument, naming the replacement, when the policy's list bans it for these inputs.
  Variable apply(const Operation& operation, std::vector<Variable> inputs, std::string_view layer = {},
                 OperationOptions options = {});

  /// x + branch(x); under unit scaling weighted as UnitScaling::residual() says.
  Variable residual(Variable x, const std::function<Variable(Variable)>& branch);

  const Tensor& value(Variable variable) const;
  ValueName name_of(Variable variable) const;
  /// Refers into the tape, until the next value is recorded.
  ValueOrigin origin_of(Variable variable) const {
    const Node& node = nodes_[variable.index];
    return {node.operation, node.inputs, node.options, node.needs_gradient};
  }
  /// The first value in the order of computation, constants and parameters included, that is not finite.
  std::optional<Variable> first_nonfinite_value() const;
  const std::vector<GradientSite>& sites() const { return sites_; }
  const PrecisionPolicy& policy() const { return *policy_; }
  bool training() const { return options_.training; }
  bool has_unit_scaling() const { return options_.unit_scaling != nullptr; }

  /// Gradients of `loss` (a scalar) at every site, 0 where it does not depend on that. The forward values
  /// stay: backward may run again with other options.
  SiteGradients backward(Variable loss, const BackwardOptions& options) const;

 private:
  struct Node {
    const Operation* operation = nullptr;  ///< null for constants and parameters
    std::vector<Variable> inputs;
    std::string layer;
    OperationOptions options;
    Tensor owned;
    const Tensor* borrowed = nullptr;
    std::vector<Tensor> saved;
    bool needs_gradient = false;
    bool is_parameter = false;                     ///< or a cast or multiple of one: the same on all shards
    std::optional<Variable> lower_precision_copy;  ///< of a parameter: the cast cache of autocast

    const Tensor& value() const { return borrowed ? *borrowed : owned; }
  };

  struct NodeGradients {
    std::vector<Tensor> gradients;
    std::vector<double> scales;
    std::vector<fp16::RoundingCounts> rounding;
    std::vector<bool> is_counted;  ///< sites and their casts, where roundings are counted at all
    std::optional<NonfiniteGradient> first_nonfinite;

    fp16::RoundingCounts* counts_at(std::size_t node) { return is_counted[node] ? &rounding[node] : nullptr; }
  };

  Variable record(Node node);
  /// Empty unless the variable is a parameter or a cast of one.
  std::string parameter_name(Variable variable) const;
  /// apply() without the multipliers of unit scaling.
  Variable apply_plain(const Operation& operation, std::vector<Variable> inputs, std::string_view layer,
                       OperationOptions options);
  Variable apply_in_unit_scale(const Operation& operation, std::vector<Variable> inputs,
                               std::string_view layer, OperationOptions options);
  Variable cast_to(Variable variable, fp16::Format format);
  /// Casts the inputs as the policy says for this operation; returns the format of its output.
  fp16::Format cast_inputs(const Operation& operation, std::vector<Variable>& inputs);
  fp16::Format widest_of(const std::vector<Variable>& inputs) const;
  RandomStream random_of(std::size_t node, std::string_view purpose) const;
  /// None under a policy that narrows nothing.
  std::optional<OperandNarrowing> narrowing_of(std::size_t node, std::string_view layer) const;
  fp16::Format gradient_format(std::size_t node, const BackwardOptions& options) const;
  void backward_node(std::size_t node, const BackwardOptions& options, NodeGradients& state) const;
  /// Gradients of the inputs [first, end) of a node from that of its output, which is `scale` times the true
  /// one.
  void backward_inputs(std::size_t node, std::size_t first, std::size_t end, const Tensor& output_gradient,
                       double scale, const BackwardOptions& options, NodeGradients& state) const;
  void backward_layer(std::size_t node, const BackwardOptions& options, NodeGradients& state) const;
  void look_for_nonfinite(Variable variable, Variable consumer, const Tensor& gradient, double scale,
                          const BackwardOptions& options, NodeGradients& state) const;
  /// How the gradients that a node hands on are rounded: as they are computed, as the branches of a fork add
  /// up, as a layer rule rescales them.
  struct GradientRounding {
    bool to_nearest;
    ElementRounding computed, summed, rescaled;

    const ElementRounding* unless_nearest(const ElementRounding& rounding) const {
      return to_nearest ? nullptr : &rounding;
    }
  };
  GradientRounding gradient_rounding(std::size_t node, const BackwardOptions& options) const;
  void add_gradient(std::size_t node, std::size_t input_number, Tensor fresh, double scale,
                    const BackwardOptions& options, NodeGradients& state) const;

  const PrecisionPolicy* policy_;
  TapeOptions options_;
  Arithmetic arithmetic_;
  std::vector<Node> nodes_;
  std::vector<GradientSite> sites_;
};

}  // namespace sim
