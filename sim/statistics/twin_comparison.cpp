#include "sim/statistics/twin_comparison.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>
#include <string_view>

#include "fp16/config.h"
#include "sim/tensor/log2.h"

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

/// What compare() counts and sums, in lanes that vectorise: element i belongs to lane i mod 8.
struct PairSums {
  static constexpr std::size_t lanes = 8;
  using Counts = std::array<std::uint64_t, lanes>;
  using Sums = std::array<double, lanes>;

  double inverse_scale;
  Counts nonzero = {}, flushed = {}, subnormal = {}, overflow = {}, nonfinite = {}, nan = {}, same_sign = {};
  Sums twin_square = {}, error_square = {}, flushed_square = {}, run_square = {}, product = {}, max_abs = {};

  void add(std::size_t lane, double run, double twin) {
    const double unscaled = run * inverse_scale, magnitude = std::fabs(run), error = unscaled - twin;
    const std::uint64_t alive = twin != 0, zero = run == 0;
    const std::uint64_t finite = magnitude <= std::numeric_limits<float>::max();
    nonzero[lane] += alive;
    flushed[lane] += alive & zero;
    subnormal[lane] += alive & (zero ^ 1) & std::uint64_t{magnitude < 0x1p-14};
    overflow[lane] += alive & (finite ^ 1);
    nonfinite[lane] += finite ^ 1;
    nan[lane] += run != run;
    same_sign[lane] += (std::uint64_t{twin > 0} & std::uint64_t{run > 0}) |
                       (std::uint64_t{twin < 0} & std::uint64_t{run < 0});
    twin_square[lane] += twin * twin;
    error_square[lane] += error * error;
    flushed_square[lane] += (alive & zero) != 0 ? twin * twin : 0;
    run_square[lane] += unscaled * unscaled;
    product[lane] += unscaled * twin;
    max_abs[lane] = std::fabs(twin) > max_abs[lane] ? std::fabs(twin) : max_abs[lane];
  }

  TwinComparison total() const {
    const auto count = [](const Counts& c) { return std::accumulate(c.begin(), c.end(), std::uint64_t{0}); };
    const auto sum = [](const Sums& s) { return std::accumulate(s.begin(), s.end(), 0.0); };
    return {.nonzero = count(nonzero),
            .flushed = count(flushed),
            .subnormal = count(subnormal),
            .overflow = count(overflow),
            .nonfinite = count(nonfinite),
            .nan = count(nan),
            .same_sign = count(same_sign),
            .twin_square = sum(twin_square),
            .error_square = sum(error_square),
            .flushed_square = sum(flushed_square),
            .run_square = sum(run_square),
            .product = sum(product),
            .twin_max_abs = std::ranges::max(max_abs)};
  }
};

FP16_VECTOR_CLONES void add_pairs(PairSums& sums, const double* runs, const double* twins,
                                  std::size_t count) {
  PairSums local = sums;  // in registers
  std::size_t i = 0;
  for (; i + PairSums::lanes <= count; i += PairSums::lanes) {
    for (std::size_t lane = 0; lane < PairSums::lanes; ++lane)
      local.add(lane, runs[i + lane], twins[i + lane]);
  }
  for (; i < count; ++i) local.add(i % PairSums::lanes, runs[i], twins[i]);
  sums = local;
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
  static_assert(piece % PairSums::lanes == 0);
  double run_buffer[piece], twin_buffer[piece];
  PairSums sums{.inverse_scale = 1.0 / scale};
  for (std::size_t offset = 0; offset < run.size(); offset += piece) {
    const std::size_t n = std::min(piece, run.size() - offset);
    add_pairs(sums, read(run, offset, n, std::span(run_buffer)),
              read(twin, offset, n, std::span(twin_buffer)), n);
  }
  TwinComparison result = sums.total();
  result.total = run.size();
  result.flushed_at_cast = rounding.flushed;
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
    const double unit_roundoff = run.gradients[*terms].format().unit_roundoff();
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
