#pragma once
/// What `halflab allreduce` finds of the ranks' tensors.

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "experiments/frame/experiment.h"
#include "experiments/frame/tensor_files/tensor_set.h"
#include "sim/statistics/twin_comparison.h"
#include "sim/trainer/allreduce.h"
#include "tools/halflab/square_sum.h"

namespace halflab::allreduce {

/// One kind of all-reduce, on all tensors.
struct Reduced {
  sim::AllReduce how;
  sim::TwinComparison loss = {};  ///< of the mean against the exact one
  std::uint64_t inputs_flushed =
      0;  ///< ranks' non-zero values that rounding to what is sent or the division before the sum makes zero
};

/// What rounding to a format of 16 bits, which is sent, does before anything is added.
struct Sent {
  sim::AllReducePrecision precision;  ///< fp16 or bf16: each sum is of this format
  std::string_view name;
  std::uint64_t overflow = 0;             ///< ranks' finite values that it does not hold
  bool holds_all = true;                  ///< all values are its numbers
  sim::TwinComparison one_rounding = {};  ///< of the exact mean, rounded once to it
};

/// What rounding the files' values of binary64 to FP32 does, before all else.
struct FirstRounding {
  std::uint64_t places_beyond = 0;  ///< elements that it alone makes infinite at some rank; they are left out
  std::uint64_t flushed = 0;  ///< ranks' non-zero values that become zero, here and below at the places left
  SquareSum squares = {};     ///< of all ranks' values as the files have them
  SquareSum error_squares = {};  ///< of what they lose

  double relative_error() const { return squares.is_zero() ? 0 : error_squares.norm() / squares.norm(); }
};

struct Findings {
  std::vector<std::string> paths;  ///< in the order of ranks
  std::size_t ranks = 0;
  std::size_t tensors = 0;
  std::uint64_t elements = 0;          ///< of one rank
  std::uint64_t nonzero_inputs = 0;    ///< of all ranks, finite
  std::uint64_t nonfinite_places = 0;  ///< elements that some rank has as NaN or infinity; they are left out
  FirstRounding first_rounding = {};
  std::array<Sent, 2> sent{Sent{sim::AllReducePrecision::fp16, "FP16"},
                           Sent{sim::AllReducePrecision::bf16, "BF16"}};
  std::vector<Reduced> kinds = {};
  std::string remark = {};  ///< on integers in the files of the first rank

  const Sent& halves() const { return sent.front(); }
  std::uint64_t places_left() const { return elements - nonfinite_places - first_rounding.places_beyond; }
  /// What kinds of this precision send; null in fp32.
  const Sent* sent_in(sim::AllReducePrecision precision) const;
  /// Whether any kind sends it.
  bool is_asked(const Sent& format) const;
  /// Whether one rounding to it is told: of what is asked for, and of FP16 to compare with.
  bool is_told(const Sent& format) const { return is_asked(format) || &format == &halves(); }
  double share_of_inputs(std::uint64_t count) const {
    return nonzero_inputs == 0 ? 0 : static_cast<double>(count) / static_cast<double>(nonzero_inputs);
  }
};

/// Reads the tensors one after the other, each of all ranks at one time. Ranks with one tensor each may call it what
/// they like. Throws std::invalid_argument where a rank lacks a tensor or has it in another shape.
Findings measure(const std::vector<experiments::tensor_files::TensorSet>& ranks,
                 const std::vector<sim::AllReduce>& kinds, experiments::Run& run);

experiments::Outputs outputs();
void report(experiments::Run& run, const Findings& found);
void draw_figure(experiments::Run& run, const Findings& found);

}  // namespace halflab::allreduce
