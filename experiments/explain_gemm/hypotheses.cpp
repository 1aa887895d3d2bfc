#include "experiments/explain_gemm/hypotheses.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <functional>
#include <set>

#include "experiments/explain_gemm/prediction.h"
#include "fp16/mma.h"

namespace experiments::explain_gemm {
namespace {

using fp16::binary16;
using fp16::binary32;

constexpr std::size_t shortest_step = 4;
// Tiles of kernels are that deep, and a slice is a whole number of them.
constexpr std::array<std::size_t, 4> granules{1, 16, 32, 64};
// A block's tile is shared out to its warps in stretches of one or a few instructions.
constexpr std::array<std::size_t, 4> block_lengths{8, 16, 32, 64};
// A lane takes what one load gives it: a float, two halves, up to eight of them.
constexpr std::array<std::size_t, 4> lane_lengths{1, 2, 4, 8};
constexpr std::size_t least_uneven_granule = 16;
constexpr std::size_t least_in_place_length = 32;

std::size_t divide_up(std::size_t n, std::size_t divisor) {
  return (n + divisor - 1) / divisor;
}

bool have_equal_steps(const fp16::TensorCore& a, const fp16::TensorCore& b) {
  return a.products_per_step == b.products_per_step && a.fraction_bits == b.fraction_bits &&
         a.binary16_floor == b.binary16_floor;
}

/// Cores with equal steps under all their names.
struct NamedCore {
  std::string names;
  fp16::TensorCore core;
};

std::vector<NamedCore> distinct_cores() {
  std::vector<NamedCore> cores;
  for (const fp16::TensorCore& core : fp16::tensor_cores) {
    const auto same = std::ranges::find_if(
        cores, [&](const NamedCore& other) { return have_equal_steps(core, other.core); });
    if (same == cores.end()) {
      cores.push_back({std::string(core.name), core});
    } else {
      same->names += fmt::format("/{}", core.name);
    }
  }
  return cores;
}

Accumulator chain(fp16::Accumulation way, const fp16::Format& format) {
  return {.name = std::string(fp16::name_of(way)),
          .way = way,
          .format = format,
          .products_per_step = 1,
          .is_shortened = false,
          .step_error = format.unit_roundoff()};
}

/// Toward zero costs twice the unit roundoff, and each term of the step is truncated.
Accumulator tensor_core(const NamedCore& named, std::size_t step, const fp16::Format& format) {
  fp16::TensorCore core = named.core;
  const bool whole = step == static_cast<std::size_t>(core.products_per_step);
  core.products_per_step = static_cast<int>(step);
  const bool is_fp32 = format == binary32;
  return {.name = fmt::format("{}_{}{}", named.names, is_fp32 ? "fp32" : "fp16",
                              whole ? "" : fmt::format("_step{}", step)),
          .way = fp16::TensorCoreAccumulation{core, format},
          .format = format,
          .products_per_step = step,
          .is_shortened = !whole,
          .step_error = static_cast<double>(step + 1) * std::ldexp(1.0, -core.fraction_bits) +
                        (is_fp32 ? 2 : 1) * format.unit_roundoff()};
}

std::vector<Accumulator> make_accumulators() {
  std::vector<Accumulator> all{chain(fp16::Accumulation::fp32_fma_chain, binary32),
                               chain(fp16::Accumulation::fp16_fma_chain, binary16),
                               chain(fp16::Accumulation::fp16_mul_add_chain, binary16),
                               {.name = "fp32_mul_add_chain",
                                .way = MulAddAccumulation{},
                                .format = binary32,
                                .products_per_step = 1,
                                .is_shortened = false,
                                .step_error = binary32.unit_roundoff()}};
  for (const fp16::Format& format : {binary32, binary16}) {
    for (const NamedCore& named : distinct_cores()) {
      for (auto step = static_cast<std::size_t>(named.core.products_per_step); step >= shortest_step;
           step /= 2)
        all.push_back(tensor_core(named, step, format));
    }
  }
  return all;
}

bool is_power_of_two(float factor) {
  int exponent = 0;
  return std::fabs(std::frexp(factor, &exponent)) == 0.5f;
}

/// Whether D may come from arithmetic in binary16, which has room for the factors.
bool suits_halves(const Problem& problem) {
  return problem.d.format == binary16 && std::isfinite(rounded_to(binary16, problem.alpha)) &&
         std::isfinite(rounded_to(binary16, problem.beta));
}

/// Whether D has outputs, of the first 4096 that may, that sums have when they are rounded to FP16 before a power of two
/// scales them, and not when after: subnormal sums or outputs are then rounded twice, and sums overflow.
bool is_rounded_before_scaling(const Problem& problem) {
  constexpr std::size_t most_asked = 4096;
  const double normal = binary16.min_normal() * std::max(1.0f, std::fabs(problem.alpha));
  std::size_t asked = 0;
  for (std::size_t output = 0; output < problem.d.codes.size() && asked < most_asked; ++output) {
    const double observed = std::fabs(value_of(binary16, problem.d.codes[output]));
    if (observed >= normal && std::isfinite(observed)) continue;
    ++asked;
    double sum = 0;
    for (std::size_t k = 0; k < problem.depth; ++k) sum += product_at(problem, output, k);
    const auto s = static_cast<float>(sum);
    const std::uint32_t once = code_of(binary16, problem.alpha * s),
                        twice = code_of(binary16, problem.alpha * rounded_to(binary16, s));
    if (once != twice && problem.d.codes[output] == twice) return true;
  }
  return false;
}

/// Without C. The halves' product differs from the floats' by the rounding of s, and of alpha.
std::vector<Epilogue> scalings_of(const Problem& problem) {
  if (problem.is_plain()) return {Epilogue::round_once};
  if (suits_halves(problem) && (!is_power_of_two(problem.alpha) || is_rounded_before_scaling(problem)))
    return {Epilogue::scale, Epilogue::half_scale};
  return {Epilogue::scale};
}

std::vector<Epilogue> epilogues_of(const Problem& problem) {
  if (problem.beta == 0) return scalings_of(problem);
  std::vector<Epilogue> all{Epilogue::mul_add};
  const auto add_if = [&](bool condition, Epilogue epilogue) {
    if (condition) all.push_back(epilogue);
  };
  // A power of two makes the product exact but for underflow, and the fused operation the other one.
  const bool alpha_rounds = !is_power_of_two(problem.alpha), beta_rounds = !is_power_of_two(problem.beta);
  const bool is_narrow = problem.d.format != binary32;
  const auto is_of_d = [&](float value) { return rounded_to(problem.d.format, value) == value; };
  add_if(alpha_rounds, Epilogue::fma_on_product);
  add_if(beta_rounds, Epilogue::fma_on_c);
  add_if(is_narrow, Epilogue::round_product_first);
  add_if(is_narrow && (beta_rounds || !std::ranges::all_of(problem.c, is_of_d)), Epilogue::round_c_first);
  // With factors of 1 all is one sum of two halves, as round_product_first has it.
  const bool scales = problem.alpha != 1 || problem.beta != 1;
  const bool in_halves = suits_halves(problem);
  add_if(in_halves && scales, Epilogue::half_mul_add);
  add_if(in_halves && alpha_rounds, Epilogue::half_fma_on_product);
  add_if(in_halves && beta_rounds, Epilogue::half_fma_on_c);
  add_if(problem.alpha == 1 && problem.beta == 1, Epilogue::start_from_c);
  return all;
}

/// A way to cut k.
struct Cut {
  Slicing slicing;
  std::size_t length;
  std::size_t slices;
  bool is_of_lanes = false;  ///< of one thread or of a warp, which add their sums in registers
};

struct Way {
  Reduction reduction;
  Order order = Order::ascending;
};

/// An epilogue in binary16, or one that leaves nothing to be added later, is not gone through once a slice.
bool goes_with_in_place(Epilogue epilogue) {
  constexpr std::array allowed{Epilogue::round_once, Epilogue::scale, Epilogue::fma_on_product,
                               Epilogue::fma_on_c, Epilogue::mul_add};
  return std::ranges::find(allowed, epilogue) != allowed.end();
}

/// Whether the sum of the slices is rounded to the sums' 16 bits before anything else happens to it.
bool rounds_sum(const Problem& problem, Epilogue epilogue) {
  if (is_in_halves(epilogue)) return problem.narrow() == binary16;
  return problem.d.format == problem.narrow() &&
         (epilogue == Epilogue::round_once || epilogue == Epilogue::start_from_c ||
          epilogue == Epilogue::round_product_first);
}

std::vector<Way> ways_of(const Problem& problem, const Accumulator& accumulator, const Cut& cut,
                         Epilogue epilogue) {
  if (cut.slices == 1) return {{Reduction::none}};
  const bool halves = accumulator.format == binary16;
  const Reduction in_registers = halves ? Reduction::narrow : Reduction::fp32;
  if (cut.slicing == Slicing::uneven) return {{in_registers}};
  if (cut.is_of_lanes) {
    std::vector<Way> ways;
    for (const Order order : {Order::ascending, Order::descending, Order::pairwise, Order::halving}) {
      if (cut.slices > 2 || order == Order::ascending) ways.push_back({in_registers, order});
    }
    return ways;
  }
  // A split of k into 3, 5, 6 ... parts is by several blocks of a grid, which add up one after the other.
  const bool is_in_any_order = cut.slicing != Slicing::interleaved || std::has_single_bit(cut.slices);
  // One sum of two halves, rounded to a half, is the same whether a float holds it first or not.
  const bool is_one_sum_of_halves = cut.slices == 2 && rounds_sum(problem, epilogue);
  std::vector<Way> ways;
  for (const Reduction reduction : {Reduction::fp32, Reduction::narrow_partials, Reduction::narrow}) {
    if (reduction != Reduction::fp32 && !problem.narrow()) continue;
    if (reduction == Reduction::narrow_partials && (halves || is_one_sum_of_halves)) continue;
    if (reduction == Reduction::fp32 && halves && is_one_sum_of_halves) continue;
    ways.push_back({reduction, Order::ascending});
    if (!is_in_any_order) continue;
    // Floats add halves exactly, but for large differences of size: hardly any order tells.
    const bool adds_halves_in_fp32 =
        reduction == Reduction::narrow_partials || (reduction == Reduction::fp32 && halves);
    if (cut.slices > 2 && !adds_halves_in_fp32) ways.push_back({reduction, Order::descending});
    if (cut.slices > 3) ways.push_back({reduction, Order::pairwise});
  }
  if (cut.slicing == Slicing::interleaved && is_in_any_order && cut.slices > 2)
    ways.push_back({in_registers, Order::halving});
  // Warps of one block do not meet in D, halves are added to it as fp16 has it, and slices of few steps would pass
  // for a chain with an FP16 accumulator.
  const bool in_place = cut.slicing == Slicing::even && problem.d.format == problem.narrow() && !halves &&
                        cut.length >= least_in_place_length;
  if (in_place && goes_with_in_place(epilogue)) ways.push_back({Reduction::narrow_in_place});
  return ways;
}

std::vector<Cut> even_cuts(std::size_t depth, std::size_t most_slices) {
  std::set<std::size_t, std::greater<>> lengths{depth};
  for (std::size_t slices = 2; slices <= most_slices; ++slices) {
    for (const std::size_t granule : granules)
      lengths.insert(std::min(depth, divide_up(divide_up(depth, slices), granule) * granule));
  }
  std::vector<Cut> cuts;
  for (const std::size_t length : lengths) cuts.push_back({Slicing::even, length, divide_up(depth, length)});
  return cuts;
}

std::vector<Cut> interleaved_cuts(std::size_t depth, std::size_t most_slices) {
  std::vector<Cut> cuts;
  for (std::size_t slices = 2; slices <= std::min(most_slices, most_interleaved); ++slices) {
    for (const std::size_t length : block_lengths) {
      // With one block each the slices are even ones.
      if (divide_up(depth, length) > slices) cuts.push_back({Slicing::interleaved, length, slices});
    }
  }
  return cuts;
}

/// Cuts into lanes that are not among interleaved_cuts.
std::vector<Cut> lane_cuts(std::size_t depth, std::size_t most_slices) {
  std::vector<Cut> cuts;
  for (std::size_t lanes = 2; lanes <= most_lanes; lanes *= 2) {
    for (const std::size_t length : lane_lengths) {
      const bool is_known =
          length == block_lengths.front() && lanes <= std::min(most_slices, most_interleaved);
      if (!is_known && divide_up(depth, length) > lanes)
        cuts.push_back({Slicing::interleaved, length, lanes, true});
    }
  }
  return cuts;
}

std::vector<Cut> uneven_cuts(std::size_t depth, const std::vector<Cut>& even) {
  std::size_t granule = least_uneven_granule;
  while (divide_up(depth, granule) - 1 > most_uneven_cuts) granule *= 2;
  std::vector<Cut> cuts;
  for (std::size_t length = granule; length < depth; length += granule) {
    const bool is_even =
        std::ranges::any_of(even, [&](const Cut& cut) { return cut.length == length && cut.slices == 2; });
    if (!is_even) cuts.push_back({Slicing::uneven, length, 2});
  }
  return cuts;
}

std::vector<Cut> cuts_of(std::size_t depth, std::size_t most_slices) {
  std::vector<Cut> cuts = even_cuts(depth, most_slices);
  if (most_slices == 1) return cuts;
  const std::vector<Cut> uneven = uneven_cuts(depth, cuts);
  for (const std::vector<Cut>& more :
       {interleaved_cuts(depth, most_slices), lane_cuts(depth, most_slices), uneven})
    cuts.insert(cuts.end(), more.begin(), more.end());
  return cuts;
}

/// A warp's blocks are whole steps, or its steps would reach across blocks. A step that a slice does not fill is the
/// same however long it could be.
bool fits(const Cut& cut, const Accumulator& accumulator, std::size_t depth) {
  const std::size_t step = accumulator.products_per_step;
  if (cut.is_of_lanes) return accumulator.is_chain();
  if (cut.slicing == Slicing::interleaved) return cut.length % step == 0;
  const std::size_t longest =
      cut.slicing == Slicing::uneven ? std::max(cut.length, depth - cut.length) : cut.length;
  return !accumulator.is_shortened || step < longest;
}

/// With every epilogue that does not begin with the first sum.
void add_trees(const Problem& problem, const std::vector<Epilogue>& epilogues, std::vector<Hypothesis>& all) {
  for (const Accumulator& accumulator : tree_accumulators()) {
    if (accumulator.format == binary16 && problem.operands != binary16) continue;
    for (const Epilogue epilogue : epilogues) {
      if (epilogue == Epilogue::start_from_c) continue;
      all.push_back({.accumulator = &accumulator,
                     .slice_length = problem.depth,
                     .slices = 1,
                     .narrow = problem.narrow().value_or(binary16),
                     .epilogue = epilogue});
    }
  }
}

}  // namespace

const std::vector<Accumulator>& accumulators() {
  static const std::vector<Accumulator> all = make_accumulators();
  return all;
}

std::string_view name_of(Slicing slicing) {
  constexpr std::array<std::string_view, 3> names{"even", "interleaved", "uneven"};
  return names[static_cast<std::size_t>(slicing)];
}

std::string name_of(Reduction reduction, const fp16::Format& narrow) {
  constexpr std::array<std::string_view, 5> names{"none", "fp32", "{}_partials", "{}", "{}_in_place"};
  const std::string_view name = names[static_cast<std::size_t>(reduction)];
  return fmt::format(fmt::runtime(name), narrow == binary16 ? "fp16" : "bfloat16");
}

std::string_view name_of(Order order) {
  constexpr std::array<std::string_view, 4> names{"ascending", "descending", "pairwise", "halving"};
  return names[static_cast<std::size_t>(order)];
}

std::string_view name_of(Epilogue epilogue) {
  constexpr std::array<std::string_view, 12> names{
      "round_once",          "scale",         "fma_on_product", "fma_on_c",   "mul_add",
      "round_product_first", "round_c_first", "start_from_c",   "half_scale", "half_fma_on_product",
      "half_fma_on_c",       "half_mul_add"};
  return names[static_cast<std::size_t>(epilogue)];
}

std::string Hypothesis::text() const {
  std::string text = accumulator->name;
  if (slices > 1) {
    const std::string cut =
        slicing == Slicing::even     ? fmt::format("k in {} slices of {}", slices, slice_length)
        : slicing == Slicing::uneven ? fmt::format("k cut in two at {}", slice_length)
        : slice_length == 1          ? fmt::format("k to {} lanes in turn", slices)
                            : fmt::format("blocks of {} k to {} slices in turn", slice_length, slices);
    text += fmt::format(", {} reduced by {}", cut, name_of(reduction, narrow));
    if (order != Order::ascending) text += fmt::format(" {}", name_of(order));
  }
  return text + (epilogue == Epilogue::round_once ? "" : fmt::format(", {}", name_of(epilogue)));
}

Slices slices_of(const Hypothesis& hypothesis, std::size_t depth) {
  const std::size_t length = hypothesis.slice_length;
  if (hypothesis.slicing == Slicing::uneven) return {{{0, length}}, {{length, depth - length}}};
  Slices slices(hypothesis.slices);
  for (std::size_t first = 0, block = 0; first < depth; first += length, ++block)
    slices[block % hypothesis.slices].push_back({first, std::min(length, depth - first)});
  return slices;
}

const std::vector<Accumulator>& tree_accumulators() {
  static const std::vector<Accumulator> all = [] {
    std::vector<Accumulator> trees;
    for (const fp16::Format& format : {binary32, binary16})
      trees.push_back({.name = format == binary32 ? "tree_fp32" : "tree_fp16",
                       .way = TreeAccumulation{},
                       .format = format,
                       .products_per_step = 1,
                       .is_shortened = false,
                       .step_error = 2 * format.unit_roundoff()});
    return trees;
  }();
  return all;
}

bool suits(const Accumulator& accumulator, const fp16::Format& operands) {
  if (std::holds_alternative<MulAddAccumulation>(accumulator.way)) return operands == binary32;
  const auto* chain = std::get_if<fp16::Accumulation>(&accumulator.way);
  return operands == binary16 || (chain != nullptr && *chain == fp16::Accumulation::fp32_fma_chain);
}

std::vector<Hypothesis> hypotheses(const Problem& problem, std::size_t most_slices) {
  const std::vector<Epilogue> epilogues = epilogues_of(problem);
  std::vector<Hypothesis> all;
  for (const Cut& cut : cuts_of(problem.depth, most_slices)) {
    for (const Accumulator& accumulator : accumulators()) {
      if (!suits(accumulator, problem.operands) || !fits(cut, accumulator, problem.depth)) continue;
      for (const Epilogue epilogue : epilogues) {
        for (const Way& way : ways_of(problem, accumulator, cut, epilogue))
          all.push_back({.accumulator = &accumulator,
                         .slicing = cut.slicing,
                         .slice_length = cut.length,
                         .slices = cut.slices,
                         .reduction = way.reduction,
                         .narrow = problem.narrow().value_or(binary16),
                         .order = way.order,
                         .epilogue = epilogue});
      }
    }
  }
  if (problem.tree) add_trees(problem, epilogues, all);
  return all;
}

PartialsKey partials_key(const Hypothesis& hypothesis) {
  return {hypothesis.accumulator, hypothesis.slicing, hypothesis.slices, hypothesis.slice_length,
          hypothesis.starts_from_c()};
}

}  // namespace experiments::explain_gemm
