#include "tools/halflab/hist/cast.h"

#include <algorithm>
#include <cmath>

#include "fp16/exponent.h"

namespace halflab::hist {
namespace {

using fp16::ExponentHistogram;

constexpr double more_at_most = 0.001;  // of the non-zero values, over the plateau

}  // namespace

CastCounts& CastCounts::operator+=(const CastCounts& other) {
  flushed += other.flushed;
  subnormal += other.subnormal;
  overflowed += other.overflowed;
  return *this;
}

std::uint64_t CastForecast::flushed(int scale_log2) const {
  const int last = last_flushed_log2(scale_log2);
  std::uint64_t count = 0;
  for (int e = ExponentHistogram::min_exponent; e <= ExponentHistogram::max_exponent && e <= last; ++e)
    count += e < last ? exponents_.octave(e).total : exponents_.octave(e).powers_of_two;
  return count;
}

double CastForecast::flushed_share(int scale_log2) const {
  const std::uint64_t nonzero = exponents_.nonzero_finite();
  return nonzero == 0 ? 0 : static_cast<double>(flushed(scale_log2)) / static_cast<double>(nonzero);
}

double CastForecast::norm_lost_at_most(int scale_log2, double square_sum) const {
  const int last = last_flushed_log2(scale_log2);
  double lost = 0;
  for (int e = ExponentHistogram::min_exponent; e <= ExponentHistogram::max_exponent && e <= last; ++e) {
    const ExponentHistogram::Octave& octave = exponents_.octave(e);
    const std::uint64_t inside = e < last ? octave.total - octave.powers_of_two : 0;
    lost += std::ldexp(static_cast<double>(octave.powers_of_two), 2 * e) +
            std::ldexp(static_cast<double>(inside), 2 * e + 2);
  }
  return lost == 0 ? 0 : std::min(1.0, std::sqrt(lost / square_sum));
}

std::optional<int> CastForecast::headroom_log2() const {
  const double largest = exponents_.max_abs();
  if (!(largest > 0)) return std::nullopt;
  const double limit = format_.max();
  const int headroom = std::ilogb(limit) - std::ilogb(largest);
  return headroom - (std::ldexp(largest, headroom) > limit) + scaled_by_log2_;
}

std::optional<int> CastForecast::plateau_lowest_log2() const {
  const std::optional<int> highest = headroom_log2();
  if (!highest) return std::nullopt;
  const double allowed = flushed_share(*highest) + more_at_most;
  int lowest = *highest;
  while (lowest > *highest - 300 && flushed_share(lowest - 1) <= allowed) --lowest;
  return lowest;
}

std::optional<double> CastForecast::octaves_alive() const {
  if (!(exponents_.max_abs() > 0)) return std::nullopt;
  return std::log2(exponents_.max_abs()) - last_flushed_log2(0);
}

CastCounts forecast_binary16(const ExponentHistogram& exponents, int stored_scale_log2) {
  return {.flushed = exponents.flushed_at_scale(stored_scale_log2),
          .subnormal = exponents.subnormal_at_scale(stored_scale_log2),
          .overflowed = exponents.overflowed_at_scale(stored_scale_log2)};
}

}  // namespace halflab::hist
