#pragma once

#include <cmath>
#include <initializer_list>
#include <string_view>
#include <vector>

#include "sim/loss_scaling/loss_scaler.h"

/// Steps in, log2 of the scale after each step out.
namespace scaler_traces {

/// A step whose gradients are clean ('.') or not finite ('X'); the scaler must skip exactly the latter.
inline std::vector<double> follow(sim::LossScaler& scaler, std::string_view pattern) {
  std::vector<double> log2_scales;
  for (const char step : pattern) {
    const bool bad = step == 'X';
    const sim::Decision decision = scaler.update({.found_nonfinite = bad});
    if ((decision == sim::Decision::skip) != bad) return {};
    log2_scales.push_back(std::log2(scaler.scale()));
  }
  return log2_scales;
}

}  // namespace scaler_traces
