#pragma once
/// What the formats hold, and what rounding a tensor to the small ones loses, with one scale for all of it and with
/// one a block.

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "experiments/formats/options.h"
#include "experiments/frame/experiment.h"
#include "fp16/block.h"

namespace experiments::formats {

struct Loss {
  double relative_error = 0;      ///< ||rounded - x|| / ||x|| of the whole tensor
  double row_relative_error = 0;  ///< the same of each row, mean over the rows
  double fraction_flushed = 0;    ///< became zero, over the values
  double fraction_saturated = 0;  ///< became the largest element from beyond it, over the values
};

/// A way to store a tensor.
struct Scheme {
  std::string_view name;
  double bits_per_value;
  std::size_t block_size;  ///< 0: one scale for the whole tensor
  Loss (*measure)(std::span<const float> values, std::size_t block_size, fp16::ScaleRule rule);

  std::string_view scaling() const { return block_size == 0 ? "tensor" : "block"; }
};

/// Those measured with blocks of every size: an element each, under every rule.
std::span<const Scheme> resized_schemes();
inline constexpr std::array block_size_rules{fp16::ScaleRule::floor, fp16::ScaleRule::rceil};

struct Measured {
  const Scheme* scheme;
  int spread;
  std::size_t block_size;  ///< 0: one scale for the whole tensor
  fp16::ScaleRule rule = fp16::ScaleRule::floor;
  Loss loss = {};
};

struct Findings {
  std::vector<Measured> spreads;      ///< every scheme at every spread
  std::vector<Measured> block_sizes;  ///< blocks of 1, 2, 4 ... values up to the whole tensor, at one spread
};

Findings measure(const Options& options, Run& run);

/// For --help.
Outputs outputs();

/// Writes tables, summary, figures and verdict.
void report(Run& run, const Findings& found, const Options& options);

/// Draws the figures from the tables of the record; captions begin with the setting.
void draw_figures(Run& run, const Options& options, const std::string& setting);

}  // namespace experiments::formats
