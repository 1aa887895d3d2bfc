#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "experiments/explain_gemm/evidence.h"
#include "experiments/explain_gemm/findings.h"
#include "experiments/frame/printable.h"
#include "experiments/frame/text_table.h"
#include "fp16/bits.h"
#include "fp16/codec.h"

namespace experiments::explain_gemm {
namespace {

constexpr std::size_t most_hypotheses_shown = 10;

std::string_view format_name(const Problem& problem) {
  return short_name(problem.d.format);
}

/// The format of sums of 16 bits, where there are such.
std::string_view narrow_name(const Problem& problem) {
  return short_name(problem.narrow().value_or(fp16::binary16));
}

/// What is not tried for operands other than FP16; empty for those.
std::string untried_sentence(const Problem& problem) {
  if (problem.operands == fp16::binary16) return {};
  const bool is_float = problem.operands == fp16::binary32;
  return fmt::format(
      "A and B hold {}: chains of FP32 {} are tried, and no tensor cores, for what these make of {} is not "
      "among the hypotheses.",
      short_name(problem.operands), is_float ? "multiply-adds, fused or not," : "fused multiply-adds",
      is_float ? "TF32" : "bfloat16");
}

/// "99.9 %" at most where it is not all.
std::string share_text(std::size_t count, std::size_t all) {
  constexpr double most_of_all = 0.999;
  const double share = static_cast<double>(count) / static_cast<double>(all);
  return percent(count < all ? std::min(share, most_of_all) : share);
}

/// A matrix, of which triple where there are several: D, or D2.
std::string matrix_text(const Problem& problem, char name, std::size_t triple) {
  return problem.triples == 1 ? std::string(1, name) : fmt::format("{}{}", name, triple + 1);
}

std::string place_text(const Problem& problem, std::size_t output) {
  const Place place = problem.place_of(output);
  return fmt::format("{}[{}][{}]", matrix_text(problem, 'D', place.triple), place.row, place.column);
}

std::string number_text(double value) {
  return std::isnan(value) ? "NaN" : fmt::format("{}", value);
}

/// The first element that an output's sum is not finite for, such as "A[9][200] is NaN".
std::string cause_in_operands(const Problem& problem, std::size_t output) {
  const Place place = problem.place_of(output);
  const auto element = [&](char name, std::size_t row, std::size_t column, double value) {
    return fmt::format("{}[{}][{}] is {}", matrix_text(problem, name, place.triple), row, column,
                       number_text(value));
  };
  for (std::size_t k = 0; k < problem.depth; ++k) {
    const float a = problem.a_of(output, k), b = problem.b_of(output, k);
    if (!std::isfinite(a)) return element('A', place.row, k, a);
    if (!std::isfinite(b)) return element('B', k, place.column, b);
  }
  return element('C', place.row, place.column, problem.c_at(output));
}

/// What survives by chance, such as "fewer than 1e-06".
std::string chance_text(double survivors) {
  constexpr double least = 1e-6;
  return survivors < least ? fmt::format("fewer than {}", least) : fmt::format("{:.2g}", survivors);
}

/// How far off the nearest hypothesis is that does not reproduce D, and what that says of chance.
std::string evidence_sentence(const Explanation& explanation, const Evidence& evidence) {
  if (!evidence.rival) return "No output tells any two of them apart.";
  const Tried& rival = explanation.tried[*evidence.rival];
  return fmt::format("By chance {} would; {} of {} outputs refute{} the nearest other, {}.",
                     chance_text(evidence.chance_survivors), rival.unexplained(), rival.outputs,
                     rival.unexplained() == 1 ? "s" : "", rival.hypothesis.text());
}

std::string candidates_sentence(const Explanation& explanation, const Evidence& evidence) {
  const std::size_t candidates = explanation.candidates();
  std::string text = evidence.verdict == Verdict::ambiguous ? "Ambiguous: "
                     : evidence.more_outputs                ? "Undetermined: D is too small to tell. "
                     : explanation.not_refuted > 0 ? "Undetermined: not all were held against all of D. "
                                                   : "";
  text += fmt::format("{} of {} hypotheses reproduce{} every bit of all {} outputs",
                      candidates == 1 ? "One" : fmt::format("{}", candidates), explanation.tried.size(),
                      candidates == 1 ? "s" : "", explanation.best().outputs);
  if (candidates > 0)
    text += fmt::format("{} {}", candidates == 1 ? ":" : ", the simplest of them",
                        explanation.best().hypothesis.text());
  text += fmt::format(". {}", evidence_sentence(explanation, evidence));
  if (explanation.not_refuted > 0)
    text += fmt::format(" {} more reproduce their whole sample and were not held against all outputs.",
                        explanation.not_refuted);
  return text;
}

/// How many of those that were held against all outputs miss no more than the best but for chance: three standard
/// deviations of the difference of two counts.
std::size_t as_good_as_best(const Explanation& explanation) {
  const auto least = static_cast<double>(explanation.best().unexplained());
  return static_cast<std::size_t>(std::ranges::count_if(
             explanation.verified,
             [&](std::size_t index) {
               const auto missed = static_cast<double>(explanation.tried[index].unexplained());
               return missed - least <= 3 * std::sqrt(missed + least);
             })) -
         1;
}

std::string explanation_sentence(const Explanation& explanation) {
  const Evidence evidence = evidence_of(explanation);
  if (evidence.verdict != Verdict::unexplained) return candidates_sentence(explanation, evidence);
  const Tried& best = explanation.best();
  const std::size_t all = explanation.tried.size();
  if (!explanation.has_best())
    return fmt::format("None of {} hypotheses reproduces any of the {} outputs.", all, best.outputs);
  std::string text = fmt::format(
      "None of {} hypotheses reproduces D: the best leaves {} of {} outputs ({}) unexplained. It is {}", all,
      best.unexplained(), best.outputs, share_text(best.unexplained(), best.outputs), best.hypothesis.text());
  if (const std::size_t others = as_good_as_best(explanation); others > 0)
    text += fmt::format(", but {} other{} as good within chance", others, others == 1 ? " is" : "s are");
  return text + ".";
}

std::string overflow_sentence(const Findings& found) {
  const Classification& classes = found.classification;
  const bool is_one = classes.overflowed == 1;
  std::string text = fmt::format(
      "Accumulator overflow: {} output{} infinite or NaN though {} within the range.", classes.overflowed,
      is_one ? " is" : "s are", is_one ? "its exact value is" : "their exact values are");
  if (classes.first_overflow_at)
    return text + fmt::format(" The exact partial sums leave {}'s range first at k = {}, for {}.",
                              found.problem.operands == fp16::binary16 ? "FP16" : "FP32",
                              *classes.first_overflow_at,
                              place_text(found.problem, *classes.first_overflow_output));
  if (found.problem.operands != fp16::binary16 && found.problem.d.format == fp16::binary16)
    return text +
           " No exact partial sum in ascending k leaves FP32's range: rounded to FP16 before the epilogue, "
           "one may.";
  return text + " No exact partial sum in ascending k leaves the range: rounding or another order did.";
}

std::string range_sentence(const Findings& found) {
  const Classification& classes = found.classification;
  const std::size_t first = *classes.beyond_range.first;
  const double exact = exact_output(found.problem, first).value;
  return fmt::format(
      "Beyond {}'s range: {} of {} outputs are not finite, as their exact values are beyond {}; first {}, "
      "exact value {}.",
      format_name(found.problem), classes.beyond_range.count, found.problem.outputs(),
      fmt::format("{:.5g}", found.problem.d.format.max()), place_text(found.problem, first), exact);
}

std::string operands_sentence(const Findings& found) {
  const Classification& classes = found.classification;
  const std::size_t first = *classes.from_operands.first;
  return fmt::format("Not finite by their operands: {} of {} outputs; first {}, since {}.",
                     classes.from_operands.count, found.problem.outputs(), place_text(found.problem, first),
                     cause_in_operands(found.problem, first));
}

/// ||D - exact|| / ||exact|| over the undecided outputs; infinite where all of these cancel exactly.
double relative_error(const Findings& found) {
  double error = 0, exact = 0;
  for (const Difference& difference : found.classification.differences) {
    if (difference.kind != Kind::undecided) continue;
    const double off = difference.error(found.problem.d.format);
    if (std::isfinite(off)) error += off * off;
    exact += difference.exact.value * difference.exact.value;
  }
  return std::sqrt(error / exact);
}

/// Whether the output is its exact value, rounded to D's format.
bool is_rounded_once(const fp16::Format& format, const Difference& difference) {
  const double exact = difference.exact.value;
  if (format == fp16::binary32)
    return std::bit_cast<std::uint32_t>(static_cast<float>(exact)) == difference.observed;
  return difference.observed == (format == fp16::bfloat16 ? fp16::encode<fp16::bfloat16>(exact).bits
                                                          : fp16::encode<fp16::binary16>(exact).bits);
}

std::string undecided_sentence(const Findings& found) {
  const Classification& classes = found.classification;
  const std::size_t undecided = classes.count(Kind::undecided);
  const double error = relative_error(found);
  const std::string errors =
      std::isfinite(error) && error > 0
          ? fmt::format(", by {} in the root mean square where {} would be by {}", percent(error),
                        narrow_hypothesis(found.explanation).text(),
                        percent(error * classes.narrow_error / classes.undecided_error))
          : "";
  return fmt::format(
      "{} output{} farther from the exact value than any order of FP32 sums can be{}, but not farther than "
      "{} sums can ({}): either {} took part in an order that is not in the list, or {} wrong{}.",
      undecided, undecided == 1 ? " is" : "s are", errors, narrow_name(found.problem),
      name_of(classes.arithmetic, found.problem), narrow_name(found.problem),
      undecided == 1 ? "it is" : "they are", classes.is_far_off() ? ", which is likely" : "");
}

std::string rounding_sentence(const Findings& found) {
  const Classification& classes = found.classification;
  const std::size_t rounding = classes.count(Kind::rounding);
  const bool are_exact = std::ranges::all_of(classes.differences, [&](const Difference& difference) {
    return difference.kind != Kind::rounding || is_rounded_once(found.problem.d.format, difference);
  });
  const bool are_zeros = std::ranges::all_of(classes.differences, [&](const Difference& difference) {
    return difference.exact.value == 0 && value_of(found.problem.d.format, difference.observed) == 0;
  });
  if (are_zeros)
    return fmt::format(
        "Only signs of zeros: {} output{} a zero of the other sign, which another order of the same sums "
        "does "
        "not make of products whose exact sum is 0; what negates or flushes does.",
        rounding, rounding == 1 ? " is" : "s are each");
  return fmt::format(
      "Rounding only: {} unexplained output{} within the error bound of {}, so that another order of the "
      "same sums can make {}, and so can a mistake that is as small. Root mean square of the error: {:.3g}, "
      "and {:.3g} if fp32_fma_chain made the same.{}",
      rounding, rounding == 1 ? " is" : "s are", name_of(classes.arithmetic, found.problem),
      rounding == 1 ? "it" : "them", classes.rounding_error, classes.chain_error,
      are_exact ? " Each is its exact value rounded once, as sums in FP64 make it." : "");
}

/// The rows and columns of D between which outputs lie.
std::string extent(const Problem& problem, const std::vector<std::size_t>& outputs) {
  Place first{problem.triples, problem.rows, problem.columns}, last{0, 0, 0};
  for (const std::size_t output : outputs) {
    const auto [triple, row, column] = problem.place_of(output);
    first = {std::min(first.triple, triple), std::min(first.row, row), std::min(first.column, column)};
    last = {std::max(last.triple, triple), std::max(last.row, row), std::max(last.column, column)};
  }
  const auto stretch = [](std::string_view what, std::size_t first, std::size_t last) {
    return first == last ? fmt::format("{} {}", what, first) : fmt::format("{}s {} to {}", what, first, last);
  };
  std::string text = fmt::format("{} and {}", stretch("row", first.row, last.row),
                                 stretch("column", first.column, last.column));
  if (problem.triples > 1)
    text += fmt::format(" of {}", stretch("triple", first.triple + 1, last.triple + 1));
  return text;
}

/// The extent of all differences of a kind.
std::string extent(const Findings& found, Kind kind) {
  std::vector<std::size_t> outputs;
  for (const Difference& difference : found.classification.differences) {
    if (difference.kind == kind) outputs.push_back(difference.output);
  }
  return extent(found.problem, outputs);
}

std::string mistake_sentences(const Findings& found) {
  const std::vector<std::size_t>& outputs = found.mistake->outputs;
  std::string text = fmt::format("Mistake: {}.", found.mistake->what);
  if (!outputs.empty() && outputs.size() < found.problem.outputs())
    text += fmt::format(" The wrong outputs lie in {}.", extent(found.problem, outputs));
  return text;
}

TextTable best_hypotheses(const Explanation& explanation) {
  TextTable table{.columns = {"hypothesis", "outputs", "unexplained"}, .rows = {}};
  for (const std::size_t index : explanation.verified) {
    if (table.rows.size() == most_hypotheses_shown) break;
    const Tried& tried = explanation.tried[index];
    table.rows.push_back(
        {tried.hypothesis.text(), fmt::format("{}", tried.outputs), fmt::format("{}", tried.unexplained())});
  }
  return table;
}

constexpr std::string_view step_to_inputs =
    "Next: most of D is wrong, so look first whether A, B, C and D are those of one call, and alpha, beta "
    "and the layouts the kernel's. Then let it multiply matrices of small whole numbers, whose sums are "
    "exact in every order.";

/// Whether what is beyond every bound, with what is undecided and too far off for sums of 16 bits, is most of D.
bool is_mostly_wrong(const Findings& found) {
  const Classification& classes = found.classification;
  const std::size_t far_off = classes.is_far_off() ? classes.count(Kind::undecided) : 0;
  return 2 * (classes.count(Kind::real_bug) + far_off) > found.problem.outputs();
}

std::string step_to_bug(const Findings& found) {
  return fmt::format(
      "Next: look for the bug where the {} lie, in {} (outputs.csv, errors figure): one tile points to "
      "indexing "
      "or synchronisation, a last row or column to the handling of edges, scattered ones to a race.",
      found.classification.count(Kind::undecided) == 0 ? "wrong outputs" : "outputs beyond every bound",
      extent(found, Kind::real_bug));
}

std::string step_of_undecided(const Findings& found) {
  return fmt::format(
      "Next: run once with FP32 accumulators and without reductions in {} (cuBLAS: CUBLAS_COMPUTE_32F and "
      "CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION). If the same outputs stay, they are wrong.",
      narrow_name(found.problem));
}

/// The next step for a D that hypotheses reproduce, or may.
std::string step_after_explanation(const Findings& found) {
  const Evidence evidence = evidence_of(found.explanation);
  const std::string_view in_fp32 =
      found.problem.d.format == fp16::binary32 ? "" : "let the kernel store D in FP32, ";
  if (evidence.verdict == Verdict::explained)
    return "Next: hold ports and tests to this hypothesis bit for bit; no tolerance is needed.";
  if (evidence.verdict == Verdict::ambiguous)
    return fmt::format("Next: to tell them apart {}take more k, or operands of more different sizes.",
                       in_fp32);
  if (!evidence.more_outputs)
    return fmt::format("Next: raise --most-verified to {}, so that all are held against all outputs.",
                       found.explanation.verified.size() + found.explanation.not_refuted);
  return fmt::format(
      "Next: {}{}explain about {:.2g} times as many outputs, of more rows and columns or of further triples "
      "by the same kernel (--a A1.npy,A2.npy,... and so on). What made this D is then left alone, if it is "
      "in the list.",
      in_fp32, in_fp32.empty() ? "" : "or ", *evidence.more_outputs);
}

std::string step_after_rounding(const Findings& found) {
  if (found.classification.is_doubtful())
    return fmt::format(
        "Next: rounding in FP32 is seldom so far off. Take the unexplained outputs, in {}, for wrong until "
        "an order is known that makes them; small whole numbers as operands, whose sums are exact in every "
        "order, show whether one is.",
        extent(found, Kind::rounding));
  std::string text = fmt::format(
      "Next: hold D to the bounds of outputs.csv instead of a tolerance by eye; for the same bits as another "
      "kernel, make k's cut and the reduction the same. The unexplained outputs lie in {}: where these are a "
      "tile or an edge, look whether it is summed otherwise than the rest.",
      extent(found, Kind::rounding));
  if (!found.problem.tree)
    text += " An order of single additions that is not in the list is tried by --tree.";
  if (found.problem.d.format != fp16::binary32)
    text += " D in FP32 would show more of the order, and smaller mistakes.";
  return text;
}

}  // namespace

std::string next_step(const Findings& found) {
  const Classification& classes = found.classification;
  if (found.mistake) return fmt::format("Next: {}.", found.mistake->next);
  if (is_mostly_wrong(found)) return std::string(step_to_inputs);
  if (classes.count(Kind::real_bug) > 0) return step_to_bug(found);
  if (classes.overflowed > 0)
    return "Next: keep sums and factors in FP32, or scale A or B down by a power of two and D up again; "
           "partial sums of an output within the range need not be within it.";
  if (classes.count(Kind::undecided) > 0) return step_of_undecided(found);
  if (classes.count(Kind::rounding) > 0) return step_after_rounding(found);
  if (classes.beyond_range.count > 0)
    return "Next: store D in FP32, or scale A or B down by a power of two; infinite outputs tell nothing of "
           "their sums.";
  return step_after_explanation(found);
}

std::string bug_line(const Findings& found) {
  const Classification& classes = found.classification;
  const std::size_t bugs = classes.count(Kind::real_bug);
  if (bugs == 0) return found.mistake ? found.mistake->what : std::string();
  const Difference& first = classes.differences.front();
  const std::string where = fmt::format("first {} = {} ({})", place_text(found.problem, first.output),
                                        number_text(value_of(found.problem.d.format, first.observed)),
                                        bits_text(found.problem, first.observed));
  if (!std::isfinite(first.exact.value))
    return fmt::format("{} of D {} what no order of sums makes; {}, exact value {} since {}",
                       counted(bugs, "output"), bugs == 1 ? "is" : "are", where,
                       number_text(first.exact.value), cause_in_operands(found.problem, first.output));
  return fmt::format(
      "{} of D {} beyond the error bound of every order of sums in {}; {}, exact value {}, bound "
      "{:.3g}",
      counted(bugs, "output"), bugs == 1 ? "is" : "are", name_of(classes.arithmetic, found.problem), where,
      first.exact.value, first.bounds[static_cast<std::size_t>(classes.arithmetic)]);
}

void write_verdict(RunRecord& record, const Findings& found) {
  const Problem& problem = found.problem;
  record.verdict(explanation_sentence(found.explanation));
  if (found.classification.count(Kind::real_bug) > 0) record.verdict("Real bug: " + bug_line(found) + ".");
  if (found.mistake) record.verdict(mistake_sentences(found));
  if (found.classification.overflowed > 0) record.verdict(overflow_sentence(found));
  if (found.classification.beyond_range.count > 0) record.verdict(range_sentence(found));
  if (found.classification.from_operands.count > 0) record.verdict(operands_sentence(found));
  const std::size_t undecided = found.mistake ? 0 : found.classification.count(Kind::undecided);
  if (undecided > 0) record.verdict(undecided_sentence(found));
  if (undecided == 0 && found.classification.count(Kind::rounding) > 0)
    record.verdict(rounding_sentence(found));
  if (found.explanation.has_best()) record.verdict(best_hypotheses(found.explanation).text());
  record.verdict(next_step(found));
  if (const std::string untried = untried_sentence(problem); !untried.empty()) record.verdict(untried);
  record.verdict(fmt::format(
      "{}A is {} x {}, B {} x {}, D holds {}{}; alpha = {}, beta = {}. One hypothesis holds for "
      "all of D: cuts of k that differ from tile to tile, and slices that are cut again, are not "
      "in the list. --help says what the names mean.",
      problem.triples == 1 ? "" : fmt::format("Of each of {} triples ", problem.triples), problem.rows_each(),
      problem.depth, problem.depth, problem.columns, format_name(problem),
      problem.was_widened ? fmt::format(" numbers as float32, and is explained as {}", format_name(problem))
                          : "",
      problem.alpha, problem.beta));
}

}  // namespace experiments::explain_gemm
