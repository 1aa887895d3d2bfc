#include "tools/halflab/hist/exponents.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace halflab::hist {
namespace {

using fp16::ExponentHistogram;

bool is_beyond(double value) {
  const double magnitude = std::fabs(value);
  return std::isfinite(value) && magnitude > 0 &&
         (magnitude < std::ldexp(1.0, ExponentHistogram::min_exponent) ||
          magnitude >= std::ldexp(1.0, ExponentHistogram::max_exponent + 1));
}

}  // namespace

void Exponents::add(std::span<const double> values) {
  while (!values.empty()) {
    const auto end = std::ranges::find_if(values, is_beyond);
    const auto count = static_cast<std::size_t>(end - values.begin());
    within_.add(values.first(count));
    if (end == values.end()) return;
    const int exponent = std::ilogb(*end);
    Octave& octave = beyond_[exponent];
    ++octave.total;
    octave.powers_of_two += std::fabs(*end) == std::ldexp(1.0, exponent);
    largest_beyond_ = std::max(largest_beyond_, std::fabs(*end));
    values = values.subspan(count + 1);
  }
}

Exponents& Exponents::operator+=(const Exponents& other) {
  within_ += other.within_;
  for (const auto& [exponent, octave] : other.beyond_) {
    beyond_[exponent].total += octave.total;
    beyond_[exponent].powers_of_two += octave.powers_of_two;
  }
  largest_beyond_ = std::max(largest_beyond_, other.largest_beyond_);
  return *this;
}

Exponents::Octave Exponents::octave(int exponent) const {
  if (exponent >= ExponentHistogram::min_exponent && exponent <= ExponentHistogram::max_exponent) {
    const ExponentHistogram::Octave& octave = within_.octave(exponent);
    return {octave.total, octave.powers_of_two};
  }
  const auto found = beyond_.find(exponent);
  return found == beyond_.end() ? Octave{} : found->second;
}

std::optional<int> Exponents::lowest_exponent() const {
  const std::optional<int> within = within_.lowest_exponent();
  if (beyond_.empty()) return within;
  return std::min(beyond_.begin()->first, within.value_or(beyond_.begin()->first));
}

std::optional<int> Exponents::highest_exponent() const {
  const std::optional<int> within = within_.highest_exponent();
  if (beyond_.empty()) return within;
  return std::max(beyond_.rbegin()->first, within.value_or(beyond_.rbegin()->first));
}

std::uint64_t Exponents::nonzero_finite() const {
  std::uint64_t count = within_.nonzero_finite();
  for (const auto& [exponent, octave] : beyond_) count += octave.total;
  return count;
}

ExponentHistogram Exponents::in_binary32() const {
  ExponentHistogram all = within_;
  for (const auto& [exponent, octave] : beyond_) {
    const bool is_above = exponent > 0;
    const std::uint64_t top = is_above ? octave.total : 0;
    const std::array counted{ExponentHistogram::Octave{.total = octave.total, .near_next = top, .top = top}};
    all += ExponentHistogram(is_above ? ExponentHistogram::max_exponent : ExponentHistogram::min_exponent,
                             counted, {.max_abs = max_abs()});
  }
  return all;
}

}  // namespace halflab::hist
