#include "sim/tape/parametrisation.h"

#include <algorithm>

#include "sim/ops/patches.h"

namespace sim {
namespace {

UnitMultipliers of_convolution(const UnitScaling& rule, const ConvolutionSizes& sizes) {
  return rule.conv2d({.batch = sizes.batch,
                      .in_channels = sizes.in_channels,
                      .out_channels = sizes.out_channels,
                      .kernel_area = sizes.kernel * sizes.kernel,
                      .output_pixels = sizes.pixels(),
                      .stride = sizes.stride});
}

/// The loss keeps its ordinary value, whatever it is divided by.
UnitMultipliers of_loss(const UnitScaling& rule, const Operation& operation, const Tensor& x,
                        const OperationOptions& options) {
  UnitMultipliers multipliers;
  if (&operation == &softmax_cross_entropy) {
    const auto counted = options.labels.size() - std::ranges::count(options.labels, -1);
    multipliers = rule.softmax_cross_entropy(counted, x.shape().back());
  } else if (&operation == &mean_squared_error) {
    multipliers = rule.mean_squared_error(x.size());
  } else if (&operation == &smooth_l1) {
    multipliers = rule.smooth_l1(x.size());
  }
  if (options.normaliser != 0 && multipliers != UnitMultipliers{})
    multipliers.output = 1 / options.normaliser;
  return multipliers;
}

}  // namespace

UnitMultipliers multipliers_of(const UnitScaling& rule, const Operation& operation,
                               std::span<const Tensor* const> inputs, const OperationOptions& options,
                               std::string_view layer) {
  const Tensor& x = *inputs[0];
  const auto rows_of_last_dimension = [&] { return x.size() / x.shape().back(); };
  const std::size_t last = x.shape().back();
  if (&operation == &lstm) {
    const std::size_t hidden = inputs[2]->shape()[1];
    return rule.lstm({.rows = rows_of_last_dimension(), .inputs = last, .hidden = hidden});
  }
  if (&operation == &linear) {
    const Shape& w = inputs[1]->shape();
    const LinearSizes sizes{.rows = x.size() / w[1], .fan_in = w[1], .fan_out = w[0]};
    return layer == "output" ? rule.readout(sizes) : rule.linear(sizes);
  }
  if (&operation == &conv2d) return of_convolution(rule, convolution_sizes(inputs, options));
  if (&operation == &matmul) return rule.matmul(x.shape()[0], last, inputs[1]->shape()[1]);
  if (&operation == &attention_context)
    return rule.matmul(options.context, options.context, inputs[1]->shape().back() / options.heads);
  if (&operation == &add) return x.size() == 1 ? UnitMultipliers() : rule.add();  // of losses
  if (&operation == &dropout) return rule.dropout(options.probability);
  if (&operation == &softmax) return rule.softmax(last);
  if (&operation == &gelu) return rule.gelu();
  if (&operation == &relu) return rule.relu();
  if (&operation == &sigmoid) return rule.sigmoid();
  if (&operation == &global_average_pool)
    return rule.global_average_pool(x.size() / (x.shape()[0] * x.shape()[1]));
  if (&operation == &layer_norm) return rule.norm(rows_of_last_dimension());
  if (&operation == &batch_norm) return rule.norm(x.size() / x.shape()[1]);
  if (&operation == &embedding) return rule.embedding(x.shape()[0], options.labels.size());
  if (operation.is_loss) return of_loss(rule, operation, x, options);
  return {};
}

}  // namespace sim
