#include "experiments/explain_gemm/mistake.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <map>
#include <utility>
#include <vector>

#include "experiments/explain_gemm/one_way.h"
#include "fp16/codec.h"

namespace experiments::explain_gemm {
namespace {

// That so many outputs lie within their bounds by chance is unlikely for each of some hundred thousand ways.
constexpr std::size_t least_outputs = 8;
constexpr std::size_t least_outputs_of_bias = 4;  // to a column or row, on average
constexpr double usual_errors = 8;                // root mean squares, which hardly any rounding is beyond
constexpr std::size_t most_sampled = 256;
constexpr std::array<std::size_t, 5> tile_depths{128, 64, 32, 16, 8};
constexpr double largest_half = 65504;

/// An output that is to be had from a mistake.
struct Wrong {
  std::size_t output;
  double observed;
  double exact;
  double bound;  ///< of |observed - value| for the exact value
};

using Wrongs = std::vector<Wrong>;

Wrong wrong_output(const Problem& problem, const Difference& difference, double bound) {
  return {.output = difference.output,
          .observed = value_of(problem.d.format, difference.observed),
          .exact = difference.exact.value,
          .bound = bound};
}

/// Real bugs and undecided outputs.
Wrongs wrong_outputs(const Problem& problem, const Classification& classes) {
  const auto arithmetic = static_cast<std::size_t>(classes.majority ? classes.arithmetic : Arithmetic::fp32);
  Wrongs wrong;
  for (const Difference& difference : classes.differences) {
    if (difference.kind == Kind::real_bug || difference.kind == Kind::undecided)
      wrong.push_back(wrong_output(problem, difference, difference.bounds[arithmetic]));
  }
  return wrong;
}

/// Outputs that are farther off than FP32 sums usually are, with that for a bound: those of large k are wide.
Wrongs doubtful_outputs(const Problem& problem, const Classification& classes) {
  const double usual = usual_errors * classes.chain_error;
  Wrongs doubtful;
  for (const Difference& difference : classes.differences) {
    if (difference.error(problem.d.format) > usual)
      doubtful.push_back(wrong_output(problem, difference, usual));
  }
  return doubtful;
}

Wrongs sampled(const Wrongs& wrong) {
  if (wrong.size() <= most_sampled) return wrong;
  Wrongs sample;
  for (std::size_t i = 0; i < most_sampled; ++i) sample.push_back(wrong[i * wrong.size() / most_sampled]);
  return sample;
}

/// The bound allows for rounding the exact value to D, of which a larger value takes more.
double bound_around(const Problem& problem, const Wrong& wrong, double value) {
  const double beyond = std::fabs(value) - std::fabs(wrong.exact);
  return wrong.bound + std::ldexp(std::max(0.0, beyond), -problem.d.format.precision);
}

/// Nothing fits where an operand is infinite: within that bound everything would.
bool fits(const Problem& problem, const Wrong& wrong, double value) {
  const double bound = bound_around(problem, wrong, value);
  return std::isfinite(bound) && std::fabs(wrong.observed - value) <= bound;
}

/// Whether a value is another one than is right, so that it can explain what is wrong.
bool is_another(const Wrong& wrong, double value) {
  return std::fabs(value - wrong.exact) > wrong.bound;
}

/// Whether a formula gives all of them, and is not the right one on these operands, as that of a transposed A on a
/// symmetric one is.
template <class Value>
bool explains_all(const Problem& problem, const Wrongs& wrong, const Value& value) {
  bool changes = false;
  for (const Wrong& w : wrong) {
    const double other = value(w);
    if (!fits(problem, w, other)) return false;
    changes = changes || is_another(w, other);
  }
  return changes;
}

double added_c(const Problem& problem, std::size_t output) {
  return double{problem.beta} * problem.c_at(output);
}

std::optional<Mistake> cut_off_below_zero(const Problem& problem, const Wrongs& wrong) {
  const bool cut_off =
      wrong.size() >= least_outputs &&
      std::ranges::all_of(wrong, [](const Wrong& w) { return w.observed == 0 && w.exact < 0; }) &&
      std::ranges::none_of(problem.d.codes,
                           [&](std::uint32_t code) { return value_of(problem.d.format, code) < 0; });
  if (!cut_off) return {};
  return Mistake{"relu", "what should be negative is 0, and nothing in D is negative: D went through a ReLU",
                 "explain D as it is before the activation"};
}

std::optional<Mistake> saturated(const Problem& problem, const Wrongs& wrong) {
  if (problem.d.format != fp16::binary16) return {};
  const bool is_saturated = std::ranges::all_of(wrong, [](const Wrong& w) {
    return std::fabs(w.observed) == largest_half && w.observed * w.exact > 0 &&
           std::fabs(w.exact) + w.bound >= largest_half;
  });
  if (!is_saturated) return {};
  return Mistake{
      "saturated",
      "each wrong output is 65504 or -65504 where the exact value is beyond it: D is cut off at FP16's "
      "range in place of becoming infinite",
      "if that is meant, scale A or B down by a power of two until nothing is cut off, and explain that D"};
}

std::optional<Mistake> same_value(const Problem& problem, const Wrongs& wrong) {
  const std::uint32_t code = problem.d.codes[wrong.front().output];
  const bool is_same = wrong.size() > 1 && std::ranges::all_of(wrong, [&](const Wrong& w) {
                         return problem.d.codes[w.output] == code;
                       });
  if (!is_same) return {};
  return Mistake{"same_value", fmt::format("each wrong output holds {}", wrong.front().observed),
                 "look whether these outputs are written at all: the grid's size, the masks at edges, an "
                 "early return"};
}

std::optional<Mistake> without_c(const Problem& problem, const Wrongs& wrong) {
  if (problem.beta == 0 || wrong.size() < least_outputs) return {};
  if (!explains_all(problem, wrong, [&](const Wrong& w) { return w.exact - added_c(problem, w.output); }))
    return {};
  return Mistake{"without_c", "each wrong output is alpha A B alone: beta C was not added",
                 "look at the epilogue's reading of C and at beta"};
}

struct Factors {
  double alpha, beta;
};

/// By least squares, of observed = alpha A B + beta C; not finite where the outputs do not determine them.
Factors fitted_factors(const Problem& problem, const Wrongs& wrong) {
  double pp = 0, pc = 0, cc = 0, po = 0, co = 0;
  for (const Wrong& w : wrong) {
    const double product = (w.exact - added_c(problem, w.output)) / problem.alpha, c = problem.c_at(w.output);
    pp += product * product;
    pc += product * c;
    cc += c * c;
    po += product * w.observed;
    co += c * w.observed;
  }
  if (problem.beta == 0) return {po / pp, 0};
  const double determinant = pp * cc - pc * pc;
  return {(po * cc - co * pc) / determinant, (co * pp - po * pc) / determinant};
}

/// So near the factors that were given, rounding shifts them as well.
bool is_like(const Factors& factors, const Problem& problem) {
  const auto is_near = [](double fitted, double given) {
    return std::fabs(fitted - given) <= 0x1p-7 * std::fabs(given);
  };
  return is_near(factors.alpha, problem.alpha) && is_near(factors.beta, problem.beta);
}

std::optional<Mistake> other_factors(const Problem& problem, const Wrongs& wrong) {
  const Factors factors = fitted_factors(problem, wrong);
  const bool is_solved = wrong.size() >= least_outputs && std::isfinite(factors.alpha) &&
                         std::isfinite(factors.beta) && factors.alpha != 0 && !is_like(factors, problem);
  if (!is_solved) return {};
  // The bounds are of sums with the factors given.
  const double growth = std::max({1.0, std::fabs(factors.alpha / problem.alpha),
                                  problem.beta == 0 ? 0 : std::fabs(factors.beta / problem.beta)});
  const bool all_fit = std::ranges::all_of(wrong, [&](const Wrong& w) {
    const double c = added_c(problem, w.output), product = (w.exact - c) / problem.alpha;
    const double value = factors.alpha * product + factors.beta * problem.c_at(w.output);
    return std::fabs(w.observed - value) <= growth * w.bound;
  });
  if (!all_fit) return {};
  const bool has_c = problem.beta != 0;
  return Mistake{
      "factors",
      fmt::format("the wrong outputs are those of alpha = {:.5g}{}", factors.alpha,
                  has_c ? fmt::format(" and beta = {:.5g}", factors.beta) : ""),
      fmt::format("if that is meant, give --alpha {:.5g}{}; otherwise look which factor is missing or "
                  "applied twice",
                  factors.alpha, has_c ? fmt::format(" --beta {:.5g}", factors.beta) : "")};
}

/// Where the elements of an output's sum are read.
struct Reading {
  std::string_view name;
  std::string_view what;
  bool a_by_columns, b_by_columns, d_by_columns, swaps = false;
};

constexpr std::array<Reading, 5> readings{{
    {"a_by_columns", "A read by columns where it lies by rows, or transposed", true, false, false},
    {"b_by_columns", "B read by columns where it lies by rows, or transposed", false, true, false},
    {"both_by_columns", "A and B read by columns where they lie by rows, or transposed", true, true, false},
    {"d_by_columns", "D stored by columns where it is read by rows, or transposed", false, false, true},
    {"operands_swapped", "B A in place of A B, as a BLAS makes of rows that it takes for columns", false,
     false, false, true},
}};

double value_by(const Problem& problem, const Reading& reading, std::size_t output) {
  const std::size_t rows = problem.rows_each(), triple = problem.triple_of(output / problem.columns);
  const std::size_t place = output % (rows * problem.columns);  // in its triple's D
  std::size_t row = place / problem.columns, column = place % problem.columns;
  if (reading.d_by_columns) row = place % rows, column = place / rows;
  const float* left = problem.a.data() + triple * rows * problem.depth;
  const float* right = problem.b.data() + triple * problem.depth * problem.columns;
  if (reading.swaps) std::swap(left, right);
  double sum = 0;
  for (std::size_t k = 0; k < problem.depth; ++k) {
    const std::size_t a = reading.a_by_columns ? k * rows + row : row * problem.depth + k;
    const std::size_t b = reading.b_by_columns ? column * problem.depth + k : k * problem.columns + column;
    sum += double{left[a]} * double{right[b]};
  }
  return problem.alpha * sum + added_c(problem, output);
}

std::optional<Mistake> misread(const Problem& problem, const Wrongs& sample) {
  const bool is_square = problem.rows_each() == problem.depth && problem.depth == problem.columns;
  for (const Reading& reading : readings) {
    if (reading.swaps && !is_square) continue;
    if (explains_all(problem, sample, [&](const Wrong& w) { return value_by(problem, reading, w.output); }))
      return Mistake{reading.name, fmt::format("the wrong outputs are those of {}", reading.what),
                     "look at the layouts and leading dimensions of the call, or at the files' shapes"};
  }
  return {};
}

/// A rounding of FP32 operands before they are multiplied.
struct Narrowing {
  std::string_view name;
  std::string_view what;
  std::string_view next;
  float (*rounded)(float);
};

float toward_zero_to_tf32(float value) {
  return std::bit_cast<float>(std::bit_cast<std::uint32_t>(value) & 0xffffe000);
}

constexpr std::string_view turn_off_tf32 =
    "if that is not meant, turn TF32 off (torch.backends.cuda.matmul.allow_tf32 = False, "
    "NVIDIA_TF32_OVERRIDE=0)";

constexpr std::array<Narrowing, 4> narrowings{{
    {"tf32", "TF32, to nearest", turn_off_tf32,
     [](float value) {
       return static_cast<float>(fp16::decode<fp16::tf32>(fp16::encode<fp16::tf32>(value).bits));
     }},
    {"tf32_truncated", "TF32, toward zero", turn_off_tf32, toward_zero_to_tf32},
    {"bfloat16", "bfloat16", "if that is not meant, look whether the call runs under autocast",
     [](float value) { return rounded_to(fp16::bfloat16, value); }},
    {"fp16", "FP16", "if that is not meant, look whether the call runs under autocast",
     [](float value) { return rounded_to(fp16::binary16, value); }},
}};

double value_by(const Problem& problem, const Narrowing& narrowing, std::size_t output) {
  double sum = 0;
  for (std::size_t k = 0; k < problem.depth; ++k)
    sum += double{narrowing.rounded(problem.a_of(output, k))} *
           double{narrowing.rounded(problem.b_of(output, k))};
  return problem.alpha * sum + added_c(problem, output);
}

std::optional<Mistake> narrowed(const Problem& problem, const Wrongs& sample) {
  if (problem.operands != fp16::binary32) return {};
  for (const Narrowing& narrowing : narrowings) {
    if (explains_all(problem, sample, [&](const Wrong& w) { return value_by(problem, narrowing, w.output); }))
      return Mistake{narrowing.name,
                     fmt::format("the wrong outputs are those of A and B rounded to {}", narrowing.what),
                     std::string(narrowing.next)};
  }
  return {};
}

/// Products of k from `first` on, which are missing or come twice.
struct Span {
  Range range;
  bool is_repeated = false;
  bool changes = false;  ///< some output, beyond its bound: products of padding do not
};

std::vector<Span> spans(std::size_t depth) {
  std::vector<Span> all;
  for (std::size_t length = 1; length < depth; ++length) {
    all.push_back({{depth - length, length}});
    all.push_back({{0, length}});
  }
  for (const std::size_t length : tile_depths) {
    for (std::size_t first = 0; first < depth && length < depth; first += length) {
      for (const bool is_repeated : {false, true})
        all.push_back({{first, std::min(length, depth - first)}, is_repeated});
    }
  }
  return all;
}

std::optional<Mistake> miscounted(const Problem& problem, const Wrongs& sample) {
  std::vector<Span> left = spans(problem.depth);
  std::vector<double> sums(problem.depth + 1);  // of the products before k
  for (const Wrong& w : sample) {
    for (std::size_t k = 0; k < problem.depth; ++k) sums[k + 1] = sums[k] + product_at(problem, w.output, k);
    const auto value_by = [&](const Span& span) {
      const auto [first, length] = span.range;
      const double part = problem.alpha * (sums[first + length] - sums[first]);
      return w.exact + (span.is_repeated ? part : -part);
    };
    std::erase_if(left, [&](const Span& span) { return !fits(problem, w, value_by(span)); });
    for (Span& span : left) span.changes = span.changes || is_another(w, value_by(span));
  }
  std::erase_if(left, [](const Span& span) { return !span.changes; });
  if (left.empty()) return {};
  const Span& span = left.front();
  const auto [first, length] = span.range;
  const std::string products =
      fmt::format("the {} products from k = {} to {}", length, first, first + length - 1);
  if (span.is_repeated)
    return Mistake{"products_repeated", fmt::format("the wrong outputs hold {} twice", products),
                   "look at the loop over k: a tile that is loaded twice, or slices that overlap"};
  return Mistake{"products_missing", fmt::format("the wrong outputs are sums without {}", products),
                 "look at the loop over k: its first and last tile, the mask of what is left over, a copy "
                 "that is not waited for"};
}

/// Whether the outputs of each column, or row, differ from the exact values by one number.
bool has_bias(const Problem& problem, const Wrongs& wrong, bool by_columns) {
  struct Group {
    double lower = -std::numeric_limits<double>::infinity(), upper = -lower;
    double bound = upper;  // the least of its outputs
    std::size_t outputs = 0;
  };
  std::map<std::size_t, Group> groups;
  for (const Wrong& w : wrong) {
    const std::size_t row = w.output / problem.columns, column = w.output % problem.columns;
    Group& group = groups[by_columns ? problem.triple_of(row) * problem.columns + column : row];
    const double offset = w.observed - w.exact, bound = bound_around(problem, w, w.observed);
    if (!std::isfinite(offset)) return false;
    group.lower = std::max(group.lower, offset - bound);
    group.upper = std::min(group.upper, offset + bound);
    group.bound = std::min(group.bound, w.bound);
    ++group.outputs;
  }
  const auto has_one = [](const auto& entry) { return entry.second.lower <= entry.second.upper; };
  const auto has_more_than_rounding = [](const auto& entry) {
    return std::fabs(entry.second.lower + entry.second.upper) / 2 > entry.second.bound;
  };
  return wrong.size() >= std::max(least_outputs, least_outputs_of_bias * groups.size()) &&
         std::ranges::all_of(groups, has_one) && std::ranges::any_of(groups, has_more_than_rounding);
}

std::optional<Mistake> biased(const Problem& problem, const Wrongs& wrong) {
  for (const bool by_columns : {true, false}) {
    if (has_bias(problem, wrong, by_columns))
      return Mistake{by_columns ? "column_bias" : "row_bias",
                     fmt::format("each {} of D has one number added to its wrong outputs: a bias",
                                 by_columns ? "column" : "row"),
                     "if that is meant, give the bias as --c, repeated to D's shape"};
  }
  return {};
}

std::optional<Mistake> mistake_in(const Problem& problem, const Wrongs& wrong) {
  if (auto mistake = cut_off_below_zero(problem, wrong)) return mistake;
  if (auto mistake = saturated(problem, wrong)) return mistake;
  if (auto mistake = same_value(problem, wrong)) return mistake;
  if (auto mistake = without_c(problem, wrong)) return mistake;
  if (auto mistake = other_factors(problem, wrong)) return mistake;
  if (wrong.size() >= least_outputs) {
    const Wrongs sample = sampled(wrong);
    if (auto mistake = narrowed(problem, sample)) return mistake;
    if (auto mistake = misread(problem, sample)) return mistake;
    if (auto mistake = miscounted(problem, sample)) return mistake;
  }
  return biased(problem, wrong);
}

}  // namespace

std::optional<Mistake> mistake_of(const Problem& problem, const Classification& classes) {
  if (auto mistake = stored_one_way(problem, classes)) return mistake;
  const Wrongs wrong = wrong_outputs(problem, classes);
  if (!wrong.empty()) {
    if (auto mistake = mistake_in(problem, wrong)) return mistake;
  }
  const Wrongs doubtful = doubtful_outputs(problem, classes);
  if (doubtful.size() >= least_outputs) return mistake_in(problem, doubtful);
  return {};
}

}  // namespace experiments::explain_gemm
