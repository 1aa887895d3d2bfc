#include "experiments/explain_gemm/record.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "experiments/explain_gemm/evidence.h"

namespace experiments::explain_gemm {
namespace {

// What a person looks through; figures of more say no more.
constexpr std::size_t most_outputs_listed = 10000;
constexpr std::size_t most_cells = 64;

Value or_none(const std::optional<std::size_t>& value) {
  return value ? Value(*value) : Value("none");
}

std::array<Value, 3> place_or_none(const Problem& problem, const std::optional<std::size_t>& output) {
  if (!output) return {"none", "none", "none"};
  const Place place = problem.place_of(*output);
  return {place.triple + 1, place.row, place.column};
}

void write_hypotheses(RunRecord& record, const Findings& found) {
  Table& table =
      record.table("hypotheses", {"accumulator", "accumulator_bits", "products_per_step", "slicing", "slices",
                                  "slice_length", "reduction", "order", "epilogue", "outputs_tried",
                                  "outputs_explained", "fraction_explained", "first_unexplained_triple",
                                  "first_unexplained_row", "first_unexplained_column"});
  for (const Tried& tried : found.explanation.tried) {
    const Hypothesis& hypothesis = tried.hypothesis;
    const auto [triple, row, column] = place_or_none(found.problem, tried.first_unexplained);
    table.row({hypothesis.accumulator->name, hypothesis.accumulator->format.width(),
               hypothesis.accumulator->products_per_step, name_of(hypothesis.slicing), hypothesis.slices,
               hypothesis.slice_length, name_of(hypothesis.reduction), name_of(hypothesis.order),
               name_of(hypothesis.epilogue), tried.outputs, tried.explained,
               static_cast<double>(tried.explained) / static_cast<double>(tried.outputs), triple, row,
               column});
  }
}

/// For each accumulator and number of slices the hypothesis that explains the largest share.
void write_map(RunRecord& record, const Explanation& explanation) {
  Table& table = record.table("map", {"accumulator", "accumulator_index", "slices", "fraction_unexplained"});
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

void write_outputs(RunRecord& record, const Findings& found) {
  Table& table =
      record.table("outputs", {"triple", "row", "column", "kind", "observed_bits", "predicted_bits",
                               "observed", "predicted", "exact", "error", "bound_fp32",
                               "bound_fp16_reduction", "bound_fp16_accumulators", "first_overflow_k"});
  const Problem& problem = found.problem;
  std::size_t listed = 0;
  for (const Difference& difference : found.classification.differences) {
    if (listed++ == most_outputs_listed) break;
    const Place place = problem.place_of(difference.output);
    table.row({place.triple + 1, place.row, place.column, name_of(difference.kind),
               bits_text(problem, difference.observed), bits_text(problem, difference.predicted),
               value_of(problem.d.format, difference.observed),
               value_of(problem.d.format, difference.predicted), difference.exact.value,
               difference.error(problem.d.format), difference.bounds[0], difference.bounds[1],
               difference.bounds[2], or_none(difference.overflow_at)});
  }
}

/// D in cells of equal size, as many to a side as a figure can show; of all triples together.
void write_error_map(RunRecord& record, const Findings& found) {
  Table& table =
      record.table("error_map", {"first_row", "first_column", "rows", "columns", "fraction_unexplained"});
  const Problem& problem = found.problem;
  const std::size_t rows = (problem.rows_each() + most_cells - 1) / most_cells;
  const std::size_t columns = (problem.columns + most_cells - 1) / most_cells;
  std::map<std::pair<std::size_t, std::size_t>, std::size_t> counts;
  for (const Difference& difference : found.classification.differences) {
    const Place place = problem.place_of(difference.output);
    ++counts[{place.row / rows, place.column / columns}];
  }
  for (const auto& [cell, count] : counts) {
    const std::size_t row = cell.first * rows, column = cell.second * columns;
    const std::size_t height = std::min(rows, problem.rows_each() - row);
    const std::size_t width = std::min(columns, problem.columns - column);
    const auto outputs = static_cast<double>(height * width * problem.triples);
    table.row({row, column, height, width, static_cast<double>(count) / outputs});
  }
}

void summarize_best(RunRecord& record, const Explanation& explanation) {
  const Hypothesis& best = explanation.best().hypothesis;
  const auto add = [&](const char* key, const Value& value) {
    record.summary(fmt::format("best.{}", key), explanation.has_best() ? value : Value("none"));
  };
  add("accumulator", best.accumulator->name);
  add("slicing", name_of(best.slicing));
  add("slices", best.slices);
  add("slice_length", best.slice_length);
  add("reduction", name_of(best.reduction));
  add("order", name_of(best.order));
  add("epilogue", name_of(best.epilogue));
}

void summarize_evidence(RunRecord& record, const Explanation& explanation, const Evidence& evidence) {
  const Tried* const rival = evidence.rival ? &explanation.tried[*evidence.rival] : nullptr;
  record.summary("chance_survivors", evidence.chance_survivors);
  record.summary("rival", rival ? Value(rival->hypothesis.text()) : "none");
  record.summary("rival.outputs", rival ? Value(rival->outputs) : "none");
  record.summary("rival.unexplained", rival ? Value(rival->unexplained()) : "none");
  record.summary("more_outputs", evidence.more_outputs ? Value(*evidence.more_outputs) : "none");
}

}  // namespace

std::string bits_text(const Problem& problem, std::uint32_t code) {
  return fmt::format("0x{:0{}x}", code, problem.d.format.width() / 4);
}

void write_tables(RunRecord& record, const Findings& found) {
  write_hypotheses(record, found);
  write_map(record, found.explanation);
  write_outputs(record, found);
  write_error_map(record, found);
}

void write_summary(RunRecord& record, const Findings& found) {
  const Explanation& explanation = found.explanation;
  const Classification& classes = found.classification;
  const Evidence evidence = evidence_of(explanation);
  record.summary("verdict", name_of(evidence.verdict));
  record.summary("classification", classes.name());
  record.summary("hypotheses", explanation.tried.size());
  record.summary("candidates", explanation.candidates());
  record.summary("not_refuted", explanation.not_refuted);
  summarize_evidence(record, explanation, evidence);
  summarize_best(record, explanation);
  record.summary("triples", found.problem.triples);
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
  const auto [triple, row, column] = place_or_none(
      found.problem, has_bug ? std::optional(classes.differences.front().output) : std::nullopt);
  record.summary("first_real_bug.triple", triple);
  record.summary("first_real_bug.row", row);
  record.summary("first_real_bug.column", column);
}

}  // namespace experiments::explain_gemm
