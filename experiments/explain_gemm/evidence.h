#pragma once
/// How sure is it that what reproduces D also made it?
///
/// Rounding D to FP16 leaves about one output in a thousand that tells two orders of FP32 sums apart. A wrong
/// hypothesis therefore reproduces some hundred outputs as often as not, and of thousands of hypotheses some
/// reproduce thousands. How many do so by chance is estimated from the misses of the others: if D was made in an
/// order that is not in the list, all are wrong, and those that miss no output are as many as would be expected from
/// those that miss a few. The estimate is the sum of chance_of_no_miss() over all that miss some.
///
/// What this rests on: outputs are independent, but for those of equal operands, which count once; a wrong hypothesis
/// is at least half as far from the right order, listed or not, as the others are from what reproduces D. An order
/// that is nearer to a listed one may pass for it. The estimate errs upwards: rates of misses near 0 are taken to be
/// as frequent as others, and hypotheses that miss together count one by one. Hypotheses that reproduce D too are no
/// rivals: for these operands they are the same, as orders like them may be that are not in the list.

#include <cstddef>
#include <optional>
#include <string_view>

#include "experiments/explain_gemm/search.h"

namespace experiments::explain_gemm {

enum class Verdict {
  explained,  ///< by one hypothesis
  ambiguous,  ///< by several, which these outputs do not tell apart, nor orders like them that are not listed
  undetermined,  ///< by one or several, as chance can
  unexplained
};
std::string_view name_of(Verdict verdict);

/// The limit of chance: fewer than one of a hundred products in unlisted orders shall be called explained.
inline constexpr double most_chance_survivors = 0.01;

struct Evidence {
  Verdict verdict;
  double chance_survivors;           ///< expected, of all hypotheses
  std::optional<std::size_t> rival;  ///< index into `tried`: who is refuted by the fewest outputs
  /// Where undetermined: so many times as many outputs leave fewer chance survivors, most likely. Nothing where
  /// hypotheses wait that were not held against all outputs.
  std::optional<double> more_outputs;
};
Evidence evidence_of(const Explanation& explanation);

}  // namespace experiments::explain_gemm
