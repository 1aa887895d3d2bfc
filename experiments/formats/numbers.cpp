#include "experiments/formats/numbers.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "fp16/codec.h"
#include "fp16/formats.h"
#include "sim/tensor/log2.h"

namespace experiments::formats {
namespace {

using fp16::Format;

/// How many numbers lie in [2^exponent, 2^(exponent + 1)), for exponents within the range.
double values_in_octave(const Format& format, int exponent) {
  const double power = std::ldexp(1.0, exponent);
  if (exponent == format.emax()) return (format.max() / power - 1) / format.epsilon() + 1;
  return std::ldexp(1.0, std::min(exponent, format.emin()) - format.emin_subnormal());
}

/// The finite numbers above zero, ascending.
template <const Format& F>
std::vector<double> positive_values() {
  std::vector<double> values;
  for (std::uint64_t code = F.has_zero(); code <= F.max_finite_code(); ++code)
    values.push_back(fp16::decode<F>(static_cast<fp16::Bits<F>>(code)));
  return values;
}

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

void write_formats(RunRecord& record) {
  Table& table =
      record.table("formats", {"format", "width_bits", "exponent_bits", "precision_bits", "max", "min_normal",
                               "min_subnormal", "epsilon", "unit_roundoff", "digits10", "max_digits10",
                               "range_octaves", "finite_values", "special_values"});
  for (const auto& [name, f] : fp16::formats) {
    table.row({name, f.width(), f.exponent_bits, f.precision, f.max(), f.min_normal(), f.min_subnormal(),
               f.epsilon(), f.unit_roundoff(), f.digits10(), f.max_digits10(), range_octaves(f),
               f.finite_values(), special_values(f)});
  }
}

void write_octaves(RunRecord& record) {
  Table& table = record.table(
      "octaves", {"format", "exponent_log2", "values", "values_log2", "largest_relative_spacing"});
  for (const auto& [name, format] : fp16::formats) {
    for (int e = format.emin_subnormal(); e <= format.emax(); ++e) {
      const double values = values_in_octave(format, e);
      const int spacing_log2 = std::max(e, format.emin()) - format.trailing_bits();
      table.row({name, e, values, sim::log2_of(values), std::ldexp(1.0, spacing_log2 - e)});
    }
  }
}

void write_values(RunRecord& record) {
  Table& table = record.table("values", {"format", "value", "value_log2"});
  fp16::for_each_format([&]<const Format & F>() {
    if constexpr (F.width() <= 8) {
      for (const double value : positive_values<F>())
        table.row({fp16::name_of(F), value, sim::log2_of(value)});
    }
  });
}

bool codes_agree() {
  bool agree = true;
  fp16::for_each_format([&]<const Format & F>() {
    if constexpr (F.width() <= 16) agree &= codes_agree_with_format<F>();
  });
  return agree;
}

}  // namespace experiments::formats
