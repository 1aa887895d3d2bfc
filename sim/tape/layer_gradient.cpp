#include "sim/tape/layer_gradient.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <vector>

#include "fp16/elementary.h"
#include "sim/tensor/tensor_contents.h"

namespace sim {
namespace {

struct Moments {
  double mean = 0, standard_deviation = 0;
};

template <class Value>
Moments moments_of(std::span<const double> values, Value value) {
  double sum = 0, square = 0, count = 0;
  for (const double x : values) {
    if (value(x)) sum += *value(x), ++count;
  }
  if (count == 0) return {};
  const double mean = sum / count;
  for (const double x : values) {
    if (const std::optional<double> v = value(x)) square += (*v - mean) * (*v - mean);
  }
  return {mean, std::sqrt(square / count)};
}

/// Smallest non-zero and largest magnitude of one output's share of a tensor.
struct Range {
  double smallest = std::numeric_limits<double>::infinity();
  double largest = 0;

  void add(double x) {
    const double magnitude = std::fabs(x);
    if (magnitude > 0) smallest = std::min(smallest, magnitude);
    largest = std::max(largest, magnitude);
  }
};

/// Ranges of elements laid out as repeats x outputs x inner.
std::vector<Range> ranges_of(const Tensor& tensor, std::size_t outputs, std::size_t inner) {
  std::vector<Range> ranges(outputs);
  const std::vector<double> values = values_of<double>(tensor);
  for (std::size_t i = 0; i < values.size(); ++i) ranges[i / inner % outputs].add(values[i]);
  return ranges;
}

}  // namespace

TensorStatistics statistics_of(const Tensor& tensor, bool moments, bool log_moments, bool magnitudes) {
  TensorStatistics result;
  const std::vector<double> values = values_of<double>(tensor);
  if (moments) {
    const Moments plain = moments_of(values, [](double x) { return std::optional(x); });
    result.mean = plain.mean;
    result.standard_deviation = plain.standard_deviation;
  }
  if (log_moments) {
    const Moments logs = moments_of(
        values, [](double x) { return x == 0 ? std::nullopt : std::optional(fp16::log(std::fabs(x))); });
    result.log_mean = logs.mean;
    result.log_standard_deviation = logs.standard_deviation;
  }
  if (magnitudes) {
    Range range;
    for (const double x : values) range.add(x);
    result.max_abs = static_cast<float>(range.largest);
    if (range.largest > 0) result.min_abs = static_cast<float>(range.smallest);
  }
  return result;
}

LayerGradient layer_gradient(const Tensor& delta, const Tensor& weights, double scale,
                             const LayerNeeds& needs) {
  LayerGradient result{.scale = scale};
  result.gradient = statistics_of(delta, needs.moments, needs.log_moments, needs.magnitudes);
  if (needs.weights)
    result.weights = statistics_of(weights, needs.moments, needs.log_moments, needs.magnitudes);
  const Shape& w = weights.shape();
  result.fan_out = w[0] * (w.size() == 4 ? w[2] * w[3] : 1);
  const std::size_t outputs = delta.shape()[1];
  if (!needs.products || outputs != w[0]) return result;
  const std::vector<Range> of_delta = ranges_of(delta, outputs, delta.size() / delta.shape()[0] / outputs);
  const std::vector<Range> of_weights = ranges_of(weights, outputs, weights.size() / outputs);
  Range products;
  for (std::size_t k = 0; k < outputs; ++k) {
    products.largest = std::max(products.largest, of_delta[k].largest * of_weights[k].largest);
    products.smallest = std::min(products.smallest, of_delta[k].smallest * of_weights[k].smallest);
  }
  result.max_abs_product = static_cast<float>(products.largest);
  if (products.largest > 0) result.min_abs_product = static_cast<float>(products.smallest);
  return result;
}

}  // namespace sim
