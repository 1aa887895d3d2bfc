#include "experiments/formats/numbers.h"

#include <algorithm>
#include <cmath>

#include "fp16/formats.h"
#include "sim/tensor/log2.h"

namespace experiments::formats {
namespace {

using fp16::Format;

template <const Format& F>
bool codes_agree_with_format() {
  const std::vector<double> values = positive_values<F>();
  std::vector<double> counts(static_cast<std::size_t>(F.emax() - F.emin_subnormal() + 1));
  for (const double value : values)
    counts.at(static_cast<std::size_t>(std::ilogb(value) - F.emin_subnormal())) += 1;
  for (int e = F.emin_subnormal(); e <= F.emax(); ++e) {
    if (counts[static_cast<std::size_t>(e - F.emin_subnormal())] != values_in_octave(F, e)) return false;
  }
  return values.front() == F.min_subnormal() && values.back() == F.max() &&
         F.finite_values() == (F.is_signed() ? 2 * values.size() + 1 : values.size());
}

}  // namespace

double range_octaves(const Format& format) {
  return std::round(1e4 * (sim::log2_of(format.max()) - format.emin_subnormal())) / 1e4;
}

std::string special_values(const Format& format) {
  switch (format.encoding) {
    case fp16::Encoding::ieee:
      return "infinities, NaNs";
    case fp16::Encoding::finite_nan:
      return "NaN";
    case fp16::Encoding::fnuz:
      return "NaN; no -0";
    case fp16::Encoding::finite:
      return "none";
    case fp16::Encoding::power_of_two:
      return "NaN; no 0, no sign";
  }
  return {};
}

double values_in_octave(const Format& format, int exponent) {
  const double power = std::ldexp(1.0, exponent);
  if (exponent == format.emax()) return (format.max() / power - 1) / format.epsilon() + 1;
  return std::ldexp(1.0, std::min(exponent, format.emin()) - format.emin_subnormal());
}

bool codes_agree() {
  bool agree = true;
  fp16::for_each_format([&]<const Format & F>() {
    if constexpr (F.width() <= 16) agree &= codes_agree_with_format<F>();
  });
  return agree;
}

}  // namespace experiments::formats
