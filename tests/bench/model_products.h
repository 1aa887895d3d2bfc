#pragma once
/// Products of one training step, counted from what the step records.

#include "sim/models/model.h"

namespace bench {

/// Multiplications of forward, data gradient and weight gradient in the linear maps of one step: linear
/// layers, convolutions, LSTM, attention. A layer with nothing trained before it has no data gradient;
/// attention counts as the full square. Throws std::logic_error for a layer that is none of these.
double products_of_step(const sim::Model& model, const sim::Batch& batch);

}  // namespace bench
