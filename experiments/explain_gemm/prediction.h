#pragma once
/// What a hypothesis makes of A, B and C.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "experiments/explain_gemm/hypotheses.h"

namespace experiments::explain_gemm {

/// To nearest-even.
float rounded_to_half(float value);

/// A part of a problem: some of its rows and columns, or all of them.
struct Part {
  std::vector<std::size_t> rows, columns;  ///< which ones, ascending
  std::size_t depth;
  std::vector<std::uint16_t> a;                         ///< gathered; as in Problem
  std::shared_ptr<const std::vector<std::uint16_t>> b;  ///< likewise, common to parts of the same columns
  std::vector<float> c;                                 ///< empty where beta = 0
  std::vector<std::uint32_t> d;

  std::size_t outputs() const { return rows.size() * columns.size(); }
};

/// The parts of at most `most_rows` of these rows that make them up.
std::vector<Part> cut(const Problem& problem, const std::vector<std::size_t>& rows,
                      const std::vector<std::size_t>& columns, std::size_t most_rows);

/// The sums of the slices, each row-major over the part's outputs.
using Partials = std::vector<std::vector<float>>;
Partials partial_sums(const Part& part, const Hypothesis& hypothesis);

/// The codes of D over the part's outputs.
std::vector<std::uint32_t> predicted(const Problem& problem, const Part& part, const Hypothesis& hypothesis,
                                     const Partials& partials);

}  // namespace experiments::explain_gemm
