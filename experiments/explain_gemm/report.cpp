#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "experiments/explain_gemm/evidence.h"
#include "experiments/explain_gemm/findings.h"

namespace experiments::explain_gemm {
namespace {

// What a person looks through; figures of more say no more.
constexpr std::size_t most_outputs_listed = 10000;
constexpr std::size_t most_cells = 64;

template <class T>
Value or_none(const std::optional<T>& value) {
  return value ? Value(*value) : Value("none");
}

/// Where an output lies, triples counted from 1; "none" without one.
Value place_or_none(const Problem& problem, const std::optional<std::size_t>& output,
                    std::size_t Place::*part) {
  if (!output) return "none";
  return problem.place_of(*output).*part + (part == &Place::triple ? 1 : 0);
}

struct TriedRow {
  const Problem& problem;
  const Tried& tried;

  Value first_unexplained(std::size_t Place::*part) const {
    return place_or_none(problem, tried.first_unexplained, part);
  }
};

TableOf<TriedRow> hypotheses_table() {
  using Row = TriedRow;
  std::vector<Column<Row>> columns = columns_of_part<Row, Hypothesis>(
      hypothesis_columns(), [](const Row& r) -> const Hypothesis& { return r.tried.hypothesis; });
  columns.insert(
      columns.begin() + 1,
      {{"accumulator_bits", "bits", [](auto& r) { return r.tried.hypothesis.accumulator->format.width(); }},
       {"products_per_step", "products",
        [](auto& r) { return r.tried.hypothesis.accumulator->products_per_step; }}});
  return {
      .name = "hypotheses",
      .rows = "each hypothesis",
      .columns = joined<Column<Row>>(
          columns,
          {{"outputs_tried", "outputs", [](auto& r) { return r.tried.outputs; }},
           {"outputs_explained", "outputs", [](auto& r) { return r.tried.explained; }},
           {"fraction_explained", "1",
            [](auto& r) {
              return static_cast<double>(r.tried.explained) / static_cast<double>(r.tried.outputs);
            }},
           {"first_unexplained_triple", "", [](auto& r) { return r.first_unexplained(&Place::triple); }},
           {"first_unexplained_row", "", [](auto& r) { return r.first_unexplained(&Place::row); }},
           {"first_unexplained_column", "", [](auto& r) { return r.first_unexplained(&Place::column); }}})};
}

struct MapCell {
  std::size_t accumulator;  ///< index of accumulators()
  std::size_t slices;
  double unexplained;
};

const TableOf<MapCell> map_table{
    .name = "map",
    .rows = "each accumulator and number of slices, of the hypothesis that explains most; without --tree",
    .columns = {{"accumulator", "", [](auto& c) { return accumulators()[c.accumulator].name; }},
                {"accumulator_index", "", &MapCell::accumulator},
                {"slices", "slices", &MapCell::slices},
                {"fraction_unexplained", "1", &MapCell::unexplained}}};

void write_map(RunRecord& record, const Explanation& explanation) {
  std::map<std::pair<std::size_t, std::size_t>, double> least;
  for (const Tried& tried : explanation.tried) {
    if (std::holds_alternative<TreeAccumulation>(tried.hypothesis.accumulator->way)) continue;
    const auto index = static_cast<std::size_t>(tried.hypothesis.accumulator - accumulators().data());
    const double share = static_cast<double>(tried.unexplained()) / static_cast<double>(tried.outputs);
    const auto [at, is_new] = least.try_emplace({index, tried.hypothesis.slices}, share);
    if (!is_new) at->second = std::min(at->second, share);
  }
  const auto add = map_table.start(record);
  for (const auto& [key, share] : least) add({key.first, key.second, share});
}

/// An output that the best hypothesis does not explain.
struct OutputRow {
  const Problem& problem;
  const Difference& difference;
  Place place = problem.place_of(difference.output);

  double value(std::uint32_t code) const { return value_of(problem.d.format, code); }
};

const TableOf<OutputRow> outputs_table{
    .name = "outputs",
    .rows = "each output that the best hypothesis does not explain, up to 10,000",
    .columns = {{"triple", "", [](auto& r) { return r.place.triple + 1; }},
                {"row", "", [](auto& r) { return r.place.row; }},
                {"column", "", [](auto& r) { return r.place.column; }},
                {"kind", "", [](auto& r) { return name_of(r.difference.kind); }},
                {"observed_bits", "", [](auto& r) { return bits_text(r.problem, r.difference.observed); }},
                {"predicted_bits", "", [](auto& r) { return bits_text(r.problem, r.difference.predicted); }},
                {"observed", "1", [](auto& r) { return r.value(r.difference.observed); }},
                {"predicted", "1", [](auto& r) { return r.value(r.difference.predicted); }},
                {"exact", "1", [](auto& r) { return r.difference.exact.value; }},
                {"error", "1", [](auto& r) { return r.difference.error(r.problem.d.format); }},
                {"bound_fp32", "1", [](auto& r) { return r.difference.bounds[0]; }},
                {"bound_narrow_reduction", "1", [](auto& r) { return r.difference.bounds[1]; }},
                {"bound_fp16_accumulators", "1", [](auto& r) { return r.difference.bounds[2]; }},
                {"first_overflow_k", "products", [](auto& r) { return or_none(r.difference.overflow_at); }}}};

struct ErrorCell {
  std::size_t row, column, rows, columns;
  double unexplained;
};

const TableOf<ErrorCell> error_map_table{.name = "error_map",
                                         .rows = "each cell of D with unexplained outputs",
                                         .columns = {{"first_row", "", &ErrorCell::row},
                                                     {"first_column", "", &ErrorCell::column},
                                                     {"rows", "rows", &ErrorCell::rows},
                                                     {"columns", "columns", &ErrorCell::columns},
                                                     {"fraction_unexplained", "1", &ErrorCell::unexplained}}};

/// D in cells of equal size, as many to a side as a figure can show; of all triples together.
void write_error_map(RunRecord& record, const Findings& found) {
  const auto add = error_map_table.start(record);
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
    add({row, column, height, width, static_cast<double>(count) / outputs});
  }
}

void write_tables(RunRecord& record, const Findings& found) {
  const TableOf<TriedRow> hypotheses = hypotheses_table();
  const auto add_hypothesis = hypotheses.start(record);
  for (const Tried& tried : found.explanation.tried) add_hypothesis({found.problem, tried});
  write_map(record, found.explanation);
  const auto add_output = outputs_table.start(record);
  const std::vector<Difference>& differences = found.classification.differences;
  for (std::size_t i = 0; i < std::min(differences.size(), most_outputs_listed); ++i)
    add_output({found.problem, differences[i]});
  write_error_map(record, found);
}

/// Findings, and how sure they are.
struct Answer {
  const Findings& found;
  Evidence evidence = evidence_of(found.explanation);
  const Tried* rival = evidence.rival ? &found.explanation.tried[*evidence.rival] : nullptr;
  std::optional<std::size_t> first_bug = found.classification.count(Kind::real_bug) > 0
                                             ? std::optional(found.classification.differences.front().output)
                                             : std::nullopt;

  const Tried& best() const { return found.explanation.best(); }
};

template <class Quantity>
auto of_rival(Quantity quantity) {
  return [quantity](const Answer& a) { return a.rival ? Value(quantity(*a.rival)) : Value("none"); };
}

auto of_bug(std::size_t Place::*part) {
  return [part](const Answer& a) { return place_or_none(a.found.problem, a.first_bug, part); };
}

SummaryOf<Answer> summary() {
  using Rows = std::vector<SummaryRow<Answer>>;
  Rows rows{
      {"verdict",
       "explained (by one hypothesis), ambiguous (by several, which these outputs do not tell apart, nor "
       "orders like them "
       "that are not in the list), undetermined (by what chance may have left), unexplained",
       [](auto& a) { return name_of(a.evidence.verdict); }},
      {"classification",
       "the worst there is of none, rounding_only, undecided, accumulator_overflow, real_bug",
       [](auto& a) { return a.found.classification.name(); }},
      {"hypotheses", "how many were tried", [](auto& a) { return a.found.explanation.tried.size(); }},
      {"candidates", "how many reproduce every bit of D",
       [](auto& a) { return a.found.explanation.candidates(); }},
      {"not_refuted", "further ones that reproduce their sample, beyond --most-verified",
       [](auto& a) { return a.found.explanation.not_refuted; }},
      {"chance_survivors", "how many hypotheses would reproduce D by chance; from 0.01 on it is undetermined",
       [](auto& a) { return a.evidence.chance_survivors; }},
      {"rival", "the nearest hypothesis that does not reproduce D",
       of_rival([](const Tried& tried) { return tried.hypothesis.text(); })},
      {"rival.outputs", "that it was held against",
       of_rival([](const Tried& tried) { return tried.outputs; })},
      {"rival.unexplained", "how many of these refute it",
       of_rival([](const Tried& tried) { return tried.unexplained(); })},
      {"more_outputs", "so many times as many outputs would tell; none unless undetermined",
       [](auto& a) { return or_none(a.evidence.more_outputs); }}};
  for (const Column<Hypothesis>& column : hypothesis_columns()) {
    rows.push_back({"best." + column.name,
                    "of the hypothesis that explains the most outputs; none where none explains any",
                    [value = column.value](const Answer& a) {
                      return a.found.explanation.has_best() ? value(a.best().hypothesis) : Value("none");
                    }});
  }
  const auto classes = [](auto quantity) {
    return [quantity](const Answer& a) { return quantity(a.found.classification); };
  };
  return {joined(
      rows,
      Rows{{"triples", "of A, B and D", [](auto& a) { return a.found.problem.triples; }},
           {"outputs", "of D", [](auto& a) { return a.best().outputs; }},
           {"unexplained", "outputs that the best hypothesis does not explain",
            [](auto& a) { return a.best().unexplained(); }},
           {"real_bugs", "unexplained ones beyond the error bound of any order",
            classes([](auto& c) { return c.count(Kind::real_bug); })},
           {"undecided",
            "beyond the bound of FP32 sums and within that of sums of 16 bits, without a hypothesis that "
            "explains most outputs",
            classes([](auto& c) { return c.count(Kind::undecided); })},
           {"rounding_error",
            "root mean square of |D - exact| over the unexplained outputs within their bounds",
            classes([](auto& c) { return c.rounding_error; })},
           {"chain_error", "root mean square over all unexplained ones if fp32_fma_chain made them",
            classes([](auto& c) { return c.chain_error; })},
           {"mistake", "what gives every wrong output: none, or one of " + std::string(mistake_names),
            [](auto& a) { return a.found.mistake ? a.found.mistake->name : "none"; }},
           {"beyond_range", "not finite, as the exact value is beyond the range of D's format",
            classes([](auto& c) { return c.beyond_range.count; })},
           {"from_operands", "not finite, as an element of A, B or C is not",
            classes([](auto& c) { return c.from_operands.count; })},
           {"overflowed",
            "infinite or NaN though the exact value is within the range, where sums can overflow",
            classes([](auto& c) { return c.overflowed; })},
           {"first_overflow_k",
            "the smallest k at which an exact partial sum of them leaves the range of FP16, or of FP32 with "
            "other operands than FP16, or \"none\"",
            classes([](auto& c) { return or_none(c.first_overflow_at); })},
           {"first_real_bug.triple", "or \"none\"", of_bug(&Place::triple)},
           {"first_real_bug.row", "or \"none\"", of_bug(&Place::row)},
           {"first_real_bug.column", "or \"none\"", of_bug(&Place::column)}})};
}

constexpr const char* words =
    R"(A hypothesis is an accumulator, how k is sliced, how the slices' sums are reduced, and an epilogue.

Accumulators, in ascending k; in each the running sum is rounded after every step:
  fp32_fma_chain, fp16_fma_chain  a fused multiply-add for each k, in FP32 or FP16
  fp16_mul_add_chain              each product is rounded to FP16, then each sum
  fp32_mul_add_chain              likewise in FP32, of FP32 operands
  hopper/blackwell_fp32, ..._fp16 steps of these tensor cores, whose sums are FP32 or FP16
  ..._step8, ..._step4            the same in steps of 8 or 4 products, fewer than usual
  tree_fp32, tree_fp16            products and sums of two rounded in the order of --tree

Slices of k:
  k in 4 slices of 256            contiguous (split-K)
  blocks of 32 k to 8 slices in turn  block 0 to slice 0, block 1 to slice 1, ... (warps)
  k to 32 lanes in turn           likewise one by one (SIMD lanes, the threads of a warp)
  k cut in two at 96              k = 0 to 95, and the rest (stream-K)

Reductions of the slices' sums:
  reduced by fp32                 they are added in FP32
  reduced by fp16                 each is rounded to FP16, and every sum of them; of two slices this
                                  stands for all that add halves
  reduced by fp16_partials        each is rounded to FP16 as it is stored, then added in FP32
  reduced by fp16_in_place        each is added to D, which is FP16, slice after slice
in one of these orders: one after the other, from the last on (descending), neighbours first
(pairwise), or the upper half to the lower one until one is left (halving).

Epilogues, of the reduced sum s; float arithmetic, fl is a rounding, half_... is all in FP16:
  scale                           fl(alpha s)
  mul_add                         fl(fl(alpha s) + fl(beta c))
  fma_on_product, fma_on_c        fma(alpha, s, fl(beta c)), fma(beta, c, fl(alpha s))
  round_product_first             s is rounded to D's format before mul_add
  round_c_first                   beta c is rounded to D's format before it is added
  start_from_c                    the first slice's sum starts at c

Bounds are those of Higham (2002, chapter 3) for every order of sums in fp32, in fp32 with
fp16_reduction (fp16_epilogue where only the sum is rounded to FP16), or with fp16_accumulators.
)";

}  // namespace

const std::vector<Column<Hypothesis>>& hypothesis_columns() {
  static const std::vector<Column<Hypothesis>> columns{
      {"accumulator", "", [](auto& h) { return h.accumulator->name; }},
      {"slicing", "", [](auto& h) { return name_of(h.slicing); }},
      {"slices", "slices", &Hypothesis::slices},
      {"slice_length", "products", &Hypothesis::slice_length},
      {"reduction", "", [](auto& h) { return name_of(h.reduction, h.narrow); }},
      {"order", "", [](auto& h) { return name_of(h.order); }},
      {"epilogue", "", [](auto& h) { return name_of(h.epilogue); }}};
  return columns;
}

std::string bits_text(const Problem& problem, std::uint32_t code) {
  return fmt::format("0x{:0{}x}", code, problem.d.format.width() / 4);
}

Outputs outputs() {
  return outputs_of(Outputs{.words = words}, hypotheses_table(), map_table, outputs_table, error_map_table,
                    summary());
}

void write_results(RunRecord& record, const Findings& found) {
  write_tables(record, found);
  summary().write(record, {found});
}

}  // namespace experiments::explain_gemm
