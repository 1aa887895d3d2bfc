#include <algorithm>
#include <stdexcept>
#include <string>

#include "sim/ops/loss.h"
#include "sim/ops/softmax.h"

namespace sim {
namespace {

constexpr std::int32_t left_out = -1;

void check_labels(const OperationOptions& options, std::size_t rows, std::size_t classes) {
  if (options.labels.size() != rows) {
    throw std::invalid_argument("softmax_cross_entropy: " + std::to_string(options.labels.size()) +
                                " labels for " + std::to_string(rows) + " rows; one per row is allowed");
  }
  for (std::size_t row = 0; row < rows; ++row) {
    const std::int32_t label = options.labels[row];
    if (label >= left_out && label < static_cast<std::int64_t>(classes)) continue;
    throw std::invalid_argument("softmax_cross_entropy: label " + std::to_string(label) + " of row " +
                                std::to_string(row) + "; allowed are 0 to " + std::to_string(classes - 1) +
                                ", and -1 for a row to leave out");
  }
}

double normaliser_of_rows(const OperationOptions& options) {
  const auto rows = options.labels.size() - std::ranges::count(options.labels, left_out);
  return normaliser_of(softmax_cross_entropy, options, rows);
}

/// inputs: logits, rows of classes; options.labels (one per row, -1: left out), normaliser. Output, a scalar:
/// the sum of -log softmax(row)[label] over the normaliser: the number of rows not left out, unless the
/// options say otherwise (NaN where all are left out). Sums along a row and over rows in the interleaved
/// order, rows left out counting as zeros. Saved: the probabilities.
Tensor forward(OperationCall& call) {
  const Tensor& logits = *call.inputs[0];
  const std::vector<std::int32_t>& labels = call.options.labels;
  const std::size_t classes = logits.shape().back(), rows = logits.size() / classes;
  check_labels(call.options, rows, classes);
  call.saved.emplace_back(logits.shape(), call.output_format);
  return with_real(is_binary64(logits), [&](auto real) {
    using Real = decltype(real);
    std::vector<Real> losses(rows);
    map_groups<Real, 1>({&call.saved[0]}, rows, {&logits}, call.arithmetic.threads,
                        [&](std::size_t row, Real* probabilities, const auto& inputs) {
                          const auto [largest, sum] =
                              softmax_row(inputs[0], classes, classes, probabilities, fp16::binary32);
                          if (labels[row] != left_out)
                            losses[row] = elementary::log(sum) - (inputs[0][labels[row]] - largest);
                        });
    const Real total =
        interleaved_sum<Real>(fp16::binary32, rows, [&](std::size_t row) { return losses[row]; });
    return scalar_output(call, total / static_cast<Real>(normaliser_of_rows(call.options)));
  });
}

/// (softmax - one_hot(label)) (upstream / normaliser), 0 in rows left out: the same but for exact shifts for
/// every power-of-two loss scale.
void backward(const OperationGradient& g) {
  const std::vector<std::int32_t>& labels = g.options.labels;
  const std::size_t classes = g.inputs[0]->shape().back(), rows = labels.size();
  with_real(is_binary64(g.output_gradient), [&](auto real) {
    using Real = decltype(real);
    const Real factor =
        static_cast<Real>(g.output_gradient.element(0)) / static_cast<Real>(normaliser_of_rows(g.options));
    map_groups<Real, 1>(g.input_gradients[0], rows, {&g.saved[0]}, g.arithmetic.threads,
                        [&](std::size_t row, Real* dz, const auto& inputs) {
                          if (labels[row] == left_out) {
                            std::fill_n(dz, classes, Real{0});
                            return;
                          }
                          apply_to_each([factor](Real p) { return p * factor; }, classes, dz, inputs[0]);
                          dz[labels[row]] = (inputs[0][labels[row]] - 1) * factor;
                        });
  });
}

}  // namespace

constinit const Operation softmax_cross_entropy{
    .name = "softmax_cross_entropy",
    .description = "mean over the rows of -log softmax(logits)[label]",
    .casts = {.torch_autocast = AutocastClass::full_precision, .apex_o1 = AutocastClass::full_precision},
    .is_loss = true,
    .forward = forward,
    .backward = backward};

}  // namespace sim
