#pragma once
/// Reverse-mode differentiation of one step: operations are recorded as they run, each in the format that the
/// precision policy and its autocast class give it; backward walks the record in reverse.

#include <string>
#include <string_view>
#include <vector>

#include "sim/ops/operation.h"
#include "sim/precision_policy.h"
#include "sim/tensor.h"

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

/// Gradients of one backward pass, in the order of Tape::sites(), and what rounding them to their formats
/// lost. The gradient of FP32 master weights was rounded as that of their FP16 copy, so what is lost on a
/// cast's output counts for its input too.
struct SiteGradients {
  std::vector<Tensor> gradients;
  std::vector<fp16::RoundingCounts> rounding;  ///< empty unless counted
};

struct BackwardOptions {
  /// What the gradient of the loss itself is: the loss scale S.
  float seed = 1;
  /// The twin: every gradient in this format and accumulation, whatever the forward values are stored in.
  /// Otherwise each gradient has the format of its forward value, as in torch.autocast.
  const PrecisionPolicy* twin = nullptr;
  bool count_rounding = false;
};

class Tape {
 public:
  /// The policy must outlive the tape.
  explicit Tape(const PrecisionPolicy& policy) : policy_(&policy) {}

  /// A value without a gradient, such as the inputs.
  Variable constant(Tensor value);

  /// A trained parameter; `name` is unique on the tape. The tensor is borrowed and must outlive the tape.
  Variable parameter(std::string name, const Tensor& value);

  /// Runs `operation`, after casting its inputs as its class says, and records it. `layer` names the output's
  /// gradient site when the operation is a layer.
  Variable apply(const Operation& operation, std::vector<Variable> inputs, std::string_view layer = {},
                 OperationOptions options = {});

  const Tensor& value(Variable variable) const;
  const std::vector<GradientSite>& sites() const { return sites_; }

  /// Gradients of `loss` (a scalar) at every site. The forward values stay: backward may run again with other
  /// options.
  SiteGradients backward(Variable loss, const BackwardOptions& options) const;

 private:
  struct Node {
    const Operation* operation = nullptr;  ///< null for constants and parameters
    std::vector<Variable> inputs;
    OperationOptions options;
    Tensor owned;
    const Tensor* borrowed = nullptr;
    Tensor saved;
    bool needs_gradient = false;

    const Tensor& value() const { return borrowed ? *borrowed : owned; }
  };

  struct NodeGradients {
    std::vector<Tensor> gradients;
    std::vector<fp16::RoundingCounts> rounding;
  };

  Variable record(Node node);
  Variable cast_to(Variable variable, fp16::Format format);
  fp16::Format gradient_format(std::size_t node, const BackwardOptions& options) const;
  void backward_node(std::size_t node, const BackwardOptions& options, NodeGradients& state) const;

  const PrecisionPolicy* policy_;
  std::vector<Node> nodes_;
  std::vector<GradientSite> sites_;
};

}  // namespace sim
