#pragma once
/// Why a step was skipped: the first tensor of it, in the order of computation, that was not finite.

#include <cstddef>
#include <string>
#include <string_view>

#include "sim/tape/tape.h"

namespace sim {

struct SkipRecord {
  enum class Place {
    forward,   ///< a value of the forward pass, weights and inputs included
    gradient,  ///< a gradient of a backward pass
    sum,       ///< a parameter's gradient, summed over micro-batches and ranks whose own were finite
    nowhere,   ///< all was finite: the scaler went by a rule of its own
  };
  std::size_t step = 0;
  double loss_scale = 1;  ///< S of the backward pass that was not finite
  Place place = Place::nowhere;
  std::size_t rank = 0;            ///< whose value or gradient it is; of a sum all of them
  std::size_t ranks = 1;           ///< that there are
  bool is_sum_over_ranks = false;  ///< of a sum: over ranks, whose own sums over micro-batches were finite

  // The first tensor that was not finite; for a gradient, the value it is the gradient of.
  std::string operation;  ///< as in ValueName
  std::string layer;
  std::string consumer;     ///< gradients: the operation whose backward computed it
  std::size_t element = 0;  ///< the first of it that is infinite or NaN, as row-major index
  Shape index = {};         ///< the same by dimension
  double value = 0;         ///< of it

  // Gradients of a backward pass: the same element in the twin.
  double tensor_scale = 1;   ///< what the gradient is a multiple of: S, times what a layer's rule
                             ///< multiplied it with
  double twin_value = 0;     ///< of the unscaled gradient; of a micro-batch its share of the mean
  bool twin_finite = false;  ///< no infinity or NaN in this tensor or at any site of the twin

  /// Whether there is such an element: of a gradient of a backward pass.
  bool has_twin_value() const { return place == Place::gradient; }
  /// log2 of |twin value| times the tensor's scale. From 16 on FP16 has no finite number for it (from
  /// log2(65520) exactly); where it is less, a sum overflowed on the way or an operand was infinite already.
  double log2_scaled() const;
  /// Binary exponent of the twin's value, floor(log2 |x|); 0 for zero and for what is not finite.
  int twin_exponent() const;
  /// Whether a weight was infinite or NaN before the step began.
  bool is_of_weight() const { return place == Place::forward && operation == "parameter"; }
  /// True where a smaller S would have left the step finite: its twin is. Nothing that is not finite in the
  /// forward pass, or in the twin, is cured by any scale.
  bool is_scale_dependent() const { return place == Place::sum || (has_twin_value() && twin_finite); }
};

/// "forward", "gradient", "sum", "nowhere".
std::string_view name_of(SkipRecord::Place place);

/// What went wrong in one backward pass over `tape`, which looked for it (BackwardOptions::find_nonfinite),
/// of loss / mean_over, without the numbers of the step. Runs the twin in `twin_format` if the forward pass
/// was finite and the backward pass was not.
SkipRecord find_cause(const Tape& tape, Variable loss, const SiteGradients& run, fp16::Format twin_format,
                      float mean_over = 1);

/// The record of a sum over micro-batches or ranks, the gradient of the parameter `name`.
SkipRecord record_of_sum(const std::string& name, const Tensor& sum);

/// One sentence of what happened and whether backing off cures it.
std::string describe(const SkipRecord& record);

/// The sentence on a sum over ranks that was applied, as the ranks had looked into their own gradients alone.
std::string describe_applied(const SkipRecord& sum);

}  // namespace sim
