#include "experiments/explain_gemm/record.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "experiments/common/text_table.h"
#include "fp16/bits.h"

namespace experiments::explain_gemm {
namespace {

// What a person looks through; figures of more say no more.
constexpr std::size_t most_outputs_listed = 10000;
constexpr std::size_t most_hypotheses_shown = 10;
constexpr std::size_t most_cells = 64;

sim::Value or_none(const std::optional<std::size_t>& value) {
  return value ? sim::Value(*value) : sim::Value("none");
}

std::string_view format_name(const Problem& problem) {
  return problem.d.format == fp16::binary16 ? "FP16" : "FP32";
}

std::string bits_text(const Problem& problem, std::uint32_t code) {
  return fmt::format("0x{:0{}x}", code, problem.d.format.width() / 4);
}

std::string place(const Problem& problem, std::size_t output) {
  return fmt::format("D[{}][{}]", output / problem.columns, output % problem.columns);
}

std::string number_text(double value) {
  return std::isnan(value) ? "NaN" : fmt::format("{}", value);
}

std::string operand_text(char name, std::size_t row, std::size_t column, double value) {
  return fmt::format("{}[{}][{}] is {}", name, row, column, number_text(value));
}

/// The first element that an output's sum is not finite for, such as "A[9][200] is NaN".
std::string cause_in_operands(const Problem& problem, std::size_t output) {
  const std::size_t row = output / problem.columns, column = output % problem.columns;
  for (std::size_t k = 0; k < problem.depth; ++k) {
    const std::uint16_t a = problem.a_of(output, k), b = problem.b_of(output, k);
    if (!fp16::is_finite<fp16::binary16>(a)) return operand_text('A', row, k, value_of(fp16::binary16, a));
    if (!fp16::is_finite<fp16::binary16>(b)) return operand_text('B', k, column, value_of(fp16::binary16, b));
  }
  return operand_text('C', row, column, problem.c_at(output));
}

void write_hypotheses(sim::RunRecord& record, const Findings& found) {
  sim::Table& table = record.table(
      "hypotheses", {"accumulator", "accumulator_bits", "products_per_step", "slicing", "slices",
                     "slice_length", "reduction", "order", "epilogue", "outputs_tried", "outputs_explained",
                     "fraction_explained", "first_unexplained_row", "first_unexplained_column"});
  const std::size_t columns = found.problem.columns;
  for (const Tried& tried : found.explanation.tried) {
    const Hypothesis& hypothesis = tried.hypothesis;
    const auto& first = tried.first_unexplained;
    table.row({hypothesis.accumulator->name, hypothesis.accumulator->format.width(),
               hypothesis.accumulator->products_per_step, name_of(hypothesis.slicing), hypothesis.slices,
               hypothesis.slice_length, name_of(hypothesis.reduction), name_of(hypothesis.order),
               name_of(hypothesis.epilogue), tried.outputs, tried.explained,
               static_cast<double>(tried.explained) / static_cast<double>(tried.outputs),
               or_none(first ? std::optional(*first / columns) : std::nullopt),
               or_none(first ? std::optional(*first % columns) : std::nullopt)});
  }
}

/// For each accumulator and number of slices the hypothesis that explains the largest share.
void write_map(sim::RunRecord& record, const Explanation& explanation) {
  sim::Table& table =
      record.table("map", {"accumulator", "accumulator_index", "slices", "fraction_unexplained"});
  std::map<std::pair<std::size_t, std::size_t>, double> least;
  for (const Tried& tried : explanation.tried) {
    const auto index = static_cast<std::size_t>(tried.hypothesis.accumulator - accumulators().data());
    const double share = static_cast<double>(tried.unexplained()) / static_cast<double>(tried.outputs);
    const auto [at, is_new] = least.try_emplace({index, tried.hypothesis.slices}, share);
    if (!is_new) at->second = std::min(at->second, share);
  }
  for (const auto& [key, share] : least)
    table.row({accumulators()[key.first].name, key.first, key.second, share});
}

void write_outputs(sim::RunRecord& record, const Findings& found) {
  sim::Table& table =
      record.table("outputs", {"row", "column", "kind", "observed_bits", "predicted_bits", "observed",
                               "predicted", "exact", "error", "bound_fp32", "bound_fp16_reduction",
                               "bound_fp16_accumulators", "first_overflow_k"});
  const Problem& problem = found.problem;
  std::size_t listed = 0;
  for (const Difference& difference : found.classification.differences) {
    if (listed++ == most_outputs_listed) break;
    table.row({difference.output / problem.columns, difference.output % problem.columns,
               name_of(difference.kind), bits_text(problem, difference.observed),
               bits_text(problem, difference.predicted), value_of(problem.d.format, difference.observed),
               value_of(problem.d.format, difference.predicted), difference.exact.value,
               difference.error(problem.d.format), difference.bounds[0], difference.bounds[1],
               difference.bounds[2], or_none(difference.overflow_at)});
  }
}

/// D in cells of equal size, as many to a side as a figure can show.
void write_error_map(sim::RunRecord& record, const Findings& found) {
  sim::Table& table =
      record.table("error_map", {"first_row", "first_column", "rows", "columns", "fraction_unexplained"});
  const Problem& problem = found.problem;
  const std::size_t rows = (problem.rows + most_cells - 1) / most_cells;
  const std::size_t columns = (problem.columns + most_cells - 1) / most_cells;
  std::map<std::pair<std::size_t, std::size_t>, std::size_t> counts;
  for (const Difference& difference : found.classification.differences)
    ++counts[{difference.output / problem.columns / rows, difference.output % problem.columns / columns}];
  for (const auto& [cell, count] : counts) {
    const std::size_t row = cell.first * rows, column = cell.second * columns;
    const std::size_t height = std::min(rows, problem.rows - row);
    const std::size_t width = std::min(columns, problem.columns - column);
    table.row({row, column, height, width, static_cast<double>(count) / static_cast<double>(height * width)});
  }
}

std::string explanation_sentence(const Findings& found) {
  const Explanation& explanation = found.explanation;
  const Tried& best = explanation.best();
  const std::size_t all = explanation.tried.size(), candidates = explanation.candidates();
  if (candidates == 1 && explanation.not_refuted == 0)
    return fmt::format("One of {} hypotheses reproduces every bit of all {} outputs: {}.", all, best.outputs,
                       best.hypothesis.text());
  if (candidates > 0) {
    std::string text = fmt::format(
        "Ambiguous: {} of {} hypotheses reproduce every bit of all {} outputs, the simplest of them {}.",
        candidates, all, best.outputs, best.hypothesis.text());
    if (explanation.not_refuted > 0)
      text += fmt::format(" {} more reproduce their whole sample and were not held against all outputs.",
                          explanation.not_refuted);
    return text;
  }
  return fmt::format(
      "None of {} hypotheses reproduces D: the best leaves {} of {} outputs ({}) unexplained. It is {}.", all,
      best.unexplained(), best.outputs,
      percent(static_cast<double>(best.unexplained()) / static_cast<double>(best.outputs)),
      best.hypothesis.text());
}

std::string overflow_sentence(const Findings& found) {
  const Classification& classes = found.classification;
  std::string text = fmt::format(
      "Accumulator overflow: {} outputs are infinite or NaN though their exact values are within the range.",
      classes.overflowed);
  if (classes.first_overflow_at)
    return text + fmt::format(" The exact partial sums leave FP16's range first at k = {}, for {}.",
                              *classes.first_overflow_at,
                              place(found.problem, *classes.first_overflow_output));
  return text + fmt::format(" No exact partial sum in ascending k does so: rounding or another order did{}.",
                            classes.count(Kind::real_bug) > 0 ? ", or they are real bugs" : "");
}

std::string range_sentence(const Findings& found) {
  const Classification& classes = found.classification;
  const std::size_t first = *classes.beyond_range.first;
  const double exact = exact_output(found.problem, first).value;
  return fmt::format(
      "Beyond {}'s range: {} of {} outputs are not finite, as their exact values are beyond {}; first {}, "
      "exact value {}.",
      format_name(found.problem), classes.beyond_range.count, found.problem.outputs(),
      found.problem.d.format == fp16::binary16 ? "65504" : "3.4e38", place(found.problem, first), exact);
}

std::string operands_sentence(const Findings& found) {
  const Classification& classes = found.classification;
  const std::size_t first = *classes.from_operands.first;
  return fmt::format("Not finite by their operands: {} of {} outputs; first {}, since {}.",
                     classes.from_operands.count, found.problem.outputs(), place(found.problem, first),
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

std::string rounding_sentence(const Findings& found) {
  const Classification& classes = found.classification;
  const std::string_view arithmetic = name_of(classes.arithmetic);
  if (const std::size_t undecided = classes.count(Kind::undecided); undecided > 0) {
    const double error = relative_error(found);
    return fmt::format(
        "{} output{} farther from the exact value than any order of FP32 sums can be{}, but not farther than "
        "FP16 sums can ({}): either FP16 took part in an order that is not in the list, or {} wrong.",
        undecided, undecided == 1 ? " is" : "s are",
        std::isfinite(error) ? fmt::format(", by {} in the root mean square", percent(error)) : "",
        arithmetic, undecided == 1 ? "it is" : "they are");
  }
  const std::size_t rounding = classes.count(Kind::rounding);
  return fmt::format(
      "Rounding only: {} unexplained output{} within the error bound of {}, so that another order of the "
      "same sums can make {}, and so can a mistake that is as small. Root mean square of the error: {:.3g}, "
      "and {:.3g} if fp32_fma_chain made the same.",
      rounding, rounding == 1 ? " is" : "s are", arithmetic, rounding == 1 ? "it" : "them",
      classes.rounding_error, classes.chain_error);
}

/// The rows and columns of D between which all differences of a kind lie.
std::string extent(const Findings& found, Kind kind) {
  const std::size_t columns = found.problem.columns;
  std::size_t first_row = found.problem.rows, last_row = 0, first_column = columns, last_column = 0;
  for (const Difference& difference : found.classification.differences) {
    if (difference.kind != kind) continue;
    first_row = std::min(first_row, difference.output / columns);
    last_row = std::max(last_row, difference.output / columns);
    first_column = std::min(first_column, difference.output % columns);
    last_column = std::max(last_column, difference.output % columns);
  }
  const auto stretch = [](std::string_view what, std::size_t first, std::size_t last) {
    return first == last ? fmt::format("{} {}", what, first) : fmt::format("{}s {} to {}", what, first, last);
  };
  return fmt::format("{} and {}", stretch("row", first_row, last_row),
                     stretch("column", first_column, last_column));
}

std::string mistake_sentences(const Findings& found) {
  const Classification& classes = found.classification;
  const Kind kind = classes.count(Kind::real_bug) > 0 ? Kind::real_bug : Kind::undecided;
  const std::size_t count = classes.count(kind);
  std::string text = fmt::format("Mistake: {}.", found.mistake->what);
  if (count > 0 && count < found.problem.outputs())
    text += fmt::format(" The wrong outputs lie in {}.", extent(found, kind));
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

std::string step_to_bug(const Findings& found) {
  if (2 * found.classification.count(Kind::real_bug) > found.problem.outputs())
    return std::string(step_to_inputs);
  return fmt::format(
      "Next: look for the bug where the wrong outputs lie, in {} (outputs.csv, errors figure): one tile "
      "points to indexing or synchronisation, a last row or column to the handling of edges, scattered ones "
      "to a race.",
      extent(found, Kind::real_bug));
}

/// FP16 sums come nearer to values that do not cancel almost completely.
std::string step_of_undecided(const Findings& found) {
  constexpr double most_of_fp16_sums = 0.5;
  if (2 * found.classification.count(Kind::undecided) > found.problem.outputs() &&
      relative_error(found) > most_of_fp16_sums)
    return std::string(step_to_inputs);
  return "Next: run once with FP32 accumulators and without reductions in FP16 (cuBLAS: CUBLAS_COMPUTE_32F "
         "and CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION). If the same outputs stay, they are wrong.";
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
  if (found.problem.d.format == fp16::binary16)
    text += " D in FP32 would show more of the order, and smaller mistakes.";
  return text;
}

}  // namespace

std::string_view verdict_name(const Explanation& explanation) {
  const std::size_t candidates = explanation.candidates();
  if (candidates == 0) return "unexplained";
  return candidates == 1 && explanation.not_refuted == 0 ? "explained" : "ambiguous";
}

std::string next_step(const Findings& found) {
  const Classification& classes = found.classification;
  if (found.mistake) return fmt::format("Next: {}.", found.mistake->next);
  if (classes.count(Kind::real_bug) > 0) return step_to_bug(found);
  if (classes.overflowed > 0)
    return "Next: keep sums and factors in FP32, or scale A or B down by a power of two and D up again; "
           "partial sums of an output within the range need not be within it.";
  if (classes.count(Kind::undecided) > 0) return step_of_undecided(found);
  if (classes.count(Kind::rounding) > 0) return step_after_rounding(found);
  if (classes.beyond_range.count > 0)
    return "Next: store D in FP32, or scale A or B down by a power of two; infinite outputs tell nothing of "
           "their sums.";
  if (verdict_name(found.explanation) == "explained")
    return "Next: hold ports and tests to this hypothesis bit for bit; no tolerance is needed.";
  return fmt::format("Next: to tell them apart {}take more k, or operands of more different sizes.",
                     found.problem.d.format == fp16::binary16 ? "let the kernel store D in FP32, " : "");
}

std::string bug_line(const Findings& found) {
  const Classification& classes = found.classification;
  const std::size_t bugs = classes.count(Kind::real_bug);
  if (bugs == 0) return found.mistake ? found.mistake->what : std::string();
  const Difference& first = classes.differences.front();
  const std::string where = fmt::format("first {} = {} ({})", place(found.problem, first.output),
                                        number_text(value_of(found.problem.d.format, first.observed)),
                                        bits_text(found.problem, first.observed));
  if (!std::isfinite(first.exact.value))
    return fmt::format("{} output{} of D {} what no order of sums makes; {}, exact value {} since {}", bugs,
                       bugs == 1 ? "" : "s", bugs == 1 ? "is" : "are", where, number_text(first.exact.value),
                       cause_in_operands(found.problem, first.output));
  return fmt::format(
      "{} output{} of D {} beyond the error bound of every order of sums in {}; {}, exact value {}, bound "
      "{:.3g}",
      bugs, bugs == 1 ? "" : "s", bugs == 1 ? "is" : "are", name_of(classes.arithmetic), where,
      first.exact.value, first.bounds[static_cast<std::size_t>(classes.arithmetic)]);
}

void write_tables(sim::RunRecord& record, const Findings& found) {
  write_hypotheses(record, found);
  write_map(record, found.explanation);
  write_outputs(record, found);
  write_error_map(record, found);
}

void write_summary(sim::RunRecord& record, const Findings& found) {
  const Explanation& explanation = found.explanation;
  const Classification& classes = found.classification;
  const Hypothesis& best = explanation.best().hypothesis;
  record.summary("verdict", verdict_name(explanation));
  record.summary("classification", classes.name());
  record.summary("hypotheses", explanation.tried.size());
  record.summary("candidates", explanation.candidates());
  record.summary("not_refuted", explanation.not_refuted);
  record.summary("best.accumulator", best.accumulator->name);
  record.summary("best.slicing", name_of(best.slicing));
  record.summary("best.slices", best.slices);
  record.summary("best.slice_length", best.slice_length);
  record.summary("best.reduction", name_of(best.reduction));
  record.summary("best.order", name_of(best.order));
  record.summary("best.epilogue", name_of(best.epilogue));
  record.summary("outputs", explanation.best().outputs);
  record.summary("unexplained", explanation.best().unexplained());
  record.summary("real_bugs", classes.count(Kind::real_bug));
  record.summary("undecided", classes.count(Kind::undecided));
  record.summary("rounding_error", classes.rounding_error);
  record.summary("chain_error", classes.chain_error);
  record.summary("mistake", found.mistake ? found.mistake->name : "none");
  record.summary("beyond_range", classes.beyond_range.count);
  record.summary("from_operands", classes.from_operands.count);
  record.summary("overflowed", classes.overflowed);
  record.summary("first_overflow_k", or_none(classes.first_overflow_at));
  const bool has_bug = classes.count(Kind::real_bug) > 0;
  const std::size_t output = has_bug ? classes.differences.front().output : 0;
  const std::size_t columns = found.problem.columns;
  record.summary("first_real_bug.row", or_none(has_bug ? std::optional(output / columns) : std::nullopt));
  record.summary("first_real_bug.column", or_none(has_bug ? std::optional(output % columns) : std::nullopt));
}

void write_verdict(sim::RunRecord& record, const Findings& found) {
  const Problem& problem = found.problem;
  record.verdict(explanation_sentence(found));
  if (found.classification.count(Kind::real_bug) > 0) record.verdict("Real bug: " + bug_line(found) + ".");
  if (found.mistake) record.verdict(mistake_sentences(found));
  if (found.classification.overflowed > 0) record.verdict(overflow_sentence(found));
  if (found.classification.beyond_range.count > 0) record.verdict(range_sentence(found));
  if (found.classification.from_operands.count > 0) record.verdict(operands_sentence(found));
  if (found.classification.count(Kind::rounding) + found.classification.count(Kind::undecided) > 0)
    record.verdict(rounding_sentence(found));
  record.verdict(best_hypotheses(found.explanation).text());
  record.verdict(next_step(found));
  record.verdict(
      fmt::format("A is {} x {}, B {} x {}, D holds {}{}; alpha = {}, beta = {}. One hypothesis holds for "
                  "all of D: cuts of k that differ from tile to tile, and slices that are cut again, are not "
                  "in the list. explain_gemm --help says what the names mean.",
                  problem.rows, problem.depth, problem.depth, problem.columns, format_name(problem),
                  problem.was_widened ? " numbers as float32, and is explained as FP16" : "", problem.alpha,
                  problem.beta));
}

}  // namespace experiments::explain_gemm
