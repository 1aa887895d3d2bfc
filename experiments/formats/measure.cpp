#include <algorithm>
#include <cmath>

#include "experiments/formats/findings.h"
#include "experiments/frame/parallel.h"
#include "fp16/elementary.h"
#include "fp16/formats.h"
#include "sim/tensor/random.h"

namespace experiments::formats {
namespace {

using fp16::BlockFormat;
using fp16::ScaleRule;

/// Relative errors of a tensor whose rows come one after the other.
class RelativeErrors {
 public:
  void add(double x, double rounded) {
    const double error = rounded - x;
    row_square_ += x * x;
    row_error_square_ += error * error;
    if (++values_ % row_length == 0) end_row();
  }

  double of_tensor() const { return std::sqrt(error_square_ / square_); }
  double mean_of_rows() const {
    return sum_of_rows_ / (static_cast<double>(values_) / static_cast<double>(row_length));
  }

 private:
  void end_row() {
    sum_of_rows_ += std::sqrt(row_error_square_ / row_square_);
    square_ += row_square_;
    error_square_ += row_error_square_;
    row_square_ = row_error_square_ = 0;
  }

  std::size_t values_ = 0;
  double square_ = 0, error_square_ = 0, sum_of_rows_ = 0;
  double row_square_ = 0, row_error_square_ = 0;
};

/// Rounds `values` with a scale for every `block_size` of them.
template <const BlockFormat& B>
Loss round(std::span<const float> values, std::size_t block_size, ScaleRule rule) {
  fp16::BlockOptions options{.scale_rule = rule};
  if constexpr (B.has_tensor_scale)
    options.tensor_scale = fp16::tensor_scale<B>(fp16::absolute_maximum(values));
  auto scale = fp16::block_scale<B>(0);
  std::uint64_t flushed = 0, saturated = 0;
  RelativeErrors errors;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (i % block_size == 0) {
      const std::size_t size = std::min(block_size, values.size() - i);
      scale = fp16::block_scale<B>(fp16::absolute_maximum(values.subspan(i, size)), options);
    }
    const auto element = fp16::encode_element<B>(values[i], scale, options.tensor_scale);
    const double rounded = fp16::decode_element<B>(element.bits, scale, options.tensor_scale);
    flushed += rounded == 0 && values[i] != 0;
    saturated += element.flags.overflow;
    errors.add(values[i], rounded);
  }
  const double count = static_cast<double>(values.size());
  return {.relative_error = errors.of_tensor(),
          .row_relative_error = errors.mean_of_rows(),
          .fraction_flushed = static_cast<double>(flushed) / count,
          .fraction_saturated = static_cast<double>(saturated) / count};
}

// Formats without a block format of their own, to be scaled by powers of two like the others.
constexpr BlockFormat scaled_binary16{
    .name = "binary16", .element = fp16::binary16, .scale = fp16::e8m0, .block_size = 32};
constexpr BlockFormat scaled_bfloat16{
    .name = "bfloat16", .element = fp16::bfloat16, .scale = fp16::e8m0, .block_size = 32};

template <const BlockFormat& B>
constexpr Scheme one_scale() {
  return {.name = fp16::name_of(B.element),
          .bits_per_value = static_cast<double>(B.element.width()),
          .block_size = 0,
          .measure = round<B>};
}

template <const BlockFormat& B>
constexpr Scheme block_scales() {
  return {.name = B.name,
          .bits_per_value = B.bits_per_value(),
          .block_size = static_cast<std::size_t>(B.block_size),
          .measure = round<B>};
}

constexpr std::array schemes{
    one_scale<scaled_binary16>(),     one_scale<scaled_bfloat16>(),     one_scale<fp16::mxfp8_e5m2>(),
    one_scale<fp16::mxfp8_e4m3>(),    one_scale<fp16::mxfp6_e3m2>(),    one_scale<fp16::mxfp6_e2m3>(),
    one_scale<fp16::mxfp4>(),         block_scales<fp16::mxfp8_e5m2>(), block_scales<fp16::mxfp8_e4m3>(),
    block_scales<fp16::mxfp6_e3m2>(), block_scales<fp16::mxfp6_e2m3>(), block_scales<fp16::mxfp4>(),
    block_scales<fp16::nvfp4>(),
};
constexpr std::array resized{one_scale<fp16::mxfp8_e4m3>(), one_scale<fp16::mxfp4>(),
                             one_scale<fp16::mxfp6_e2m3>()};

/// Normal random numbers, row by row times 2^(spread * z) with a normal z for each row.
std::vector<float> make_tensor(const Options& options, int spread) {
  constexpr float ln2 = 0x1.62e43p-1f;
  const sim::RandomStream values(options.seed, "formats.values"), rows(options.seed, "formats.rows");
  std::vector<float> tensor(options.elements());
  for (std::size_t i = 0; i < tensor.size(); ++i) {
    const float octaves = static_cast<float>(spread) * rows.normal(i / row_length);
    tensor[i] = values.normal(i) * fp16::exp(octaves * ln2);
  }
  return tensor;
}

std::vector<Measured> spread_points() {
  std::vector<Measured> points;
  for (const Scheme& scheme : schemes) {
    for (int spread = 0; spread <= largest_spread; ++spread)
      points.push_back({.scheme = &scheme, .spread = spread, .block_size = scheme.block_size});
  }
  return points;
}

std::vector<Measured> block_size_points(const Options& options) {
  const std::size_t elements = options.elements();
  std::vector<Measured> points;
  for (const Scheme& scheme : resized) {
    for (const ScaleRule rule : block_size_rules) {
      for (std::size_t size = 1; size < 2 * elements; size *= 2) {
        points.push_back({.scheme = &scheme,
                          .spread = options.spread,
                          .block_size = std::min(size, elements),
                          .rule = rule});
      }
    }
  }
  return points;
}

}  // namespace

std::span<const Scheme> resized_schemes() {
  return resized;
}

Findings measure(const Options& options, Run& run) {
  Findings found{.spreads = spread_points(), .block_sizes = block_size_points(options)};
  Progress progress = run.progress("rounding", found.spreads.size() + found.block_sizes.size());
  std::vector<std::vector<float>> tensors(largest_spread + 1);
  parallel_for_each(tensors.size(), run.threads(), [&](std::size_t spread) {
    tensors[spread] = make_tensor(options, static_cast<int>(spread));
  });
  for (std::vector<Measured>* points : {&found.spreads, &found.block_sizes}) {
    parallel_for_each(points->size(), run.threads(), [&](std::size_t i) {
      Measured& point = (*points)[i];
      const std::vector<float>& tensor = tensors[static_cast<std::size_t>(point.spread)];
      const std::size_t block_size = point.block_size == 0 ? tensor.size() : point.block_size;
      point.loss = point.scheme->measure(tensor, block_size, point.rule);
      progress.tick();
    });
  }
  return found;
}

}  // namespace experiments::formats
