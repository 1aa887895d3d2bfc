#pragma once
/// What layer-wise loss scalers ask of tensors.

#include "sim/loss_scaling/layer_scaler.h"
#include "sim/tensor/tensor.h"

namespace sim {

/// Sums run over the elements in order, in binary64, mean first; not finite where an element is not.
TensorStatistics statistics_of(const Tensor& tensor, bool moments, bool log_moments, bool magnitudes);

/// The gradient `delta` that arrives at a layer with `weights` (outputs first): batch x outputs (x pixels).
/// Only what `needs` names is measured; the products of a layer whose outputs are not those of `weights`,
/// such as an LSTM's, are not.
LayerGradient layer_gradient(const Tensor& delta, const Tensor& weights, double scale,
                             const LayerNeeds& needs);

}  // namespace sim
