#pragma once
/// What the histograms of this experiment have in common: a bar for the exact zeros on an axis of its own, and
/// the zones of FP16 under the exponents.

#include <string>
#include <string_view>

namespace experiments::gradient_histogram {

constexpr std::string_view exponent_label = "binary exponent of |gradient|, floor(log₂ |g|)";

constexpr double fp16_overflow_log2 = 16;  ///< where the drawn normal range ends

/// From `lowest` to `highest`: what FP16 makes of the magnitudes.
std::string fp16_zones(double lowest, double highest = fp16_overflow_log2);
/// The two edges at its lower end.
std::string fp16_edges();

struct ZerosPanel {
  std::string table;
  std::string where;  ///< the row of the zeros, a condition
  double percent;     ///< of all values
  std::string title;  ///< of the whole row of panels
};
std::string zeros_panel(const ZerosPanel& zeros);

/// Beside it the axes of the non-zero values.
std::string exponents_axes(double lowest, double highest, double highest_percent, std::string_view x_label);

}  // namespace experiments::gradient_histogram
