#include "experiments/explain_gemm/one_way.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <vector>

#include "fp16/codec.h"

namespace experiments::explain_gemm {
namespace {

constexpr std::size_t least_told = 16;  // of which each goes one way by chance half of the time
constexpr std::size_t most_sampled = 256;
constexpr std::string_view remedy = "let the kernel round its sums to the nearest number as it stores D";

/// A way of storing sums in D that goes one way, where rounding to nearest goes both.
struct OneWay {
  std::string_view name;
  std::string_view what;  ///< such outputs are of their exact values
  std::string_view so;
  fp16::Rounding positive, negative;  ///< of exact values of that sign
  int positive_step = 0, negative_step = 0;
};

constexpr fp16::Rounding nearest = fp16::Rounding::nearest_even, up = fp16::Rounding::toward_positive,
                         down = fp16::Rounding::toward_negative;

constexpr std::array<OneWay, 8> one_ways{{
    {"truncated", "the last numbers toward 0 from", "D is cut off, not rounded", down, up},
    {"rounded_away", "the next numbers away from 0 from", "D is rounded away from 0", up, down},
    {"rounded_up", "the next numbers up from", "D is rounded up", up, up},
    {"rounded_down", "the last numbers down from", "D is rounded down", down, down},
    {"next_away", "one number farther from 0 than the nearest ones to",
     "D is off by one unit in the last place", nearest, nearest, 1, -1},
    {"next_toward_zero", "one number nearer to 0 than the nearest ones to",
     "D is off by one unit in the last place", nearest, nearest, -1, 1},
    {"next_up", "one number above the nearest ones to", "D is off by one unit in the last place", nearest,
     nearest, 1, 1},
    {"next_down", "one number below the nearest ones to", "D is off by one unit in the last place", nearest,
     nearest, -1, -1},
}};

/// The place of a code of 16 bits among its format's numbers.
int ordinal_of(std::uint32_t code) {
  const auto magnitude = static_cast<int>(code & 0x7fff);
  return (code & 0x8000) != 0 ? -magnitude : magnitude;
}

int ordinal_by(const OneWay& way, const fp16::Format& format, double exact) {
  const bool is_negative = exact < 0;
  const fp16::Rounding rounding = is_negative ? way.negative : way.positive;
  const std::uint32_t code = format == fp16::bfloat16
                                 ? fp16::encode<fp16::bfloat16>(exact, {.rounding = rounding}).bits
                                 : fp16::encode<fp16::binary16>(exact, {.rounding = rounding}).bits;
  return ordinal_of(code) + (is_negative ? way.negative_step : way.positive_step);
}

/// Whether D holds what is stored in that way; nothing where errors of FP32 sums hide it, and where the next number is
/// infinite.
std::optional<bool> is_stored_by(const OneWay& way, const fp16::Format& format, std::uint32_t code,
                                 double exact, double bound_in_fp32) {
  const double observed = std::fabs(value_of(format, code)), next = std::fabs(value_of(format, code + 1));
  const double error =
      bound_in_fp32 - std::ldexp(std::fabs(exact), -format.precision);  // without D's rounding
  if (!std::isfinite(next) || !(error < (next - observed) / 8)) return {};
  const int ordinal = ordinal_of(code);
  return ordinal_by(way, format, exact - error) <= ordinal &&
         ordinal <= ordinal_by(way, format, exact + error);
}

/// Whether it can be that outputs which a hypothesis explains are stored in that way, too: ties, for one, go one way where
/// all else is rounded to nearest. Of a sample, evenly spread.
bool suits_explained(const OneWay& way, const Problem& problem, const Classification& classes) {
  std::vector<bool> is_explained(problem.outputs(), true);
  for (const Difference& difference : classes.differences) is_explained[difference.output] = false;
  const std::size_t tried = std::min(most_sampled, problem.outputs());
  for (std::size_t i = 0; i < tried; ++i) {
    const std::size_t output = i * problem.outputs() / tried;
    if (!is_explained[output]) continue;
    const ExactOutput exact = exact_output(problem, output);
    if (!std::isfinite(exact.value)) continue;
    const double bound = error_bound(problem, Arithmetic::fp32, exact, slices_at_most);
    if (is_stored_by(way, problem.d.format, problem.d.codes[output], exact.value, bound) == false)
      return false;
  }
  return true;
}

bool is_all_stored_by(const OneWay& way, const Problem& problem, const Classification& classes,
                      std::size_t& told) {
  told = 0;
  for (const Difference& difference : classes.differences) {
    const std::optional<bool> is_one = is_stored_by(way, problem.d.format, difference.observed,
                                                    difference.exact.value, difference.bounds.front());
    if (is_one == false) return false;
    told += is_one.has_value();
  }
  return told >= least_told && suits_explained(way, problem, classes);
}

/// A direction in which D lies from the exact values, for outputs of which none alone tells by how much.
struct Leaning {
  const OneWay& way;
  std::string_view where;
  bool (*holds)(double observed, double exact);
};

constexpr std::array<Leaning, 4> leanings{{
    {one_ways[0], "nearer to 0 than", [](double d, double exact) { return std::fabs(d) < std::fabs(exact); }},
    {one_ways[1], "farther from 0 than",
     [](double d, double exact) { return std::fabs(d) > std::fabs(exact); }},
    {one_ways[2], "above", [](double d, double exact) { return d > exact; }},
    {one_ways[3], "below", [](double d, double exact) { return d < exact; }},
}};

/// Errors of FP32 sums move a few outputs across their exact values, so that nearly all must lie on one side. Rounding to
/// nearest puts 61 of 64 there by chance once in 4 10^14 times, or where the exact values are so, all just above whole
/// numbers; but then they are near, and here a quarter must be farther than half the way to the next number.
std::optional<Mistake> leaning(const Problem& problem) {
  constexpr std::size_t most_looked_at = 1024, least_looked_at = 64;
  std::array<std::size_t, leanings.size()> fits{};
  std::size_t count = 0, far = 0;
  const std::size_t tried = std::min(most_looked_at, problem.outputs());
  for (std::size_t i = 0; i < tried; ++i) {
    const std::size_t output = i * problem.outputs() / tried;
    const std::uint32_t code = problem.d.codes[output];
    const double observed = value_of(problem.d.format, code);
    const ExactOutput exact = exact_output(problem, output);
    const double spacing = std::fabs(value_of(problem.d.format, code + 1)) - std::fabs(observed);
    const double bound = error_bound(problem, Arithmetic::fp32, exact, slices_at_most) -
                         std::ldexp(std::fabs(exact.value), -problem.d.format.precision);
    // Roundings go both ways: of n, about the root of n add up, where the bound has all of them on one side.
    const double error = bound / std::sqrt(static_cast<double>(problem.depth));
    if (!std::isfinite(spacing) || !(error < spacing) || observed == exact.value) continue;
    const double distance = std::fabs(observed - exact.value);
    if (distance == spacing / 2) continue;  // of a tie, which is rounded either way
    ++count;
    if (distance > spacing + error) continue;
    far += distance > spacing / 2;
    for (std::size_t k = 0; k < leanings.size(); ++k) fits[k] += leanings[k].holds(observed, exact.value);
  }
  const auto most = std::ranges::max_element(fits);
  if (count < least_looked_at || static_cast<double>(*most) < 0.95 * static_cast<double>(count) ||
      far * 4 < count)
    return {};
  const Leaning& found = leanings[static_cast<std::size_t>(most - fits.begin())];
  return Mistake{
      std::string(found.way.name),
      fmt::format("{} of {} outputs lie {} their exact values, by at most one number of {}, where rounding "
                  "to nearest leaves half on either side: {}",
                  *most, count, found.where, short_name(problem.d.format), found.way.so),
      std::string(remedy)};
}

}  // namespace

std::optional<Mistake> stored_one_way(const Problem& problem, const Classification& classes) {
  if (problem.d.format == fp16::binary32) return {};
  for (const OneWay& way : one_ways) {
    std::size_t told = 0;
    if (!is_all_stored_by(way, problem, classes, told)) continue;
    return Mistake{
        std::string(way.name),
        fmt::format("{} unexplained outputs are {} their exact values among the numbers of {}, and no "
                    "other is told not to be: {}",
                    told, way.what, short_name(problem.d.format), way.so),
        std::string(remedy)};
  }
  return classes.differences.size() < least_told ? std::nullopt : leaning(problem);
}

}  // namespace experiments::explain_gemm
