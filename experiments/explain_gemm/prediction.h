#pragma once
/// What a hypothesis makes of A, B and C.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "experiments/explain_gemm/hypotheses.h"

namespace experiments::explain_gemm {

/// A part of a problem: some of a triple's rows and columns, or all of them.
struct Part {
  std::vector<std::size_t> rows, columns;  ///< which ones, ascending
  std::size_t depth;
  std::vector<float> a;                         ///< gathered; as in Problem
  std::shared_ptr<const std::vector<float>> b;  ///< likewise, common to parts of the same columns
  std::vector<float> c;                         ///< empty where beta = 0
  std::vector<std::uint32_t> d;
  /// Whether no row or column of the same numbers came before, in this part or in those before it of its triple.
  std::vector<bool> row_is_new, column_is_new;

  std::size_t outputs() const { return rows.size() * columns.size(); }
  bool is_new(std::size_t output) const {
    return row_is_new[output / columns.size()] && column_is_new[output % columns.size()];
  }
};

/// The parts that make up these rows, ascending, and columns: each of one triple and at most `most_rows` rows.
std::vector<Part> cut(const Problem& problem, const std::vector<std::size_t>& rows,
                      const std::vector<std::size_t>& columns, std::size_t most_rows);

/// The sums of the slices, each row-major over the part's outputs.
using Partials = std::vector<std::vector<float>>;
Partials partial_sums(const Problem& problem, const Part& part, const Hypothesis& hypothesis);

/// The codes of D over the part's outputs.
std::vector<std::uint32_t> predicted(const Problem& problem, const Part& part, const Hypothesis& hypothesis,
                                     const Partials& partials);

}  // namespace experiments::explain_gemm
