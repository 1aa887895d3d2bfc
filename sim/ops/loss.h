#pragma once
/// Losses: sums over elements or rows, divided by a normaliser. Whatever the policy rounds its other
/// reductions to, these sums are in the precision of the loss itself: binary32, binary64 for binary64 inputs.

#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "fp16/names.h"
#include "sim/ops/elementwise_loss_options.h"
#include "sim/ops/groups.h"
#include "sim/ops/sum_of_elements.h"

namespace sim {

inline constexpr names::Interval not_negative{.lower = 0, .includes_lower = true};

/// What the sum of `terms` terms is divided by.
inline double normaliser_of(const Operation& operation, double option, std::size_t terms) {
  const double normaliser = names::checked_option<double>(operation.name, "normaliser", option, not_negative);
  return normaliser == 0 ? static_cast<double>(terms) : normaliser;
}

/// The factors of a loss under unit scaling: those of its sum, which is then what is evaluated. The loss
/// keeps its ordinary value, whatever its options divide it by.
template <class Options>
UnitMultipliers evaluated_as_sum(UnitScaledCall& call, UnitMultipliers multipliers) {
  Options options = call.options.get<Options>();
  if (options.normaliser != 0) multipliers.output = 1 / options.normaliser;
  options.normaliser = 1;
  call.options = std::move(options);
  return multipliers;
}

/// Throws std::invalid_argument unless predictions and targets are shaped alike and the row weights, where
/// there are any, divide them into rows.
inline void check_elementwise_loss(const Operation& operation, const OperationCall& call,
                                   std::size_t weights) {
  const Shape &predictions = call.inputs[0]->shape(), &targets = call.inputs[1]->shape();
  if (predictions != targets) {
    throw std::invalid_argument(std::string(operation.name) + ": predictions are " + to_string(predictions) +
                                ", targets " + to_string(targets) + "; they must be shaped alike");
  }
  if (weights != 0 && call.inputs[0]->size() % weights != 0) {
    throw std::invalid_argument(std::string(operation.name) + ": " + std::to_string(weights) +
                                " row weights for a shape of " + to_string(predictions) +
                                "; one per row is allowed");
  }
}

/// A loss of prediction and target, two inputs that are shaped alike. Output, a scalar: the sum in
/// the interleaved order of term(prediction, target) times the weight of its row, over the normaliser: the
/// number of elements, unless the options say otherwise. A row of weight 0 is left out, whatever it holds.
template <class Options = ElementwiseLossOptions, class Term>
Tensor elementwise_loss(const Operation& operation, OperationCall& call, Term term) {
  const auto& options = call.options.get<Options>();
  const std::vector<float>& weights = options.row_weights;
  check_elementwise_loss(operation, call, weights.size());
  const Tensor &prediction = *call.inputs[0], &target = *call.inputs[1];
  const double normaliser = normaliser_of(operation, options.normaliser, prediction.size());
  return with_real(is_binary64(prediction), [&](auto real) {
    using Real = decltype(real);
    const auto weighted_terms = [&, unweighted = elementwise<Real, 2>(term)](
                                    std::size_t offset, std::span<Real> terms, const Real* const* inputs) {
      unweighted(offset, terms, inputs);
      if (weights.empty()) return;
      const std::size_t columns = prediction.size() / weights.size();
      for (std::size_t i = 0; i < terms.size(); ++i) {
        const float weight = weights[(offset + i) / columns];
        terms[i] = weight == 0 ? Real{0} : terms[i] * weight;
      }
    };
    const std::array<const Tensor*, 2> inputs{&prediction, &target};
    const Real total = sum_of_pieces<Real>(inputs, fp16::binary32, weighted_terms);
    return scalar_output(call, total / static_cast<Real>(normaliser));
  });
}

/// The gradient of input `input`: derivative(prediction, target) times (upstream / normaliser) and the weight
/// of the row. Scaling the upstream by a power of two scales every gradient by it.
template <class Options = ElementwiseLossOptions, class Derivative>
void elementwise_loss_gradient(const Operation& operation, const OperationGradient& g, std::size_t input,
                               Derivative derivative) {
  const RoundedOutput& out = g.input_gradients[input];
  if (out.tensor == nullptr) return;
  const auto& options = g.options.get<Options>();
  const std::vector<float>& weights = options.row_weights;
  const double normaliser = normaliser_of(operation, options.normaliser, g.inputs[0]->size());
  with_real(is_binary64(g.output_gradient), [&](auto real) {
    using Real = decltype(real);
    const Real factor = static_cast<Real>(g.output_gradient.element(0)) / static_cast<Real>(normaliser);
    const auto gradient = [derivative](Real by) {
      return [derivative, by](Real prediction, Real target) { return derivative(prediction, target) * by; };
    };
    const std::array<const Tensor*, 2> inputs{g.inputs[0], g.inputs[1]};
    if (weights.empty()) return map_elements<Real>(out, inputs, gradient(factor), g.arithmetic.threads);
    const std::size_t columns = inputs[0]->size() / weights.size();
    map_groups<Real>(out, weights.size(), {inputs[0], inputs[1]}, g.arithmetic.threads,
                     [&](std::size_t row, Real* gradients, const auto& values) {
                       if (weights[row] == 0) {
                         std::fill_n(gradients, columns, Real{0});
                       } else {
                         apply_to_each(gradient(factor * weights[row]), columns, gradients, values[0],
                                       values[1]);
                       }
                     });
  });
}

}  // namespace sim
