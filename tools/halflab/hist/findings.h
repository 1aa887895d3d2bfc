#pragma once
/// What `halflab hist` finds of tensors.

#include <bitset>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "experiments/frame/experiment.h"
#include "experiments/frame/tensor_files/tensor_set.h"
#include "fp16/formats.h"
#include "tools/halflab/hist/cast.h"
#include "tools/halflab/hist/options.h"

namespace halflab::hist {

/// Which of the 65,536 codes of 16 bits occur.
using CodesInUse = std::bitset<65536>;

/// A tensor, or all together.
struct TensorFound {
  std::string name;
  std::string stored_as;  ///< format; empty of all together
  std::string shape;
  Exponents exponents;              ///< as the files hold them
  SquareSum squares;                ///< of the finite values
  std::optional<CodesInUse> codes;  ///< of a tensor of binary16 or bfloat16
  CastCounts at_one;
  CastCounts at_shown;

  std::uint64_t nonfinite() const { return exponents.infinite() + exponents.nan(); }
};

struct Findings {
  fp16::NamedFormat format;
  int scaled_by_log2 = 0;
  std::vector<TensorFound> tensors;
  TensorFound total;
  std::optional<int> recommended_log2;  ///< an octave below the headroom of all; none where all is zero
  int shown_log2 = 0;                   ///< beside S = 1: asked for, or the recommended one
  std::string remark;                   ///< on integers in the files

  CastForecast forecast(const TensorFound& tensor) const {
    return {tensor.exponents, format.format, scaled_by_log2};
  }
  double share(const TensorFound& tensor, std::uint64_t count) const;
  /// The tensors in which something non-zero is, those that lose most at S = 1 first, of these the one with the smaller
  /// largest value.
  std::vector<const TensorFound*> by_loss() const;
};

/// Reads all tensors once, or twice where the format is not binary16.
Findings measure(const experiments::tensor_files::TensorSet& set, const Options& options,
                 experiments::Run& run);

/// Where tables and figures over scales begin.
int first_scale_log2(const Findings& found);

experiments::Outputs outputs();
/// `figure`: what is asked for by --figure.
void report(experiments::Run& run, const Findings& found, std::string_view figure);
void draw_figures(experiments::Run& run, const Findings& found, std::string_view figure);
void write_verdict(experiments::RunRecord& record, const Findings& found);

}  // namespace halflab::hist
