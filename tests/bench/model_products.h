#pragma once
/// Products of one training step, counted from what the step records.

#include <cstddef>
#include <vector>

#include "sim/models/model.h"

namespace bench {

/// `times` products of a rows x inner matrix and an inner x columns one; the second lies transposed in memory,
/// or the first does, or neither.
struct ProductShape {
  enum class Transposed { neither, first, second };

  std::size_t rows, inner, columns;
  Transposed transposed = Transposed::neither;
  std::size_t times = 1;

  double products() const { return static_cast<double>(rows * inner * columns) * static_cast<double>(times); }
};

/// The products of forward, data gradient and weight gradient in the linear maps of one step: linear layers,
/// convolutions (as patches by kernels), LSTM (all its tokens at once), attention (the full square). A layer
/// with nothing trained before it has no data gradient. Throws std::logic_error for a layer that is none of these.
std::vector<ProductShape> product_shapes(const sim::Model& model, const sim::Batch& batch);

/// Multiplications of all of them.
double products_of(const std::vector<ProductShape>& shapes);

}  // namespace bench
