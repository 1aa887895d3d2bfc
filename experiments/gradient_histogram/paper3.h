#pragma once
/// Figure 3 of Micikevicius et al., "Mixed Precision Training" (ICLR 2018), of any gradients.

#include <string>
#include <vector>

#include "experiments/frame/experiment.h"
#include "fp16/exponent_histogram.h"

namespace experiments::gradient_histogram {

/// A bar of figure 3: the values with 2^lower <= |g| < 2^upper.
struct Bin {
  int lower;
  int upper;
  double percent;  ///< of all values, zeros included
};

/// Two octaves wide below 2^-24, one from there on, from the lowest to the highest with a value (figure 3 and
/// its text); every value multiplied by 2^shift_log2 first.
std::vector<Bin> paper_bins(const fp16::ExponentHistogram& gradients, int shift_log2);

/// The share of all values, in per cent.
double percent_of(const fp16::ExponentHistogram& gradients, std::uint64_t count);

struct Paper3 {
  const fp16::ExponentHistogram& gradients;
  int scaled_by_log2 = 0;        ///< the power of two that the gradients carry already
  std::vector<int> scales_log2;  ///< a row of panels for each
  double lowest = -40;           ///< left edge, an exponent
  std::string noun = "gradient";
  std::string title = {};
  std::string caption = {};
};

/// Table and summary of the figure, for --help.
Outputs paper3_outputs();

/// Writes table, summary and figure "paper3": the gradients times each scale over the zones of FP16, with the exact zeros
/// in a bar apart.
void draw_paper3(Run& run, const Paper3& figure);

}  // namespace experiments::gradient_histogram
