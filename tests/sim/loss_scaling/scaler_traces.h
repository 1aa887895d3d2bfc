#pragma once

#include <doctest/doctest.h>

#include <cmath>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/loss_scaling/registry.h"

/// Steps in, log2 of the scale after each step out.
namespace scaler_traces {

using Trace = std::vector<double>;

inline fp16::ExponentHistogram histogram_of(std::span<const float> values) {
  fp16::ExponentHistogram histogram;
  histogram.add(values);
  return histogram;
}

/// A step whose gradients are clean ('.') or not finite ('X'), or not finite and the last ('!'): the scaler
/// must apply the first, skip the second and abort at the third.
inline Trace follow(sim::LossScaler& scaler, std::string_view pattern) {
  Trace log2_scales;
  for (const char step : pattern) {
    const sim::Decision expected = step == '.'   ? sim::Decision::apply
                                   : step == 'X' ? sim::Decision::skip
                                                 : sim::Decision::abort;
    REQUIRE(scaler.update({.found_nonfinite = step != '.'}) == expected);
    CHECK(scaler.abort_reason().empty() == (expected != sim::Decision::abort));
    log2_scales.push_back(std::log2(static_cast<double>(scaler.scale())));
  }
  return log2_scales;
}

/// A scaler by name, the pattern that it follows and log2 S after each step of it.
struct Case {
  std::string scaler;
  names::GivenOptions options;
  std::string_view pattern;
  Trace expected;
};

inline void check(const std::vector<Case>& cases) {
  for (const Case& given : cases) {
    CAPTURE(given.scaler);
    CAPTURE(given.pattern);
    const auto scaler = sim::make_scaler(given.scaler, given.options);
    CHECK(follow(*scaler, given.pattern) == given.expected);
  }
}

}  // namespace scaler_traces
