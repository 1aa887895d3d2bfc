#include "sim/ops/embedding.h"

#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "sim/ops/sums.h"

namespace sim {
namespace {

void check_labels(std::span<const std::int32_t> labels, std::size_t entries) {
  for (std::size_t row = 0; row < labels.size(); ++row) {
    if (labels[row] >= 0 && static_cast<std::size_t>(labels[row]) < entries) continue;
    throw std::invalid_argument("embedding: label " + std::to_string(labels[row]) + " of row " +
                                std::to_string(row) + "; allowed are 0 to " + std::to_string(entries - 1));
  }
}

Tensor forward(OperationCall& call) {
  const Tensor& table = *call.inputs[0];
  const auto& labels = call.options.get<EmbeddingOptions>().labels;
  check_labels(labels, table.shape()[0]);
  const std::size_t features = table.shape()[1], rows = labels.size();
  Tensor output({rows, features}, call.output_format);
  with_real(is_binary64(table), [&](auto real) {
    using Real = decltype(real);
    std::vector<Real> buffer(features);
    for (std::size_t row = 0; row < rows; ++row) {
      const auto entry = static_cast<std::size_t>(labels[row]);
      const Real* values = read(table, entry * features, features, buffer);
      store(call.into(output), row * features, std::span<const Real>(values, features));
    }
  });
  return output;
}

/// The gradient of an entry is the sum of those of the rows that read it, down their columns in ascending
/// order.
void backward(const OperationGradient& g) {
  const std::size_t features = g.inputs[0]->shape()[1];
  const auto& labels = g.options.get<EmbeddingOptions>().labels;
  with_real(is_binary64(g.output_gradient), [&](auto real) {
    using Real = decltype(real);
    std::vector<Real> buffer(features);
    std::vector<ColumnSums<Real>> sums(g.inputs[0]->shape()[0], {g.arithmetic.reductions, features});
    for (std::size_t row = 0; row < labels.size(); ++row) {
      sums[static_cast<std::size_t>(labels[row])].add_row(
          read(g.output_gradient, row * features, features, buffer));
    }
    for (std::size_t entry = 0; entry < sums.size(); ++entry) {
      store(g.input_gradients[0], entry * features, std::span<const Real>(std::move(sums[entry]).totals()));
    }
  });
}

UnitMultipliers unit_multipliers(UnitScaledCall& call) {
  return call.rule.embedding(call.inputs[0]->shape()[0], call.options.get<EmbeddingOptions>().labels.size());
}

}  // namespace

constinit const Operation embedding{.name = "embedding",
                                    .description = "rows of a table, by index",
                                    .casts = on_no_list,
                                    .forward = forward,
                                    .backward = backward,
                                    .unit_multipliers = unit_multipliers};

}  // namespace sim
