#pragma once
/// A network: which parameters it has, and how it runs on a tape.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/data/dataset.h"
#include "sim/tape.h"

namespace sim {

/// A parameter and its initial distribution, as torch.nn initialises: uniform in [-bound, bound], or all
/// zero.
struct ParameterSpec {
  std::string name;
  Shape shape;
  float bound = 0;
};

/// What a forward pass leaves on the tape.
struct ForwardPass {
  Variable loss;     ///< scalar, mean over the batch
  Variable outputs;  ///< logits of a classifier, reconstruction of an autoencoder: batch x outputs
};

class Model {
 public:
  virtual ~Model() = default;
  virtual std::vector<ParameterSpec> parameters() const = 0;
  /// True when outputs are logits, one per class, and accuracy has a meaning.
  virtual bool is_classifier() const = 0;
  /// `parameters` in the order of parameters(); records the whole step, loss included.
  virtual ForwardPass forward(Tape& tape, std::span<const Variable> parameters, const Batch& batch) const = 0;
};

/// How weights of a layer with `fan_in` inputs per output begin.
enum class Initialisation {
  torch_default,  ///< weights and bias uniform in +-1/sqrt(fan_in), as torch.nn.Linear and Conv2d
  he_uniform,     ///< weights uniform in +-sqrt(6/fan_in), bias zero (He et al. 2015), for ReLU
};

/// Appends "<layer>.weight", whose shape is `weight` (outputs first), and "<layer>.bias".
void add_layer(std::vector<ParameterSpec>& parameters, std::string_view layer, Shape weight,
               Initialisation initialisation);

/// Fresh binary32 weights of all parameters; keyed by seed and parameter name.
std::vector<Tensor> initial_weights(std::span<const ParameterSpec> parameters, std::uint64_t seed);

/// The batch's inputs as a constant of `shape`.
Variable inputs_of(Tape& tape, const Batch& batch, Shape shape);

}  // namespace sim
