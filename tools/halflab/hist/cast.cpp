#include "tools/halflab/hist/cast.h"

#include <algorithm>
#include <cmath>

#include "fp16/codec.h"
#include "tools/halflab/formats.h"

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

template <class Visit>
void CastForecast::for_each_flushed(int scale_log2, Visit&& visit) const {
  const std::optional<int> lowest = exponents_.lowest_exponent();
  if (!lowest) return;
  const int last = last_flushed_log2(scale_log2), highest = *exponents_.highest_exponent();
  for (int e = *lowest; e <= std::min(last, highest); ++e) {
    const Exponents::Octave octave = exponents_.octave(e);
    visit(e, octave, e < last ? octave.total : octave.powers_of_two);
  }
}

std::uint64_t CastForecast::flushed(int scale_log2) const {
  std::uint64_t all = 0;
  for_each_flushed(scale_log2, [&](int, const Exponents::Octave&, std::uint64_t count) { all += count; });
  return all;
}

double CastForecast::flushed_share(int scale_log2) const {
  const std::uint64_t nonzero = exponents_.nonzero_finite();
  return nonzero == 0 ? 0 : static_cast<double>(flushed(scale_log2)) / static_cast<double>(nonzero);
}

double CastForecast::norm_lost_at_most(int scale_log2, const SquareSum& squares) const {
  SquareSum lost;
  for_each_flushed(scale_log2, [&](int e, const Exponents::Octave& octave, std::uint64_t count) {
    lost.add(std::ldexp(1.0, e), static_cast<double>(octave.powers_of_two));
    const std::uint64_t inside = count - octave.powers_of_two;
    if (inside > 0) lost.add(std::ldexp(1.0, e + 1), static_cast<double>(inside));
  });
  return lost.is_zero() ? 0 : std::min(1.0, lost.norm() / squares.norm());
}

std::optional<int> CastForecast::headroom_log2() const {
  const double largest = exponents_.max_abs();
  if (!(largest > 0)) return std::nullopt;
  const int headroom = std::ilogb(format_.max()) - std::ilogb(largest);
  const bool overflows = with_format(format_, [&]<const fp16::Format & F>() {
    return fp16::encode<F>(std::ldexp(largest, headroom)).flags.overflow;
  });
  return headroom - overflows + scaled_by_log2_;
}

std::optional<int> CastForecast::plateau_lowest_log2() const {
  const std::optional<int> highest = headroom_log2();
  if (!highest) return std::nullopt;
  const double allowed = flushed_share(*highest) + more_at_most;
  const int all_zero =
      *highest - (format_.emax() - format_.emin_subnormal() + 2);  // at all smaller scales, too
  int lowest = *highest;
  while (lowest > all_zero && flushed_share(lowest - 1) <= allowed) --lowest;
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
