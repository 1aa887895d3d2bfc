#pragma once
/// What an operation is given in training: recorded on the tapes of the built-in models, and for operations
/// that none of them has made of what was recorded for others.

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

#include "sim/ops/operation.h"
#include "sim/tape/tape.h"

namespace experiments::op_precision {

/// One evaluation of an operation and the gradient that comes back to it, all in binary32.
struct Operands {
  const sim::Operation* operation;
  std::vector<sim::Tensor> inputs;
  std::vector<bool> is_parameter;      ///< of each input
  std::vector<bool> wants_gradient;    ///< likewise
  sim::OperationOptions options = {};  ///< without running statistics: those of the batch are used
  sim::Tensor output_gradient;
};

/// Every operation on the tape that the loss depends on, but casts, with the gradient of its output in a
/// backward pass from `loss`, in the order of computation.
std::vector<Operands> recorded_operands(const sim::Tape& tape, sim::Variable loss);

/// The operands with activations times `factor`: input 0, and every further one that is no parameter.
Operands with_activations_times(const Operands& operands, double factor);

/// Where operands come from that no model has: from those that `model` has of `recorded`.
struct StandIn {
  const sim::Operation* operation;
  const sim::Operation* recorded;
  std::string_view model;
  std::string_view meaning;  ///< "attention scores"
  /// From operands of `recorded`, whose activations are first multiplied by `factor`.
  Operands (*make)(const Operands& recorded, double factor);
  bool multiplies_logits = false;  ///< the factor is that of logits, of which the operands are probabilities
};
std::span<const StandIn> stand_ins();

/// Why an operation has no operands at all; empty for the others.
std::string_view reason_to_leave_out(const sim::Operation& operation);

}  // namespace experiments::op_precision
