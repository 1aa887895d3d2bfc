#pragma once
/// Ways in which D = alpha A B + beta C may have been computed. Each is one order of summation with stated
/// roundings, so that it gives one D.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <tuple>
#include <variant>
#include <vector>

#include "experiments/explain_gemm/problem.h"
#include "fp16/gemm.h"

namespace experiments::explain_gemm {

/// The sums of Problem::tree, of products that are rounded first.
struct TreeAccumulation {};

/// s = fl32(s + fl32(a b)), k after k: of FP32 operands, for the products of shorter ones are floats anyway.
struct MulAddAccumulation {};

/// How the products of a slice of k are added up.
struct Accumulator {
  std::string name;  ///< such as "fp32_fma_chain" or "hopper/blackwell_fp32_step8"
  std::variant<fp16::Accumulation, fp16::TensorCoreAccumulation, MulAddAccumulation, TreeAccumulation> way;
  fp16::Format format;  ///< of the running sum
  std::size_t products_per_step;
  bool is_shortened;  ///< a tensor core's step of fewer products than its own
  /// Largest error of a step over the magnitudes that it adds, of normal numbers and to first order.
  double step_error;

  bool is_chain() const {
    return std::holds_alternative<fp16::Accumulation>(way) || std::holds_alternative<MulAddAccumulation>(way);
  }
};

/// Chains with FP32 and FP16 sums, then the steps of each tensor core that differs from the others, as long
/// as its own and shorter by powers of two down to 4, with FP32 and FP16 accumulators.
const std::vector<Accumulator>& accumulators();

/// The accumulators of a problem's tree, in FP32 and FP16: of all k, not of slices.
const std::vector<Accumulator>& tree_accumulators();

/// How k is cut into slices, each of which is summed in ascending k before the slices' sums become one.
enum class Slicing {
  even,         ///< contiguous and of equal length, but for the last, which may be shorter
  interleaved,  ///< blocks of k dealt to the slices in turn, as to the warps that share a tile, or to lanes
  uneven        ///< two contiguous slices, cut anywhere
};

/// How the sums of the slices become one.
enum class Reduction {
  none,             ///< there is one slice
  fp32,             ///< added in binary32
  narrow_partials,  ///< each rounded to 16 bits as it is stored, added in binary32
  narrow,           ///< each rounded to 16 bits, and every sum of them too
  narrow_in_place  ///< slice after slice, 32 or longer, through the epilogue and added to D, which has 16 bits
};

/// Which sums of slices are added first.
enum class Order {
  ascending,   ///< slice after slice
  descending,  ///< from the last one on
  pairwise,    ///< neighbours, then neighbouring sums, and so on; what is left over without one waits
  halving      ///< the upper half to the lower one, and so on, as lanes are added up; of a power of two
};

/// How the reduced sum s becomes D, where a rounding to D's format comes last. Float arithmetic, unless the
/// name begins with "half": there alpha, beta, s and c are rounded to binary16 first, as is every result.
enum class Epilogue {
  round_once,           ///< alpha = 1, beta = 0: nothing but that rounding
  scale,                ///< fl(alpha s), beta = 0
  fma_on_product,       ///< fma(alpha, s, fl(beta c))
  fma_on_c,             ///< fma(beta, c, fl(alpha s))
  mul_add,              ///< fl(fl(alpha s) + fl(beta c))
  round_product_first,  ///< s is rounded to D's format before mul_add
  round_c_first,        ///< beta c is rounded to D's format before it is added to fl(alpha s)
  start_from_c,         ///< the first slice's chain starts at c; alpha = beta = 1
  half_scale,
  half_fma_on_product,
  half_fma_on_c,
  half_mul_add
};

constexpr bool is_in_halves(Epilogue epilogue) {
  return epilogue >= Epilogue::half_scale;
}

std::string_view name_of(Slicing slicing);
/// Such as "fp16_partials", where sums of 16 bits are of `narrow`.
std::string name_of(Reduction reduction, const fp16::Format& narrow);
std::string_view name_of(Order order);
std::string_view name_of(Epilogue epilogue);

struct Hypothesis {
  const Accumulator* accumulator;
  Slicing slicing = Slicing::even;
  std::size_t slice_length;  ///< of k: of a slice, of an interleaved one's blocks, of the first uneven one
  std::size_t slices;
  Reduction reduction = Reduction::none;
  fp16::Format narrow = fp16::binary16;  ///< of sums of 16 bits: binary16 or bfloat16, as the operands
  Order order = Order::ascending;
  Epilogue epilogue;

  bool starts_from_c() const { return epilogue == Epilogue::start_from_c; }
  std::string text() const;
};

/// k from `first` on.
struct Range {
  std::size_t first;
  std::size_t length;
};
/// Which k each slice adds up, in the order of the additions.
using Slices = std::vector<std::vector<Range>>;
Slices slices_of(const Hypothesis& hypothesis, std::size_t depth);

/// At most so many slices of blocks interleave.
inline constexpr std::size_t most_interleaved = 16;
/// At most so many lanes take k in turn: two for each thread of a warp.
inline constexpr std::size_t most_lanes = 64;
/// At most so many places are tried at which to cut k in two.
inline constexpr std::size_t most_uneven_cuts = 64;

/// Whether an accumulator adds such operands. What tensor cores make of bfloat16 and TF32 is not modelled.
bool suits(const Accumulator& accumulator, const fp16::Format& operands);

/// Every combination that makes a difference in principle, with at most `most_slices` slices, and lanes where that is more
/// than 1: even slices first, then interleaved ones, lanes and uneven ones, of each the fewest first. Shortened steps that
/// are as long as their slices are left out: the unshortened ones are the same there.
///
/// Even slices are as long as an equal share of k, rounded up to a multiple of 1, 16, 32 or 64. 2 to 16 slices
/// interleave by blocks of 8, 16, 32 or 64 that are whole steps, and are reduced in ascending order alone where they
/// are no power of two; in chains 2 to 64 lanes, a power of two, do by blocks of 1, 2, 4 or 8, reduced in the
/// accumulator's format. Uneven slices are cut at multiples of 16, or of the power of two above at which there are no
/// more than 64, and reduced in the accumulator's format.
std::vector<Hypothesis> hypotheses(const Problem& problem, std::size_t most_slices);

/// Equal for hypotheses with the same sums of slices.
using PartialsKey = std::tuple<const Accumulator*, Slicing, std::size_t, std::size_t, bool>;
PartialsKey partials_key(const Hypothesis& hypothesis);

}  // namespace experiments::explain_gemm
