#pragma once
/// A network: which parameters it has, and how it runs on a tape.

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/data/dataset.h"
#include "sim/ops/conv2d.h"
#include "sim/tape/tape.h"

namespace sim {

/// How the elements of a parameter begin.
struct Initialisation {
  enum class Kind { constant, uniform, normal };
  Kind kind = Kind::constant;
  float value = 0;  ///< the constant, the bound of [-bound, bound], the standard deviation

  static constexpr Initialisation constant(float value) { return {Kind::constant, value}; }
  static constexpr Initialisation uniform(float bound) { return {Kind::uniform, bound}; }
  static constexpr Initialisation normal(float deviation) { return {Kind::normal, deviation}; }
};

struct ParameterSpec {
  std::string name;
  Shape shape;
  Initialisation initialisation = {};
  bool of_batch_norm = false;  ///< stays in binary32 under a policy that keeps batch norm there
};

/// In which format the forward pass sees a parameter.
fp16::Format model_format(const PrecisionPolicy& policy, const ParameterSpec& spec);

/// In which format the optimizer keeps a parameter; where it is another than model_format(), as a master weight.
fp16::Format kept_format(const PrecisionPolicy& policy, const ParameterSpec& spec);

/// Fresh binary32 tensors; keyed by seed and name.
std::vector<Tensor> initial_values(std::span<const ParameterSpec> specs, std::uint64_t seed);

/// How the weights of a layer with `fan_in` inputs per output begin.
enum class WeightInitialisation {
  torch_default,  ///< weights and bias uniform in +-1/sqrt(fan_in), as torch.nn.Linear and Conv2d
  he_uniform,     ///< weights uniform in +-sqrt(6/fan_in), bias zero (He et al. 2015), for ReLU
  he_normal,      ///< weights normal with deviation sqrt(2/fan_in), bias zero
};

/// The parameters of a model while it lists them.
class ParameterList {
 public:
  void add(std::string name, Shape shape, Initialisation initialisation);
  /// "<layer>.weight", whose shape is `weight` (outputs first), and "<layer>.bias".
  void add_layer(std::string_view layer, Shape weight, WeightInitialisation initialisation);
  void add_layer(std::string_view layer, Shape weight, Initialisation initialisation);
  /// "<layer>.weight" alone.
  void add_layer_without_bias(std::string_view layer, Shape weight, WeightInitialisation initialisation);
  /// "<layer>.weight" of ones and "<layer>.bias" of zeros, `features` each.
  void add_layer_norm(std::string_view layer, std::size_t features);
  void add_batch_norm(std::string_view layer, std::size_t channels);

  std::vector<ParameterSpec> specs() && { return std::move(specs_); }

 private:
  std::vector<ParameterSpec> specs_;
};

/// A tensor that training changes without a gradient: the running statistics of batch norm.
using Buffers = std::map<std::string, Tensor, std::less<>>;

/// One forward pass while a model writes it: its tape, its parameters by name, and the layers that networks
/// are made of. A layer's name is that of its parameters and of its gradient site.
class ForwardContext {
 public:
  /// What is referred to must outlive the pass.
  ForwardContext(Tape& tape, std::span<const ParameterSpec> specs, std::span<const Tensor* const> weights,
                 Buffers& buffers, const Batch& batch);

  Tape& tape() { return tape_; }
  const Batch& batch() const { return batch_; }
  Variable parameter(std::string_view name) const;
  /// A constant, rounded once to the format of the policy's model.
  Variable constant(Tensor values);
  /// The batch's inputs as a constant of `shape`.
  Variable inputs(Shape shape);

  Variable apply(const Operation& operation, std::vector<Variable> inputs, OperationOptions options = {});
  /// A fixed gain of the network's own; none under unit scaling, which has others in its place.
  Variable gain(Variable x, double forward, double backward);
  /// x + branch(x), under unit scaling weighted by it (Tape::residual).
  Variable residual(Variable x, const std::function<Variable(Variable)>& branch);
  Variable linear(std::string_view layer, Variable x);
  Variable conv2d(std::string_view layer, Variable x, const Conv2dOptions& options = {});
  Variable layer_norm(std::string_view layer, Variable x);
  Variable batch_norm(std::string_view layer, Variable x);

 private:
  Tape& tape_;
  Buffers& buffers_;
  const Batch& batch_;
  std::map<std::string, Variable, std::less<>> parameters_;
};

/// What a forward pass leaves on the tape.
struct ForwardPass {
  Variable loss;                  ///< scalar, mean over the batch
  std::vector<Variable> outputs;  ///< what score() judges: logits, a reconstruction
  /// The terms of a loss that is the sum of several, Model::num_losses() in all.
  std::vector<Variable> losses;
};

/// How many of the predictions were right; none where the model predicts nothing that can be right.
struct Score {
  std::uint64_t correct = 0;
  std::uint64_t predictions = 0;

  double accuracy() const {
    return predictions == 0 ? 0 : static_cast<double>(correct) / static_cast<double>(predictions);
  }
};

class Model {
 public:
  virtual ~Model() = default;
  virtual std::vector<ParameterSpec> parameters() const = 0;
  /// What the Buffers of a run hold before the first step.
  virtual std::vector<ParameterSpec> buffers() const { return {}; }
  /// True when score() has a meaning.
  virtual bool is_classifier() const = 0;
  /// How many losses the loss is the sum of, each of which may have a scaler of its own.
  virtual std::size_t num_losses() const { return 1; }
  /// Records the whole step, loss included.
  virtual ForwardPass forward(ForwardContext& context) const = 0;
  /// Judges the outputs of a pass over `batch`; by default the one output as logits against the labels.
  virtual Score score(const Tape& tape, const ForwardPass& pass, const Batch& batch) const;
};

/// The largest of each row's values against labels; rows labelled -1 are left out.
Score score_rows(const Tensor& logits, std::span<const std::int32_t> labels);

/// "<layer>.running_mean" (zeros) and "<layer>.running_variance" (ones).
void add_running_statistics(std::vector<ParameterSpec>& buffers, std::string_view layer,
                            std::size_t channels);

}  // namespace sim
