#include "sim/statistics/site_statistics.h"

#include <cmath>
#include <limits>
#include <span>

#include "sim/ops/sums.h"
#include "sim/tape/gradients.h"
#include "sim/tensor/log2.h"

namespace sim {
namespace {

double sum_of_squares(const Tensor& tensor) {
  SumOfSquares squares;
  if (is_binary64(tensor)) {
    squares.add(tensor.elements<double>());
  } else {  // in pieces of a multiple of 16
    for_each_piece(tensor, [&](std::span<const float> values) { squares.add(values); });
  }
  return squares.total();
}

}  // namespace

std::uint64_t SiteStatistics::subnormal() const {
  std::uint64_t count = 0;
  for (int exponent = fp16::ExponentHistogram::min_exponent; exponent < -14; ++exponent)
    count += exponents.octave(exponent).total;
  return count;
}

double SiteStatistics::norm() const {
  return std::sqrt(square) / scale;
}

double SiteStatistics::octaves_alive() const {
  const double largest = exponents.max_abs() / scale;
  return largest == 0 ? -std::numeric_limits<double>::infinity() : log2_of(largest) + 25;
}

SiteStatistics statistics_of(const Tensor& gradient, double scale, const fp16::RoundingCounts& rounding) {
  SiteStatistics result{.rounding = rounding, .scale = scale, .square = sum_of_squares(gradient)};
  add_exponents(result.exponents, gradient);
  return result;
}

std::vector<SiteStatistics> site_statistics(const SiteGradients& run) {
  std::vector<SiteStatistics> statistics;
  for (std::size_t site = 0; site < run.gradients.size(); ++site)
    statistics.push_back(statistics_of(run.gradients[site], run.scales[site], run.rounding[site]));
  return statistics;
}

}  // namespace sim
