#include <bit>
#include <cmath>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>
#include <utility>

#include "fp16/codec.h"
#include "fp16/formats.h"
#include "fp16/unpacked.h"
#include "tools/page/engine/answer.h"
#include "tools/page/engine/engine.h"

namespace halflab::page {
namespace {

using Json = nlohmann::ordered_json;

struct Window {
  double low;
  double high;
};

/// Finite numbers in their order: ordinal 0 is zero or, in a format that has none, the smallest number.
template <const fp16::Format& F>
struct Ordinals {
  static constexpr auto largest = static_cast<std::int64_t>(F.max_finite_code());

  /// Of the number that `value` becomes in this direction, which is finite.
  static std::int64_t of(double value, fp16::Rounding direction) {
    if (std::fabs(value) >= F.max()) return value > 0 ? largest : F.is_signed() ? -largest : 0;
    if constexpr (!F.is_signed()) {
      if (value <= F.min_subnormal()) return 0;
    }
    const fp16::Bits<F> code = fp16::encode<F>(value, {.rounding = direction}).bits;
    const auto magnitude = static_cast<std::int64_t>(fp16::magnitude<F>(code));
    return fp16::is_negative<F>(code) ? -magnitude : magnitude;
  }

  static double value(std::int64_t ordinal) {
    const double magnitude = fp16::decode<F>(static_cast<fp16::Bits<F>>(std::abs(ordinal)));
    return ordinal < 0 ? -magnitude : magnitude;
  }
};

/// The numbers of a format in a window: from the first ordinal to the last; none where that is smaller.
template <const fp16::Format& F>
std::pair<std::int64_t, std::int64_t> numbers_in(const Window& window) {
  if (window.low > F.max() || window.high < (F.is_signed() ? -F.max() : F.min_subnormal())) return {0, -1};
  return {Ordinals<F>::of(window.low, fp16::Rounding::toward_positive),
          Ordinals<F>::of(window.high, fp16::Rounding::toward_negative)};
}

template <const fp16::Format& F>
Json line_of(std::string_view name, const Window& window, double most) {
  const auto [first, last] = numbers_in<F>(window);
  const double count = static_cast<double>(last) - static_cast<double>(first) + 1;
  Json values = Json::array(), ranks = Json::array();
  for (std::int64_t i = first; count <= most && i <= last; ++i) {
    values.push_back(Ordinals<F>::value(i));
    ranks.push_back(i == 0 ? F.width() : std::countr_zero(static_cast<std::uint64_t>(i)));
  }
  return {{"format", name},
          {"count", count},
          {"values", values},
          {"ranks", ranks},
          {"largest", F.max()},
          {"smallest", F.min_subnormal()},
          {"lowest", F.is_signed() ? -F.max() : F.min_subnormal()}};
}

/// The stretches of equal spacing of a format, those of both signs that are a visible part of the window.
template <const fp16::Format& F>
Json stretches_of(const Window& window) {
  Json rows = Json::array();
  const double least = (window.high - window.low) / 200;
  const auto add = [&](double from, double to, int spacing_log2, bool is_subnormal) {
    for (const double sign : {1.0, -1.0}) {
      const double low = sign > 0 ? from : -to, high = sign > 0 ? to : -from;
      if (high <= window.low || low >= window.high || to - from < least || (sign < 0 && !F.is_signed()))
        continue;
      rows.push_back(
          {{"low", low}, {"high", high}, {"spacing_log2", spacing_log2}, {"is_subnormal", is_subnormal}});
    }
  };
  for (int exponent = F.emax(); exponent >= F.emin(); --exponent)
    add(std::ldexp(1, exponent), exponent == F.emax() ? F.max() : std::ldexp(1, exponent + 1),
        exponent - F.trailing_bits(), false);
  if (F.has_zero() && F.trailing_bits() > 0) add(0, F.min_normal(), F.emin_subnormal(), true);
  return rows;
}

Json lines(std::string_view format, const Window& window, double most) {
  if (!std::isfinite(window.low) || !std::isfinite(window.high) || window.low >= window.high)
    throw std::invalid_argument("a window goes from one finite number to a larger one");
  Json found{{"lines", Json::array()}, {"stretches", Json::array()}};
  std::size_t row = 0;
  fp16::for_each_format([&]<const fp16::Format & F>() {
    const std::string_view name = fp16::formats[row++].name;
    found["lines"].push_back(line_of<F>(name, window, most));
    if (name == format) found["stretches"] = stretches_of<F>(window);
  });
  return found;
}

}  // namespace
}  // namespace halflab::page

const char* engine_lines(const char* format, double low, double high, double most) {
  return halflab::page::answer(halflab::page::lines(format, {low, high}, most));
}
