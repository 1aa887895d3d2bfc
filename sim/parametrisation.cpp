#include "sim/parametrisation.h"

namespace sim {
namespace {

UnitMultipliers of_convolution(const UnitScaling& rule, std::span<const Tensor* const> inputs,
                               const OperationOptions& options) {
  const Shape &x = inputs[0]->shape(), &w = inputs[1]->shape();
  const auto extent = [&](std::size_t in) { return (in + 2 * options.padding - w[2]) / options.stride + 1; };
  return rule.conv2d({.batch = x[0],
                      .in_channels = w[1],
                      .out_channels = w[0],
                      .kernel_area = w[2] * w[3],
                      .output_pixels = extent(x[2]) * extent(x[3]),
                      .stride = options.stride});
}

}  // namespace

UnitMultipliers multipliers_of(const UnitScaling& rule, const Operation& operation,
                               std::span<const Tensor* const> inputs, const OperationOptions& options,
                               std::string_view layer) {
  const Tensor& x = *inputs[0];
  const auto rows_of_last_dimension = [&] { return x.size() / x.shape().back(); };
  const std::size_t last = x.shape().back();
  if (&operation == &linear || &operation == &lstm) {
    const Shape& w = inputs[1]->shape();
    const LinearSizes sizes{.rows = x.size() / w[1], .fan_in = w[1], .fan_out = w[0]};
    return layer == "output" ? rule.readout(sizes) : rule.linear(sizes);
  }
  if (&operation == &conv2d) return of_convolution(rule, inputs, options);
  if (&operation == &matmul) return rule.matmul(x.shape()[0], last, inputs[1]->shape()[1]);
  if (&operation == &attention_context)
    return rule.matmul(options.context, options.context, inputs[1]->shape().back() / options.heads);
  if (&operation == &add) return rule.add();
  if (&operation == &dropout) return rule.dropout(options.probability);
  if (&operation == &softmax) return rule.softmax(last);
  if (&operation == &gelu) return rule.gelu();
  if (&operation == &relu) return rule.relu();
  if (&operation == &layer_norm) return rule.norm(rows_of_last_dimension());
  if (&operation == &batch_norm) return rule.norm(x.size() / x.shape()[1]);
  if (&operation == &embedding) return rule.embedding(x.shape()[0], options.labels.size());
  if (&operation == &softmax_cross_entropy)
    return rule.softmax_cross_entropy(options.labels.size(), x.size() / options.labels.size());
  if (&operation == &mean_squared_error) return rule.mean_squared_error(x.size());
  return {};
}

}  // namespace sim
