#include "sim/statistics/twin_comparison.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <string_view>

#include "sim/statistics/log2.h"

namespace sim {
namespace {

/// The site whose gradient is summed over everything but its second dimension to give that of `bias`.
std::optional<std::size_t> terms_of(std::span<const GradientSite> sites, std::size_t bias,
                                    const SiteGradients& gradients) {
  constexpr std::string_view suffix = ".bias";
  const std::string_view name = sites[bias].name;
  if (sites[bias].kind != GradientSite::Kind::weight || !name.ends_with(suffix)) return std::nullopt;
  const auto layer =
      std::ranges::find(sites, name.substr(0, name.size() - suffix.size()), &GradientSite::name);
  if (layer == sites.end()) return std::nullopt;
  const auto site = static_cast<std::size_t>(layer - sites.begin());
  return gradients.gradients[site].shape()[1] == gradients.gradients[bias].size() ? std::optional(site)
                                                                                  : std::nullopt;
}

}  // namespace

double TwinComparison::twin_norm() const {
  return std::sqrt(twin_square);
}

double TwinComparison::run_norm() const {
  return std::sqrt(run_square);
}

double TwinComparison::relative_error() const {
  return twin_square == 0 ? 0 : std::sqrt(error_square / twin_square);
}

double TwinComparison::norm_share_flushed() const {
  return twin_square == 0 ? 0 : std::sqrt(flushed_square / twin_square);
}

double TwinComparison::cosine() const {
  const double norms = twin_norm() * run_norm();
  return norms == 0 ? 0 : product / norms;
}

double TwinComparison::octaves_alive() const {
  return twin_max_abs == 0 ? -std::numeric_limits<double>::infinity() : log2_of(twin_max_abs) + 25;
}

TwinComparison& TwinComparison::operator+=(const TwinComparison& other) {
  is_rounding_noise = other.is_rounding_noise && (is_rounding_noise || total == 0);
  total += other.total;
  nonzero += other.nonzero;
  flushed += other.flushed;
  flushed_at_cast += other.flushed_at_cast;
  subnormal += other.subnormal;
  overflow += other.overflow;
  nonfinite += other.nonfinite;
  nan += other.nan;
  same_sign += other.same_sign;
  twin_square += other.twin_square;
  error_square += other.error_square;
  flushed_square += other.flushed_square;
  run_square += other.run_square;
  product += other.product;
  twin_max_abs = std::max(twin_max_abs, other.twin_max_abs);
  return *this;
}

TwinComparison compare(const Tensor& run, double scale, const Tensor& twin,
                       const fp16::RoundingCounts& rounding) {
  constexpr std::size_t piece = 2048;
  double run_buffer[piece], twin_buffer[piece];
  const double inverse = 1.0 / scale;
  TwinComparison result{.total = run.size(), .flushed_at_cast = rounding.flushed};
  for (std::size_t offset = 0; offset < run.size(); offset += piece) {
    const std::size_t n = std::min(piece, run.size() - offset);
    const double* runs = read(run, offset, n, std::span(run_buffer));
    const double* twins = read(twin, offset, n, std::span(twin_buffer));
    for (std::size_t i = 0; i < n; ++i) {
      const double r = runs[i], t = twins[i], unscaled = r * inverse;
      const double magnitude = std::fabs(r);
      const bool alive = t != 0, flushed = alive && r == 0;
      const bool nonfinite = !(magnitude <= std::numeric_limits<float>::max());
      result.nonzero += alive;
      result.flushed += flushed;
      result.subnormal += alive && magnitude > 0 && magnitude < 0x1p-14;
      result.overflow += alive && nonfinite;
      result.nonfinite += nonfinite;
      result.nan += std::isnan(r);
      result.same_sign += (t > 0 && r > 0) || (t < 0 && r < 0);
      result.twin_square += t * t;
      result.error_square += (unscaled - t) * (unscaled - t);
      result.flushed_square += flushed ? t * t : 0;
      result.run_square += unscaled * unscaled;
      result.product += unscaled * t;
      result.twin_max_abs = std::max(result.twin_max_abs, std::fabs(t));
    }
  }
  return result;
}

std::vector<TwinComparison> compare_sites(std::span<const GradientSite> sites, const SiteGradients& run,
                                          const SiteGradients& twin) {
  std::vector<TwinComparison> comparisons;
  for (std::size_t site = 0; site < sites.size(); ++site) {
    comparisons.push_back(
        compare(run.gradients[site], run.scales[site], twin.gradients[site], run.rounding[site]));
  }
  for (std::size_t site = 0; site < sites.size(); ++site) {
    const std::optional<std::size_t> terms = terms_of(sites, site, twin);
    if (!terms) continue;
    const double unit_roundoff = std::ldexp(1.0, -run.gradients[*terms].format().precision);
    comparisons[site].is_rounding_noise =
        comparisons[*terms].twin_square > 0 &&
        comparisons[site].twin_square <= unit_roundoff * comparisons[*terms].twin_square;
  }
  return comparisons;
}

TwinComparison total_of(const std::vector<TwinComparison>& comparisons) {
  TwinComparison total;
  for (const TwinComparison& comparison : comparisons) {
    if (!comparison.is_rounding_noise) {
      total += comparison;
    } else {
      total.nonfinite += comparison.nonfinite;
      total.nan += comparison.nan;
    }
  }
  return total;
}

}  // namespace sim
