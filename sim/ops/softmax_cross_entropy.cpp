#include "sim/ops/softmax_cross_entropy.h"

#include <algorithm>
#include <stdexcept>
#include <string>

#include "sim/ops/groups.h"
#include "sim/ops/loss.h"
#include "sim/ops/softmax_rows.h"

namespace sim {
namespace {

constexpr std::int32_t left_out = -1;

void check_labels(std::span<const std::int32_t> labels, std::size_t rows, std::size_t classes) {
  if (labels.size() != rows) {
    throw std::invalid_argument("softmax_cross_entropy: " + std::to_string(labels.size()) + " labels for " +
                                std::to_string(rows) + " rows; one per row is allowed");
  }
  for (std::size_t row = 0; row < rows; ++row) {
    const std::int32_t label = labels[row];
    if (label >= left_out && label < static_cast<std::int64_t>(classes)) continue;
    throw std::invalid_argument("softmax_cross_entropy: label " + std::to_string(label) + " of row " +
                                std::to_string(row) + "; allowed are 0 to " + std::to_string(classes - 1) +
                                ", and -1 for a row to leave out");
  }
}

std::size_t rows_not_left_out(const SoftmaxCrossEntropyOptions& options) {
  return options.labels.size() - static_cast<std::size_t>(std::ranges::count(options.labels, left_out));
}

double normaliser_of_rows(const SoftmaxCrossEntropyOptions& options) {
  return normaliser_of(softmax_cross_entropy, options.normaliser, rows_not_left_out(options));
}

Tensor forward(OperationCall& call) {
  const Tensor& logits = *call.inputs[0];
  const auto& options = call.options.get<SoftmaxCrossEntropyOptions>();
  const std::vector<std::int32_t>& labels = options.labels;
  const std::size_t classes = logits.shape().back(), rows = logits.size() / classes;
  check_labels(labels, rows, classes);
  call.saved.emplace_back(logits.shape(), call.output_format);
  return with_real(is_binary64(logits), [&](auto real) {
    using Real = decltype(real);
    std::vector<Real> losses(rows);
    map_groups<Real>({&call.saved[0]}, rows, {&logits}, call.arithmetic.threads,
                     [&](std::size_t row, Real* probabilities, const auto& inputs) {
                       const auto [largest, sum] =
                           softmax_row(inputs[0], classes, classes, probabilities, fp16::binary32);
                       if (labels[row] != left_out)
                         losses[row] = elementary::log(sum) - (inputs[0][labels[row]] - largest);
                     });
    const Real total = interleaved_sum(fp16::binary32, std::span<const Real>(losses));
    return scalar_output(call, total / static_cast<Real>(normaliser_of_rows(options)));
  });
}

/// (softmax - one_hot(label)) (upstream / normaliser), 0 in rows left out: the same but for exact shifts for
/// every power-of-two loss scale.
void backward(const OperationGradient& g) {
  const auto& options = g.options.get<SoftmaxCrossEntropyOptions>();
  const std::vector<std::int32_t>& labels = options.labels;
  const std::size_t classes = g.inputs[0]->shape().back(), rows = labels.size();
  with_real(is_binary64(g.output_gradient), [&](auto real) {
    using Real = decltype(real);
    const Real factor =
        static_cast<Real>(g.output_gradient.element(0)) / static_cast<Real>(normaliser_of_rows(options));
    map_groups<Real>(g.input_gradients[0], rows, {&g.saved[0]}, g.arithmetic.threads,
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

UnitMultipliers unit_multipliers(UnitScaledCall& call) {
  const std::size_t rows = rows_not_left_out(call.options.get<SoftmaxCrossEntropyOptions>());
  return evaluated_as_sum<SoftmaxCrossEntropyOptions>(
      call, call.rule.softmax_cross_entropy(rows, call.inputs[0]->shape().back()));
}

}  // namespace

constinit const Operation softmax_cross_entropy{
    .name = "softmax_cross_entropy",
    .description = "mean over the rows of -log softmax(logits)[label]",
    .casts = CastClasses{.torch_autocast = AutocastClass::full_precision,
                         .apex_o1 = AutocastClass::full_precision},
    .is_loss = true,
    .forward = forward,
    .backward = backward,
    .unit_multipliers = unit_multipliers};

}  // namespace sim
