#include "experiments/explain_gemm/classification.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "experiments/explain_gemm/prediction.h"
#include "experiments/frame/parallel.h"
#include "fp16/codec.h"
#include "fp16/elementary.h"

namespace experiments::explain_gemm {
namespace {

using fp16::binary16;
using fp16::binary32;

constexpr double reference_error = 0x1p-50;  // of a few operations in double

double half_of_smallest_subnormal(const fp16::Format& format) {
  return std::ldexp(format.min_subnormal(), -1);
}

/// The smallest magnitude that rounds to infinity.
double overflow_threshold(const fp16::Format& format) {
  return std::ldexp(2 - format.unit_roundoff(), format.emax());
}

/// Zero, or not below the magnitude that the exponent of alignment stands for.
double aligned_magnitude(const fp16::Format& format, double value) {
  return value == 0 ? 0 : std::max(std::fabs(value), format.min_normal());
}

/// A sum of doubles and of what its additions lose (Neumaier 1974): off by two roundings of the sum, and by terms of
/// second order that count above 2^25 terms only.
class CompensatedSum {
 public:
  void add(double term) {
    const double sum = sum_ + term;
    lost_ += std::fabs(sum_) >= std::fabs(term) ? (sum_ - sum) + term : (term - sum) + sum_;
    sum_ = sum;
  }
  double value() const { return sum_ + lost_; }

 private:
  double sum_ = 0, lost_ = 0;
};

/// The range of the narrowest sums that hypotheses and bounds allow for.
double sum_overflow_threshold(const Problem& problem) {
  return overflow_threshold(problem.operands == binary16 ? binary16 : binary32);
}

/// The formats of 16 bits that sums may be rounded to: as slices' sums are stored, and D's, before the epilogue.
std::vector<fp16::Format> narrow_formats(const Problem& problem) {
  std::vector<fp16::Format> all;
  if (problem.narrow()) all.push_back(*problem.narrow());
  if (problem.d.format != binary32) all.push_back(problem.d.format);
  return all;
}

/// n u of the worst accumulator of a format, for chains through all of k.
double accumulated(const fp16::Format& format, const Problem& problem, int slices) {
  double worst = 0;
  for (const Accumulator& accumulator : accumulators()) {
    const bool is_possible = problem.operands != binary32 || suits(accumulator, binary32);
    if (accumulator.format != format || !is_possible) continue;
    const std::size_t step = accumulator.products_per_step;
    const auto steps = static_cast<double>((problem.depth + step - 1) / step) + slices;
    worst = std::max(worst, steps * accumulator.step_error);
  }
  return worst;
}

/// n factors of at most 1 + u make a number that much larger, relatively.
double growth(double n_times_u) {
  return fp16::expm1(n_times_u);
}

/// The error of alpha and beta in 16 bits, relative to them.
double scale_error(const Problem& problem, const fp16::Format& narrow) {
  double worst = 0;
  for (const float factor : {problem.alpha, problem.beta}) {
    const double error = std::fabs(double{rounded_to(narrow, factor)} - factor);
    if (factor != 0 && std::isfinite(error)) worst = std::max(worst, error / std::fabs(double{factor}));
  }
  return worst;
}

double observed_value(const Problem& problem, std::size_t output) {
  return value_of(problem.d.format, problem.d.codes[output]);
}

/// Whether an infinity or NaN is D's rounding of a value beyond its range.
bool may_be_beyond_range(const Problem& problem, const Difference& difference, double bound) {
  const double observed = observed_value(problem, difference.output);
  return std::isinf(observed) && std::signbit(observed) == std::signbit(difference.exact.value) &&
         std::fabs(difference.exact.value) + bound >= overflow_threshold(problem.d.format);
}

/// Whether some sum of the products, before alpha or after it, leaves its range in some order, or that of D, which it may
/// be rounded to. The bound is that of the arithmetic that allows for most roundings.
bool may_overflow(const Problem& problem, std::size_t output, const ExactOutput& exact, double bound) {
  const double c = std::fabs(double{problem.beta} * problem.c_at(output));
  const double products = (exact.magnitudes - c + bound) / std::fabs(double{problem.alpha});
  const double threshold = std::min(sum_overflow_threshold(problem), overflow_threshold(problem.d.format));
  return std::max(exact.magnitudes + bound, products) >= threshold;
}

bool is_within(const Problem& problem, const Difference& difference, Arithmetic arithmetic) {
  const double bound = difference.bounds[static_cast<std::size_t>(arithmetic)];
  const double observed = observed_value(problem, difference.output);
  if (!std::isfinite(observed)) return may_be_beyond_range(problem, difference, bound);
  return std::fabs(observed - difference.exact.value) <= bound;
}

Kind kind_of(const Problem& problem, const Difference& difference, const Classification& all) {
  if (std::isnan(difference.exact.value) || std::isinf(difference.exact.value)) return Kind::real_bug;
  const bool beyond_fp32 = !is_within(problem, difference, Arithmetic::fp32);
  if (is_within(problem, difference, all.arithmetic))
    return !all.majority && beyond_fp32 ? Kind::undecided : Kind::rounding;
  const bool finite = std::isfinite(observed_value(problem, difference.output));
  return !finite && may_overflow(problem, difference.output, difference.exact, difference.bounds.back())
             ? Kind::overflow
             : Kind::real_bug;
}

/// The arithmetic that allows for most roundings, of those that operands are added in.
Arithmetic loosest(const Problem& problem) {
  if (problem.operands == binary16) return Arithmetic::fp16_accumulators;
  return narrow_formats(problem).empty() ? Arithmetic::fp32 : Arithmetic::narrow_reduction;
}

Arithmetic deciding_arithmetic(const Problem& problem, const Classification& found, const Hypothesis& best) {
  if (found.majority) return arithmetic_of(best);
  const Arithmetic last = loosest(problem);
  for (const Arithmetic arithmetic : {Arithmetic::fp32, Arithmetic::narrow_reduction}) {
    if (arithmetic == last) break;
    const bool holds = std::ranges::all_of(found.differences, [&](const Difference& difference) {
      return !std::isfinite(observed_value(problem, difference.output)) ||
             is_within(problem, difference, arithmetic);
    });
    if (holds) return arithmetic;
  }
  return last;
}

/// Why outputs are not finite.
void find_overflows(const Problem& problem, const Slices& slices, int most_slices, const Run& run,
                    Classification& found) {
  struct Row {
    std::size_t count = 0;
    std::optional<std::size_t> output, at;
    Tally beyond_range = {}, from_operands = {};
  };
  const auto last = static_cast<Arithmetic>(arithmetic_count - 1);
  std::vector<Row> rows(problem.rows);
  Progress progress = run.progress("overflows", problem.rows);
  parallel_for_each(problem.rows, run.threads(), [&](std::size_t i) {
    for (std::size_t output = i * problem.columns; output < (i + 1) * problem.columns; ++output) {
      if (std::isfinite(observed_value(problem, output))) continue;
      const ExactOutput exact = exact_output(problem, output);
      if (!std::isfinite(exact.value)) {
        rows[i].from_operands.add(output);
        continue;
      }
      if (std::fabs(exact.value) >= overflow_threshold(problem.d.format)) {
        rows[i].beyond_range.add(output);
        continue;
      }
      if (!may_overflow(problem, output, exact, error_bound(problem, last, exact, most_slices))) continue;
      ++rows[i].count;
      const std::optional<std::size_t> at = first_overflow(problem, output, slices);
      if (at && (!rows[i].at || *at < *rows[i].at)) rows[i].at = at, rows[i].output = output;
    }
    progress.tick();
  });
  for (const Row& row : rows) {
    found.beyond_range.add(row.beyond_range);
    found.from_operands.add(row.from_operands);
    found.overflowed += row.count;
    if (!row.at || (found.first_overflow_at && *found.first_overflow_at <= *row.at)) continue;
    found.first_overflow_at = row.at;
    found.first_overflow_output = row.output;
  }
}

/// The root of the mean square of those that are finite; 0 without any.
double root_mean_square(const std::vector<double>& values) {
  double squares = 0, count = 0;
  for (const double value : values) {
    if (!std::isfinite(value)) continue;
    squares += value * value;
    ++count;
  }
  return count == 0 ? 0 : std::sqrt(squares / count);
}

/// The root mean square error of codes of D, over the differences of one kind or of all.
double error_of(const Problem& problem, const std::vector<std::uint32_t>& codes, const Classification& all,
                std::optional<Kind> kind = {}) {
  std::vector<double> errors;
  for (const Difference& difference : all.differences) {
    if (!kind || difference.kind == kind)
      errors.push_back(value_of(problem.d.format, codes[difference.output]) - difference.exact.value);
  }
  return root_mean_square(errors);
}

void measure_errors(const Problem& problem, const Explanation& found, const Run& run, Classification& all) {
  if (all.differences.empty()) return;
  all.rounding_error = error_of(problem, problem.d.codes, all, Kind::rounding);
  all.chain_error = error_of(problem, predicted(problem, found.tried.front().hypothesis, run), all);
  if (all.count(Kind::undecided) == 0) return;
  all.undecided_error = error_of(problem, problem.d.codes, all, Kind::undecided);
  all.narrow_error =
      error_of(problem, predicted(problem, narrow_hypothesis(found), run), all, Kind::undecided);
}

}  // namespace

std::string_view name_of(Arithmetic arithmetic, const Problem& problem) {
  if (arithmetic == Arithmetic::fp32) return "fp32";
  if (arithmetic == Arithmetic::fp16_accumulators) return "fp16_accumulators";
  if (!problem.narrow()) return problem.d.format == fp16::bfloat16 ? "bfloat16_epilogue" : "fp16_epilogue";
  return problem.narrow() == fp16::bfloat16 ? "bfloat16_reduction" : "fp16_reduction";
}

std::string_view name_of(Kind kind) {
  constexpr std::array<std::string_view, 4> names{"rounding_only", "undecided", "accumulator_overflow",
                                                  "real_bug"};
  return names[static_cast<std::size_t>(kind)];
}

Arithmetic arithmetic_of(const Hypothesis& hypothesis) {
  if (hypothesis.accumulator->format == binary16) return Arithmetic::fp16_accumulators;
  const bool is_narrow =
      (hypothesis.reduction != Reduction::none && hypothesis.reduction != Reduction::fp32) ||
      hypothesis.epilogue == Epilogue::round_product_first ||
      hypothesis.epilogue == Epilogue::round_c_first || is_in_halves(hypothesis.epilogue);
  return is_narrow ? Arithmetic::narrow_reduction : Arithmetic::fp32;
}

ExactOutput exact_output(const Problem& problem, std::size_t output) {
  CompensatedSum sum;
  double in_double = 0, magnitudes = 0;
  for (std::size_t k = 0; k < problem.depth; ++k) {
    const double a = problem.a_of(output, k), b = problem.b_of(output, k);
    in_double += a * b;
    sum.add(a * b);
    magnitudes += aligned_magnitude(problem.operands, a) * aligned_magnitude(problem.operands, b);
  }
  const double c = double{problem.beta} * problem.c_at(output);
  return {.value = std::fma(double{problem.alpha}, std::isfinite(in_double) ? sum.value() : in_double, c),
          .magnitudes = std::fabs(double{problem.alpha}) * magnitudes + std::fabs(c)};
}

double error_bound(const Problem& problem, Arithmetic arithmetic, const ExactOutput& exact, int most_slices) {
  arithmetic = std::min(arithmetic, loosest(problem));
  constexpr double u32 = 0x1p-24;
  const double alpha = std::fabs(double{problem.alpha});
  // Partial sums that are stored, the sums of them, and a rounding before the epilogue.
  const double reductions = 2.0 * most_slices + 1;
  double relative = accumulated(binary32, problem, most_slices) + reductions * u32;
  double absolute = 0, epilogue = 3 * u32;
  // Products of halves are floats, and their sums, multiples of 2^-48, never subnormal.
  if (problem.operands != binary16) {
    relative += u32;
    absolute = std::max(alpha, 1.0) * (static_cast<double>(problem.depth) + reductions) * 0x1p-149;
  }
  if (arithmetic != Arithmetic::fp32) {
    // Without reductions in 16 bits the sum alone is rounded.
    const double roundings = problem.narrow() ? reductions : 1;
    double u = 0, half_subnormal = 0, scale = 0;  // the worst of the formats
    for (const fp16::Format& format : narrow_formats(problem)) {
      u = std::max(u, format.unit_roundoff());
      half_subnormal = std::max(half_subnormal, half_of_smallest_subnormal(format));
      scale = std::max(scale, scale_error(problem, format));
    }
    relative += roundings * u;
    // What is rounded may be scaled later.
    absolute += (std::max(alpha, 1.0) * roundings + std::fabs(double{problem.beta}) + 4) * half_subnormal;
    epilogue += 4 * u + scale;
  }
  if (arithmetic == Arithmetic::fp16_accumulators) {
    // A product and a sum are rounded at each k, the product only once on its way.
    relative = accumulated(binary16, problem, most_slices) + (reductions + 1) * binary16.unit_roundoff();
    absolute += alpha * 2 * static_cast<double>(problem.depth) * half_of_smallest_subnormal(binary16);
  }
  double error = growth(relative) * exact.magnitudes + absolute * (1 + growth(relative));
  if (!problem.is_plain()) error += epilogue * (exact.magnitudes + error) + 0x1p-147;
  error += reference_error * exact.magnitudes;
  const double largest = std::fabs(exact.value) + error;
  return error + problem.d.format.unit_roundoff() * largest + half_of_smallest_subnormal(problem.d.format);
}

std::optional<std::size_t> first_overflow(const Problem& problem, std::size_t output, const Slices& slices) {
  std::optional<std::size_t> first;
  const double threshold = sum_overflow_threshold(problem);
  const auto check = [&](double sum, std::size_t k) {
    if (std::fabs(sum) >= threshold) first = std::min(first.value_or(k), k);
  };
  double of_slices = 0;  // exact to far beyond FP16's digits
  for (const std::vector<Range>& slice : slices) {
    double in_slice = 0;
    std::size_t k = 0;
    for (const Range& range : slice) {
      for (k = range.first; k < range.first + range.length; ++k)
        check(in_slice += product_at(problem, output, k), k);
    }
    check(of_slices += in_slice, k - 1);
  }
  return first;
}

double Difference::error(const fp16::Format& format) const {
  const double difference = std::fabs(value_of(format, observed) - exact.value);
  return std::isfinite(difference) ? difference : std::numeric_limits<double>::quiet_NaN();
}

const Hypothesis& narrow_hypothesis(const Explanation& found) {
  const auto arithmetic = [](const Tried& tried) { return arithmetic_of(tried.hypothesis); };
  return std::ranges::max_element(found.tried, {}, arithmetic)->hypothesis;
}

std::size_t Classification::count(Kind kind) const {
  return static_cast<std::size_t>(std::ranges::count(differences, kind, &Difference::kind));
}

bool Classification::is_doubtful() const {
  // Sums on tensor cores, which truncate, are some times as far off as a chain's.
  constexpr double farthest = 32;
  return arithmetic == Arithmetic::fp32 && rounding_error > farthest * chain_error;
}

std::string_view Classification::name() const {
  for (const Kind kind : {Kind::real_bug, Kind::overflow, Kind::undecided, Kind::rounding}) {
    if (count(kind) > 0 || (kind == Kind::overflow && overflowed > 0)) return name_of(kind);
  }
  return "none";
}

Classification classify(const Problem& problem, const Explanation& found, int most_slices, const Run& run) {
  const Tried& best = found.best();
  Classification all{.arithmetic = arithmetic_of(best.hypothesis),
                     .majority = best.explained > best.unexplained(),
                     .differences = {}};
  const std::vector<std::uint32_t> codes = predicted(problem, best.hypothesis, run);
  for (std::size_t output = 0; output < codes.size(); ++output) {
    if (!explains(problem.d.format, codes[output], problem.d.codes[output]))
      all.differences.push_back({.output = output,
                                 .predicted = codes[output],
                                 .observed = problem.d.codes[output],
                                 .exact = {},
                                 .bounds = {},
                                 .kind = Kind::rounding});
  }
  Progress progress = run.progress("exact values", all.differences.size());
  parallel_for_each(all.differences.size(), run.threads(), [&](std::size_t i) {
    Difference& difference = all.differences[i];
    difference.exact = exact_output(problem, difference.output);
    for (std::size_t arithmetic = 0; arithmetic < arithmetic_count; ++arithmetic)
      difference.bounds[arithmetic] =
          error_bound(problem, static_cast<Arithmetic>(arithmetic), difference.exact, most_slices);
    progress.tick();
  });
  all.arithmetic = deciding_arithmetic(problem, all, best.hypothesis);
  const Slices slices = slices_of(best.hypothesis, problem.depth);
  for (Difference& difference : all.differences) {
    difference.kind = kind_of(problem, difference, all);
    if (difference.kind == Kind::overflow)
      difference.overflow_at = first_overflow(problem, difference.output, slices);
  }
  std::ranges::stable_sort(all.differences, std::greater{}, &Difference::kind);
  measure_errors(problem, found, run, all);
  find_overflows(problem, slices, most_slices, run, all);
  return all;
}

}  // namespace experiments::explain_gemm
