#include "experiments/explain_gemm/mistake.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "experiments/explain_gemm/one_way.h"
#include "experiments/explain_gemm/other_sums.h"

namespace experiments::explain_gemm {
namespace {

constexpr std::size_t least_outputs_of_bias = 4;  // to a column or row, on average
constexpr double usual_errors = 8;                // root mean squares, which hardly any rounding is beyond
constexpr std::size_t most_sampled = 256;
constexpr double largest_half = 65504;

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

/// Outputs that are not wrong, of up to 256 evenly spread ones.
Wrongs right_outputs(const Problem& problem, const Wrongs& wrong) {
  std::vector<bool> is_wrong(problem.outputs());
  for (const Wrong& w : wrong) is_wrong[w.output] = true;
  Wrongs right;
  const std::size_t tried = std::min(most_sampled, problem.outputs());
  for (std::size_t i = 0; i < tried; ++i) {
    const std::size_t output = i * problem.outputs() / tried;
    if (is_wrong[output]) continue;
    const ExactOutput exact = exact_output(problem, output);
    right.push_back({.output = output,
                     .observed = value_of(problem.d.format, problem.d.codes[output]),
                     .exact = exact.value,
                     .bound = error_bound(problem, Arithmetic::fp32, exact, slices_at_most)});
  }
  return right;
}

bool is_never_negative(const Matrix& d) {
  return std::ranges::none_of(d.codes, [&](std::uint32_t code) { return value_of(d.format, code) < 0; });
}

std::optional<Mistake> without_sign(const Problem& problem, const Wrongs& wrong) {
  const bool is_candidate = wrong.size() >= least_outputs && is_never_negative(problem.d) &&
                            std::ranges::all_of(wrong, [](const Wrong& w) { return w.exact < 0; });
  if (!is_candidate) return {};
  if (std::ranges::all_of(wrong, [](const Wrong& w) { return w.observed == 0; }))
    return Mistake{"relu",
                   "what should be negative is 0, and nothing in D is negative: D went through a ReLU",
                   "explain D as it is before the activation"};
  if (!explains_all(problem, wrong, [](const Wrong& w) { return -w.exact; })) return {};
  return Mistake{"absolute",
                 "what should be negative has the other sign, and nothing in D is negative: D holds "
                 "absolute values",
                 "look where the sign is lost: an abs, or a mask of the bits"};
}

std::optional<Mistake> flushed(const Problem& problem, const Wrongs& wrong) {
  const double least = problem.d.format.min_normal();
  const auto is_subnormal = [&](std::uint32_t code) {
    const double value = std::fabs(value_of(problem.d.format, code));
    return value > 0 && value < least;
  };
  const bool is_flushed =
      wrong.size() >= least_outputs &&
      std::ranges::all_of(
          wrong, [&](const Wrong& w) { return w.observed == 0 && std::fabs(w.exact) - w.bound < least; }) &&
      std::ranges::none_of(problem.d.codes, is_subnormal);
  if (!is_flushed) return {};
  return Mistake{
      "results_flushed",
      fmt::format(
          "each wrong output is 0 where the exact value is subnormal in {}, below {:.3g}, and no output "
          "is subnormal: such results are flushed to 0",
          short_name(problem.d.format), least),
      "look for what flushes to zero (FTZ, .ftz, -use_fast_math), or scale A or B up by a power of two"};
}

std::optional<Mistake> passed_through_bfloat16(const Problem& problem, const Wrongs& wrong) {
  constexpr double u = fp16::bfloat16.unit_roundoff();
  const auto is_bfloat16 = [&](std::uint32_t code) {
    const double value = value_of(problem.d.format, code);
    return double{rounded_to(fp16::bfloat16, static_cast<float>(value))} == value;
  };
  const bool has_passed = problem.d.format == fp16::binary16 && wrong.size() >= least_outputs &&
                          std::ranges::all_of(problem.d.codes, is_bfloat16) &&
                          std::ranges::all_of(wrong, [&](const Wrong& w) {
                            return std::fabs(w.observed - w.exact) <= w.bound + u * std::fabs(w.exact);
                          });
  if (!has_passed) return {};
  return Mistake{"d_by_bfloat16",
                 "D in FP16 holds nothing but numbers of bfloat16, those next to the exact values",
                 "look where the results pass through bfloat16 on their way to D"};
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
  const double expected = wrong.front().exact;
  if (std::ranges::all_of(wrong, [&](const Wrong& w) { return w.exact == expected; }))
    return Mistake{
        "same_value",
        fmt::format("each wrong output holds {} in place of {}: with operands so alike every mistake "
                    "looks the same",
                    wrong.front().observed, expected),
        "explain the product of a random A and B, which tells a missing k, a factor and outputs that "
        "are not written apart"};
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
constexpr double shifted_by_rounding = 0x1p-7;

bool is_like(const Factors& factors, const Problem& problem, double share) {
  const auto is_near = [share](double fitted, double given) {
    return std::fabs(fitted - given) <= share * std::fabs(given);
  };
  return is_near(factors.alpha, problem.alpha) && is_near(factors.beta, problem.beta);
}

/// Whether an output is what other factors make of it. The bounds are of sums with the factors given.
bool fits(const Factors& factors, const Problem& problem, const Wrong& w) {
  const double growth = std::max({1.0, std::fabs(factors.alpha / problem.alpha),
                                  problem.beta == 0 ? 0 : std::fabs(factors.beta / problem.beta)});
  const double c = added_c(problem, w.output), product = (w.exact - c) / problem.alpha;
  const double value = factors.alpha * product + factors.beta * problem.c_at(w.output);
  return std::fabs(w.observed - value) <= growth * w.bound;
}

/// The factors that make the wrong outputs; none where the given ones nearly do.
std::optional<Factors> solved_factors(const Problem& problem, const Wrongs& wrong, double nearly) {
  const Factors factors = fitted_factors(problem, wrong);
  const bool is_solved = wrong.size() >= least_outputs && std::isfinite(factors.alpha) &&
                         std::isfinite(factors.beta) && factors.alpha != 0 &&
                         !is_like(factors, problem, nearly);
  const auto fit = [&](const Wrong& w) { return fits(factors, problem, w); };
  return is_solved && std::ranges::all_of(wrong, fit) ? std::optional(factors) : std::nullopt;
}

/// A factor that lost digits on its way. FP32 outputs alone tell it, whose own rounding is far smaller.
std::optional<Mistake> near_factors(const Problem& problem, const Wrongs& wrong) {
  if (problem.d.format != fp16::binary32) return {};
  const std::optional<Factors> factors = solved_factors(problem, wrong, 4 * fp16::binary32.unit_roundoff());
  const auto fit = [&](const Wrong& w) { return fits(*factors, problem, w); };
  if (!factors || !std::ranges::all_of(right_outputs(problem, wrong), fit)) return {};
  const auto text = [](const char* name, double fitted, float given) {
    const double half = rounded_to(fp16::binary16, given);
    return std::fabs(fitted - half) <= 0x1p-20 * std::fabs(half)
               ? fmt::format("{} = {}, which is {:.7g} in FP16", name, half, given)
               : fmt::format("{} = {:.7g}", name, fitted);
  };
  return Mistake{"factors",
                 fmt::format("all outputs are those of {}{}", text("alpha", factors->alpha, problem.alpha),
                             problem.beta != 0 ? " and " + text("beta", factors->beta, problem.beta) : ""),
                 "if that is meant, give these factors; otherwise look where one loses its digits"};
}

std::optional<Mistake> other_factors(const Problem& problem, const Wrongs& wrong) {
  const std::optional<Factors> solved = solved_factors(problem, wrong, shifted_by_rounding);
  if (!solved) return {};
  const Factors& factors = *solved;
  const auto fit = [&](const Wrong& w) { return fits(factors, problem, w); };
  const bool has_c = problem.beta != 0;
  const std::string what = fmt::format("the wrong outputs are those of alpha = {:.5g}{}", factors.alpha,
                                       has_c ? fmt::format(" and beta = {:.5g}", factors.beta) : "");
  if (!std::ranges::all_of(right_outputs(problem, wrong), fit))
    return Mistake{"factors", what + ", the others those of the factors given",
                   "look which factor is missing or applied twice where the outputs are wrong"};
  return Mistake{
      "factors", what,
      fmt::format("if that is meant, give --alpha {:.5g}{}; otherwise look which factor is missing "
                  "or applied twice",
                  factors.alpha, has_c ? fmt::format(" --beta {:.5g}", factors.beta) : "")};
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
  for (const auto& known :
       {without_sign, saturated, flushed, same_value, passed_through_bfloat16, without_c, other_factors}) {
    if (auto mistake = known(problem, wrong)) return mistake;
  }
  if (wrong.size() >= least_outputs) {
    if (auto mistake = other_sum(problem, sampled(wrong))) return mistake;
  }
  if (auto mistake = near_factors(problem, wrong)) return mistake;
  return biased(problem, wrong);
}

/// With the outputs that it gives.
std::optional<Mistake> mistake_with(const Problem& problem, const Wrongs& wrong) {
  std::optional<Mistake> mistake = mistake_in(problem, wrong);
  if (!mistake) return {};
  for (const Wrong& w : wrong) mistake->outputs.push_back(w.output);
  return mistake;
}

}  // namespace

std::optional<Mistake> mistake_of(const Problem& problem, const Classification& classes) {
  if (auto mistake = stored_one_way(problem, classes)) return mistake;
  const Wrongs wrong = wrong_outputs(problem, classes);
  if (!wrong.empty()) {
    if (auto mistake = mistake_with(problem, wrong)) return mistake;
  }
  const Wrongs doubtful = doubtful_outputs(problem, classes);
  if (doubtful.size() >= least_outputs) return mistake_with(problem, doubtful);
  return {};
}

}  // namespace experiments::explain_gemm
