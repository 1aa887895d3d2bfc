#pragma once
/// Ways in which D = alpha A B + beta C may have been computed. Each is one order of summation with stated
/// roundings, so that it gives one D.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "experiments/explain_gemm/problem.h"
#include "fp16/gemm.h"

namespace experiments::explain_gemm {

/// How the products of a slice of k are added up.
struct Accumulator {
  std::string name;  ///< such as "fp32_fma_chain" or "hopper/blackwell_fp32_step8"
  std::variant<fp16::Accumulation, fp16::TensorCoreAccumulation> way;
  fp16::Format format;  ///< of the running sum
  std::size_t products_per_step;
  /// Largest error of a step over the magnitudes that it adds, of normal numbers and to first order.
  double step_error;
};

/// Chains with FP32 and FP16 sums, then the steps of each tensor core that differs from the others, as long
/// as its own and shorter by powers of two down to 4, with FP32 and FP16 accumulators.
const std::vector<Accumulator>& accumulators();

/// How the sums of the slices become one, slice after slice in ascending order.
enum class Reduction {
  none,           ///< there is one slice
  fp32,           ///< added in binary32
  fp16_partials,  ///< each rounded to binary16 as it is stored, added in binary32
  fp16,           ///< each rounded to binary16, and every sum of them too
};

/// How the reduced sum s becomes D, where a rounding to D's format comes last. Float arithmetic.
enum class Epilogue {
  round_once,           ///< alpha = 1, beta = 0: nothing but that rounding
  scale,                ///< fl(alpha s), beta = 0
  fma_on_product,       ///< fma(alpha, s, fl(beta c))
  fma_on_c,             ///< fma(beta, c, fl(alpha s))
  mul_add,              ///< fl(fl(alpha s) + fl(beta c))
  round_product_first,  ///< s is rounded to D's format before mul_add
  start_from_c,         ///< the first slice's chain starts at c; alpha = beta = 1
};

std::string_view name_of(Reduction reduction);
std::string_view name_of(Epilogue epilogue);

struct Hypothesis {
  const Accumulator* accumulator;
  std::size_t slice_length;  ///< of k; the last slice may be shorter
  std::size_t slices;
  Reduction reduction;
  Epilogue epilogue;

  bool starts_from_c() const { return epilogue == Epilogue::start_from_c; }
  std::string text() const;
};

/// Every combination that makes a difference in principle, the fewest slices first. Slices are as long as an
/// equal share of k, rounded up to a multiple of 1, 16, 32 or 64.
std::vector<Hypothesis> hypotheses(const Problem& problem, std::size_t most_slices);

/// Whether both have the same sums of slices.
bool have_equal_partials(const Hypothesis& a, const Hypothesis& b);

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
