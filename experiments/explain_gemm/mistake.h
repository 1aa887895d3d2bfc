#pragma once
/// What was done wrong where D is not what roundings make of A B?

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "experiments/explain_gemm/classification.h"

namespace experiments::explain_gemm {

struct Mistake {
  std::string name;  ///< such as "b_by_columns", see mistake_names; "tf32_or_fp16" where D does not tell
  std::string what;  ///< a sentence: what D is instead
  std::string next;  ///< a sentence: what to look at, or how to go on
  std::vector<std::size_t> outputs = {};  ///< that it gives in place of the right ones; of all of D none
};

/// All names, separated by commas.
inline constexpr std::string_view mistake_names =
    "truncated, rounded_away, rounded_up, rounded_down, next_away, next_toward_zero, next_up, next_down, "
    "relu, absolute, saturated, results_flushed, same_value, d_by_bfloat16, without_c, factors, "
    "tf32, tf32_truncated, bfloat16, fp16, e4m3, e5m2, operands_flushed, "
    "a_by_columns, b_by_columns, both_by_columns, "
    "d_by_columns, operands_swapped, products_missing, products_repeated, column_bias, row_bias";

/// The first known mistake that gives every wrong output, real bugs and undecided ones: up to the bound of the
/// arithmetic that explains most outputs, of FP32 sums where none does. If none gives them, the first that gives
/// every output that is off by more than 8 times the root mean square of what FP32 sums are, up to so much.
/// Sums of other products (other_sums.h) are tried on up to 256 of them, evenly spread. A formula that gives the right values
/// on these operands is no mistake. Before all that, outputs of 16 bits that are not the nearest numbers, but all on one side.
/// Nothing where no mistake does, or where the wrong outputs are too few to tell it from chance.
std::optional<Mistake> mistake_of(const Problem& problem, const Classification& classes);

}  // namespace experiments::explain_gemm
