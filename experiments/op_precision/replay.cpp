#include "experiments/op_precision/replay.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <utility>
#include <vector>

#include "sim/precision/arithmetic.h"
#include "sim/tensor/random.h"
#include "sim/trainer/model_state.h"

namespace experiments::op_precision {
namespace {

using sim::Tensor;

/// An operation on given operands: its output, and gradients as often as asked for.
class Evaluation {
 public:
  /// `inputs`: those of `operands`, all in one format, which is that of the results too.
  Evaluation(const Operands& operands, std::vector<Tensor> inputs, const sim::Arithmetic& arithmetic)
      : operands_(operands), arithmetic_(arithmetic), inputs_(std::move(inputs)) {
    const std::vector<const Tensor*> pointers = sim::pointers_to(inputs_);
    sim::OperationCall call{.inputs = pointers,
                            .options = operands_.options,
                            .arithmetic = arithmetic_,
                            .output_format = inputs_[0].format(),
                            .training = true,
                            .random = random()};
    output_ = operands_.operation->forward(call);
    saved_ = std::move(call.saved);
  }

  const Tensor& output() const { return output_; }

  /// Gradients of the inputs that want one.
  std::vector<Tensor> gradients(const Tensor& output_gradient) const {
    std::vector<Tensor> gradients(inputs_.size());
    std::vector<sim::RoundedOutput> outputs(inputs_.size());
    for (std::size_t i = 0; i < inputs_.size(); ++i) {
      if (!operands_.wants_gradient[i]) continue;
      gradients[i] = Tensor(inputs_[i].shape(), inputs_[i].format());
      outputs[i] = {.tensor = &gradients[i], .use = i};
    }
    const std::vector<const Tensor*> pointers = sim::pointers_to(inputs_);
    operands_.operation->backward({.inputs = pointers,
                                   .output = output_,
                                   .saved = saved_,
                                   .options = operands_.options,
                                   .arithmetic = arithmetic_,
                                   .training = true,
                                   .random = random(),
                                   .output_gradient = output_gradient,
                                   .input_gradients = outputs});
    std::erase_if(gradients, [](const Tensor& gradient) { return gradient.empty(); });
    return gradients;
  }

 private:
  static sim::RandomStream random() { return sim::RandomStream(0, "op_precision"); }

  const Operands& operands_;
  sim::Arithmetic arithmetic_;
  std::vector<Tensor> inputs_;
  Tensor output_;
  std::vector<Tensor> saved_;
};

/// Each rounded once.
std::vector<Tensor> all_rounded(const std::vector<Tensor>& tensors, fp16::Format format) {
  std::vector<Tensor> results;
  for (const Tensor& tensor : tensors) results.push_back(rounded(tensor, format));
  return results;
}

Tensor times_power_of_two(const Tensor& x, int exponent) {
  Tensor scaled = rounded(x, fp16::binary64);
  for (double& value : scaled.elements<double>()) value = std::ldexp(value, exponent);
  return scaled;
}

std::vector<double> values_of(const Tensor& tensor) {
  const Tensor wide = rounded(tensor, fp16::binary64);
  const std::span<const double> values = wide.elements<double>();
  return {values.begin(), values.end()};
}

/// ||a - b|| / ||b|| in u, over the elements that are finite in both.
double error_u(std::span<const double> a, std::span<const double> b) {
  double error = 0, norm = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (!std::isfinite(a[i]) || !std::isfinite(b[i])) continue;
    error += (a[i] - b[i]) * (a[i] - b[i]);
    norm += b[i] * b[i];
  }
  return error == 0 ? 0 : std::sqrt(error / norm) / unit_roundoff;
}

struct TensorLoss {
  double fraction_overflow = 0, fraction_flushed = 0, error_u = 0;

  /// `recorded`: the truth of the unrounded operands, up to a factor.
  TensorLoss(const Tensor& fp16_tensor, const Tensor& truth_tensor, const Tensor& recorded_tensor) {
    const std::vector<double> half = values_of(fp16_tensor), truth = values_of(truth_tensor),
                              recorded = values_of(recorded_tensor);
    std::size_t finite = 0, overflowed = 0, nonzero = 0, flushed = 0;
    for (std::size_t i = 0; i < half.size(); ++i) {
      if (std::isfinite(recorded[i])) {
        ++finite;
        overflowed += !std::isfinite(half[i]);
      }
      if (truth[i] != 0) {
        ++nonzero;
        flushed += half[i] == 0;
      }
    }
    fraction_overflow = overflowed == 0 ? 0 : static_cast<double>(overflowed) / static_cast<double>(finite);
    fraction_flushed = flushed == 0 ? 0 : static_cast<double>(flushed) / static_cast<double>(nonzero);
    error_u = op_precision::error_u(half, truth);
  }
};

double largest_finite(const Tensor& tensor) {
  double largest = 0;
  for (const double value : values_of(tensor)) {
    if (std::isfinite(value)) largest = std::max(largest, std::fabs(value));
  }
  return largest;
}

double largest_finite(const std::vector<Tensor>& tensors) {
  double largest = 0;
  for (const Tensor& tensor : tensors) largest = std::max(largest, largest_finite(tensor));
  return largest;
}

bool any_nonfinite(const std::vector<Tensor>& tensors) {
  return std::ranges::any_of(tensors, [](const Tensor& t) { return sim::first_nonfinite(t).has_value(); });
}

/// What FP16 is held against.
struct Truths {
  Evaluation recorded, rounded;
  std::vector<Tensor> recorded_gradients;  ///< unscaled

  explicit Truths(const Operands& operands)
      : recorded(operands, all_rounded(operands.inputs, fp16::binary64), binary64),
        rounded(operands, all_rounded(all_rounded(operands.inputs, fp16::binary16), fp16::binary64),
                binary64),
        recorded_gradients(recorded.gradients(sim::rounded(operands.output_gradient, fp16::binary64))) {}

  inline static const sim::Arithmetic binary64 = sim::uniform_arithmetic(fp16::binary64, 1);
};

/// An operation in FP16, its incoming gradient as a loss scaler would hand it over.
struct HalfEvaluation {
  Evaluation evaluation;
  int scale_log2;
  Tensor incoming;
  std::vector<Tensor> gradients;

  HalfEvaluation(const Operands& operands, Reductions reductions, int largest_scale_log2)
      : evaluation(operands, all_rounded(operands.inputs, fp16::binary16),
                   {.reductions = reductions == Reductions::fp32 ? fp16::binary32 : fp16::binary16}),
        scale_log2(largest_scale_log2) {
    constexpr int most_backoffs = 24;
    differentiate(operands);
    if (sim::first_nonfinite(evaluation.output())) return;  // which no scale of the gradient helps
    for (int backoff = 0; backoff < most_backoffs && any_nonfinite(gradients); ++backoff) {
      --scale_log2;
      differentiate(operands);
    }
  }

  void differentiate(const Operands& operands) {
    incoming = rounded(times_power_of_two(operands.output_gradient, scale_log2), fp16::binary16);
    gradients = evaluation.gradients(incoming);
  }
};

/// The gradient of an input, from rounded operands and the rounded incoming gradient.
struct TrueGradient {
  Tensor values;
  double operand_rounding_u;  ///< what that rounding changed

  /// Zero but for rounding, as that of an attention key's bias: the rounding changes more than there is.
  bool is_rounding_noise() const { return operand_rounding_u * unit_roundoff > 1; }
};

std::vector<TrueGradient> true_gradients(const Truths& truths, const HalfEvaluation& half) {
  std::vector<Tensor> values = truths.rounded.gradients(rounded(half.incoming, fp16::binary64));
  std::vector<TrueGradient> gradients;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double changed = error_u(
        values_of(values[i]), values_of(times_power_of_two(truths.recorded_gradients[i], half.scale_log2)));
    gradients.push_back({std::move(values[i]), changed});
  }
  return gradients;
}

Loss loss_of(const HalfEvaluation& half, const Operands& operands, const Truths& truths,
             const std::vector<TrueGradient>& gradients) {
  const TensorLoss output(half.evaluation.output(), truths.rounded.output(), truths.recorded.output());
  const double incoming =
      TensorLoss(half.incoming, operands.output_gradient, operands.output_gradient).fraction_flushed;
  Loss worst{.fraction_overflow = output.fraction_overflow,
             .fraction_flushed = output.fraction_flushed,
             .fraction_incoming_flushed = incoming,
             .forward_error_u = output.error_u};
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    if (gradients[i].is_rounding_noise()) continue;
    const TensorLoss gradient(half.gradients[i], gradients[i].values, truths.recorded_gradients[i]);
    worst = worst_of(worst, {.fraction_overflow = gradient.fraction_overflow,
                             .fraction_flushed = std::max(gradient.fraction_flushed - incoming, 0.0),
                             .gradient_error_u = gradient.error_u});
  }
  return worst;
}

}  // namespace

Tensor evaluated(const Operands& operands) {
  return Evaluation(operands, operands.inputs, {}).output();
}

double largest_operand(const Operands& operands) {
  double largest = 0;
  for (std::size_t i = 0; i < operands.inputs.size(); ++i) {
    if (i == 0 || !operands.is_parameter[i]) largest = std::max(largest, largest_finite(operands.inputs[i]));
  }
  return largest;
}

Measured measure(const Operands& operands) {
  constexpr int largest_exponent = 14;  // an octave below that of the largest FP16 number
  const Truths truths(operands);
  Measured measured{.ranges = {.operand = largest_operand(operands),
                               .output = largest_finite(truths.recorded.output()),
                               .output_gradient = largest_finite(operands.output_gradient),
                               .input_gradient = largest_finite(truths.recorded_gradients)},
                    .losses = {}};
  const double largest_gradient = std::max(measured.ranges.output_gradient, measured.ranges.input_gradient);
  const int scale_log2 = largest_gradient == 0 ? 0 : largest_exponent - std::ilogb(largest_gradient);
  std::vector<TrueGradient> gradients;
  int scale_of_gradients = 0;
  for (const Reductions reductions : all_reductions) {
    const HalfEvaluation half(operands, reductions, scale_log2);
    // The incoming gradient may have been rounded otherwise at another scale.
    if (gradients.empty() || half.scale_log2 != scale_of_gradients) gradients = true_gradients(truths, half);
    scale_of_gradients = half.scale_log2;
    measured.loss(reductions) = loss_of(half, operands, truths, gradients);
  }
  for (const TrueGradient& gradient : gradients) {
    if (!gradient.is_rounding_noise())
      measured.operand_rounding_u = std::max(measured.operand_rounding_u, gradient.operand_rounding_u);
  }
  return measured;
}

}  // namespace experiments::op_precision
