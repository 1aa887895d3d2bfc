#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <vector>

#include "experiments/explain_gemm/census.h"
#include "experiments/explain_gemm/findings.h"
#include "experiments/frame/columns.h"
#include "experiments/frame/text_table.h"

namespace experiments::explain_gemm {
namespace {

constexpr const char* with_cublas = "--cublas";
constexpr std::size_t most_results_shown = 30;

std::string_view name_of(CublasType type) {
  return type == CublasType::fp16 ? "fp16" : "fp32";
}

std::string_view name_of(CublasMath math) {
  switch (math) {
    case CublasMath::pedantic:
      return "pedantic";
    case CublasMath::tf32:
      return "tf32";
    default:
      return "standard";
  }
}

const Hypothesis& best_of(const Result& result) {
  return result.explanation.best().hypothesis;
}

struct AttemptRow {
  const Census& census;
  const Attempt& attempt;

  const Way& way() const { return attempt.way; }
  /// A result's quantity; "none" without one.
  Value of_result(const auto& quantity) const {
    return attempt.result ? Value(quantity(census.results[*attempt.result])) : Value("none");
  }
  Value of_search(const auto& quantity) const {
    return of_result(
        [&](const Result& result) { return result.is_searched() ? Value(quantity(result)) : Value("none"); });
  }
};

/// What cuBLASLt was told; "none" of other functions.
auto of_algorithm(auto quantity) {
  return [quantity](const AttemptRow& r) {
    return r.way().algorithm ? Value(std::invoke(quantity, *r.way().algorithm)) : Value("none");
  };
}

Value depth_or_none(const LtAlgorithm& algorithm) {
  const std::optional<int> depth = depth_of_stages(algorithm.stages);
  return depth ? Value(*depth) : Value("none");
}

const TableOf<AttemptRow> algorithms_table{
    .name = "algorithms",
    .rows = "each way of asking for the product",
    .columns =
        {{"function", "", [](auto& r) { return name_of(r.way().source); }},
         {"compute", "", [](auto& r) { return experiments::name_of(r.way().compute); }},
         {"operands", "", [](auto& r) { return name_of(r.way().operands); }},
         {"output", "", [](auto& r) { return name_of(r.way().output); }},
         {"math", "", [](auto& r) { return name_of(r.way().math); }},
         {"reduced_precision_reduction", "",
          [](auto& r) {
            return r.way().reduction == ReducedPrecisionReduction::allowed ? "allowed" : "disallowed";
          }},
         {"algorithm", "", of_algorithm(&LtAlgorithm::id)},
         {"tile", "", of_algorithm(&LtAlgorithm::tile)},
         {"stages", "", of_algorithm(&LtAlgorithm::stages)},
         {"stage_depth", "products", of_algorithm(depth_or_none)},
         {"split_k", "slices", of_algorithm(&LtAlgorithm::split_k)},
         {"reduction", "", of_algorithm([](auto& a) { return experiments::name_of(a.reduction); })},
         {"custom_option", "", of_algorithm(&LtAlgorithm::custom_option)},
         {"inner_shape", "", of_algorithm(&LtAlgorithm::inner_shape)},
         {"cluster_shape", "", of_algorithm(&LtAlgorithm::cluster_shape)},
         {"numerical_flags", "",
          of_algorithm([](auto& a) { return numerical_flags_text(a.numerical_flags); })},
         {"workspace_bytes", "bytes", of_algorithm(&LtAlgorithm::workspace_bytes)},
         {"refusal", "", [](auto& r) { return r.attempt.refusal.empty() ? "none" : r.attempt.refusal; }},
         {"repeats", "", [](auto& r) { return r.attempt.repeats ? "yes" : "no"; }},
         {"result", "", [](auto& r) { return r.attempt.result ? Value(*r.attempt.result) : Value("none"); }},
         {"verdict", "", [](auto& r) { return r.of_result([](auto& d) { return d.verdict(); }); }},
         {"unexplained", "outputs",
          [](auto& r) { return r.of_search([](auto& d) { return d.explanation.best().unexplained(); }); }},
         {"hypothesis", "", [](auto& r) { return r.of_search([](auto& d) { return best_of(d).text(); }); }}},
    .when = with_cublas};

struct ResultRow {
  std::size_t index;
  const Result& result;
};

/// "none" where the result was not searched.
auto if_searched(auto quantity) {
  return [quantity](const ResultRow& r) {
    return r.result.is_searched() ? Value(quantity(r.result)) : Value("none");
  };
}

TableOf<ResultRow> results_table() {
  using Row = ResultRow;
  std::vector<Column<Row>> columns{
      {"result", "", &Row::index},
      {"ways", "ways", [](auto& r) { return r.result.ways; }},
      {"first_way", "", [](auto& r) { return r.result.first.text(); }},
      {"output", "", [](auto& r) { return name_of(r.result.first.output); }},
      {"verdict", "", [](auto& r) { return r.result.verdict(); }},
      {"candidates", "hypotheses", if_searched([](auto& d) { return d.explanation.candidates(); })}};
  for (const Column<Hypothesis>& column : hypothesis_columns()) {
    columns.push_back({column.name, column.unit,
                       if_searched([value = column.value](const Result& d) { return value(best_of(d)); })});
  }
  return {
      .name = "results",
      .rows = "each different D",
      .columns = joined<Column<Row>>(
          columns, {{"outputs", "outputs", if_searched([](auto& d) { return d.explanation.best().outputs; })},
                    {"unexplained", "outputs",
                     if_searched([](auto& d) { return d.explanation.best().unexplained(); })},
                    {"classification", "", if_searched([](auto& d) { return d.classification.name(); })},
                    {"first_overflow_k", "products", if_searched([](const Result& d) {
                       const auto& overflow = d.classification.first_overflow_at;
                       return overflow ? Value(*overflow) : Value("none");
                     })}}),
      .when = with_cublas};
}

std::size_t count_attempts(const Census& census, const auto& condition) {
  return static_cast<std::size_t>(std::ranges::count_if(census.attempts, condition));
}

std::size_t refused(const Census& census) {
  return count_attempts(census, [](const Attempt& attempt) { return !attempt.refusal.empty(); });
}

std::size_t not_repeating(const Census& census) {
  return count_attempts(census, [](const Attempt& attempt) { return !attempt.repeats; });
}

const SummaryOf<Census> census_summary{
    {{"device", "the GPU", [](auto& c) { return c.gpu.name; }, with_cublas},
     {"cublas", "its version", [](auto& c) { return cublas_version_text(c.cublas_version); }, with_cublas},
     {"cublas_lt", "its version", [](auto& c) { return cublas_version_text(c.cublas_lt_version); },
      with_cublas},
     {"ways", "of asking for the product", [](auto& c) { return c.attempts.size(); }, with_cublas},
     {"algorithms_listed", "by cuBLASLt; of these `ways` has a part, see --most-algorithms",
      &Census::algorithms_listed, with_cublas},
     {"refused", "ways without a result", refused, with_cublas},
     {"not_repeating", "ways with other bits the second time", not_repeating, with_cublas},
     {"not_asked", "ways that --budget, or a failure of the device, left no time for",
      &Census::ways_not_asked, with_cublas},
     {"results", "different D", [](auto& c) { return c.results.size(); }, with_cublas}}};

const SummaryOf<std::size_t> verdicts_summary{{{"results.<verdict>",
                                                "different D that are explained, ambiguous, undetermined, "
                                                "unexplained, or not_searched for lack of time",
                                                [](std::size_t count) { return count; }, with_cublas}}};
const SummaryOf<std::size_t> kinds_summary{{{"results.<classification>", "different D of that classification",
                                             [](std::size_t count) { return count; }, with_cublas}}};

/// Results by the number of their ways, the most first.
TextTable verdict_table(const Census& census) {
  std::vector<std::size_t> order(census.results.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::ranges::stable_sort(order, std::greater{}, [&](std::size_t i) { return census.results[i].ways; });
  TextTable table{.columns = {"result", "ways", "first asked for by", "hypothesis", "unexplained", "kind"},
                  .rows = {}};
  for (const std::size_t i : order) {
    if (table.rows.size() == most_results_shown) break;
    const Result& result = census.results[i];
    table.rows.push_back({fmt::format("{}", i), fmt::format("{}", result.ways), result.first.text()});
    std::vector<std::string>& row = table.rows.back();
    if (result.is_searched()) {
      row.insert(row.end(),
                 {best_of(result).text(), fmt::format("{}", result.explanation.best().unexplained()),
                  std::string(result.classification.name())});
    } else {
      row.insert(row.end(), {std::string(result.verdict()), "-", "-"});
    }
  }
  return table;
}

}  // namespace

Outputs census_outputs() {
  return outputs_of(algorithms_table, results_table(), census_summary, verdicts_summary, kinds_summary);
}

void write_census(RunRecord& record, const Census& census) {
  const auto add_attempt = algorithms_table.start(record);
  for (const Attempt& attempt : census.attempts) add_attempt({census, attempt});
  const TableOf<ResultRow> results = results_table();
  const auto add_result = results.start(record);
  for (std::size_t i = 0; i < census.results.size(); ++i) add_result({i, census.results[i]});
  census_summary.write(record, census);
  for (const char* verdict : {"explained", "ambiguous", "undetermined", "unexplained"})
    verdicts_summary.write(record, census.count(verdict), {verdict});
  verdicts_summary.write(record, census.count("not searched"), {"not_searched"});
  for (const Kind kind : {Kind::rounding, Kind::undecided, Kind::overflow, Kind::real_bug}) {
    const auto is_of_kind = [&](const Result& result) {
      return result.is_searched() && result.classification.name() == name_of(kind);
    };
    kinds_summary.write(record, static_cast<std::size_t>(std::ranges::count_if(census.results, is_of_kind)),
                        {name_of(kind)});
  }
}

void write_census_verdict(RunRecord& record, const Census& census) {
  const std::size_t made = census.attempts.size() - refused(census);
  record.verdict(fmt::format(
      "cuBLAS {} on {}: {} ways of asking for one product give {} different D; {} are explained by one "
      "hypothesis, {} by several, {} by what chance may have left, {} by none. {} ways were refused, {} gave "
      "other "
      "bits when asked again.",
      cublas_version_text(census.cublas_version), census.gpu.name, made, census.results.size(),
      census.count("explained"), census.count("ambiguous"), census.count("undetermined"),
      census.count("unexplained"), refused(census), not_repeating(census)));
  if (const std::size_t open = census.count("not searched"); open + census.ways_not_asked != 0)
    record.verdict(
        fmt::format("Not everything was done: {} ways were not asked for, {} different D not searched.",
                    census.ways_not_asked, open));
  if (!census.fault.empty()) record.verdict("THE DEVICE FAILED at " + census.fault + ".");
  record.verdict(verdict_table(census).text());
  record.verdict(
      "What is explained can be predicted bit by bit. To have the same bits in every run and for every "
      "shape, "
      "choose an algorithm of algorithms.csv whose result is explained with k in one slice, and keep it.");
}

std::string census_bug_line(const Census& census) {
  for (const Result& result : census.results) {
    const Findings found{result.problem, result.explanation, result.classification};
    if (const std::string line = bug_line(found); !line.empty())
      return fmt::format("{}: {}", result.first.text(), line);
  }
  return {};
}

}  // namespace experiments::explain_gemm
