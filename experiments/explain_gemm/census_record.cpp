#include "experiments/explain_gemm/census_record.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <vector>

#include "experiments/explain_gemm/record.h"
#include "experiments/frame/text_table.h"

namespace experiments::explain_gemm {
namespace {

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

void write_ways(RunRecord& record, const Census& census) {
  Table& table = record.table("algorithms", {"function",
                                             "compute",
                                             "operands",
                                             "output",
                                             "math",
                                             "reduced_precision_reduction",
                                             "algorithm",
                                             "tile",
                                             "stages",
                                             "stage_depth",
                                             "split_k",
                                             "reduction",
                                             "custom_option",
                                             "inner_shape",
                                             "cluster_shape",
                                             "numerical_flags",
                                             "workspace_bytes",
                                             "refusal",
                                             "repeats",
                                             "result",
                                             "verdict",
                                             "unexplained",
                                             "hypothesis"});
  for (const Attempt& attempt : census.attempts) {
    const Way& way = attempt.way;
    std::vector<Value> row{name_of(way.source),
                           experiments::name_of(way.compute),
                           name_of(way.operands),
                           name_of(way.output),
                           name_of(way.math),
                           way.reduction == ReducedPrecisionReduction::allowed ? "allowed" : "disallowed"};
    if (way.algorithm) {
      const LtAlgorithm& algorithm = *way.algorithm;
      const std::optional<int> depth = depth_of_stages(algorithm.stages);
      const std::vector<Value> configuration{algorithm.id,
                                             algorithm.tile,
                                             algorithm.stages,
                                             depth ? Value(*depth) : Value("none"),
                                             algorithm.split_k,
                                             experiments::name_of(algorithm.reduction),
                                             algorithm.custom_option,
                                             algorithm.inner_shape,
                                             algorithm.cluster_shape,
                                             numerical_flags_text(algorithm.numerical_flags),
                                             algorithm.workspace_bytes};
      row.insert(row.end(), configuration.begin(), configuration.end());
    } else {
      row.insert(row.end(), 11, Value("none"));
    }
    row.push_back(attempt.refusal.empty() ? "none" : attempt.refusal);
    row.push_back(attempt.repeats ? "yes" : "no");
    if (attempt.result) {
      const Result& result = census.results[*attempt.result];
      row.push_back(*attempt.result);
      row.push_back(result.verdict());
      row.push_back(result.is_searched() ? Value(result.explanation.best().unexplained()) : "none");
      row.push_back(result.is_searched() ? best_of(result).text() : "none");
    } else {
      row.insert(row.end(), 4, Value("none"));
    }
    table.row(row);
  }
}

/// From "candidates" on.
std::vector<Value> explanation_cells(const Result& result) {
  constexpr std::size_t columns = 12;
  if (!result.is_searched()) return std::vector<Value>(columns, "none");
  const Hypothesis& best = best_of(result);
  const auto& overflow = result.classification.first_overflow_at;
  return {result.explanation.candidates(),
          best.accumulator->name,
          name_of(best.slicing),
          best.slices,
          best.slice_length,
          name_of(best.reduction),
          name_of(best.order),
          name_of(best.epilogue),
          result.explanation.best().outputs,
          result.explanation.best().unexplained(),
          result.classification.name(),
          overflow ? Value(*overflow) : Value("none")};
}

/// How many ways led to each result, and what asked for it first.
void write_results(RunRecord& record, const Census& census) {
  Table& table =
      record.table("results", {"result", "ways", "first_way", "output", "verdict", "candidates",
                               "accumulator", "slicing", "slices", "slice_length", "reduction", "order",
                               "epilogue", "outputs", "unexplained", "classification", "first_overflow_k"});
  for (std::size_t i = 0; i < census.results.size(); ++i) {
    const Result& result = census.results[i];
    std::vector<Value> row{i, result.ways, result.first.text(), name_of(result.first.output),
                           result.verdict()};
    const std::vector<Value> cells = explanation_cells(result);
    row.insert(row.end(), cells.begin(), cells.end());
    table.row(row);
  }
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

/// Results by the number of their ways, the most first.
TextTable results_table(const Census& census) {
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

void write_census(RunRecord& record, const Census& census) {
  write_ways(record, census);
  write_results(record, census);
  record.summary("device", census.gpu.name);
  record.summary("cublas", cublas_version_text(census.cublas_version));
  record.summary("cublas_lt", cublas_version_text(census.cublas_lt_version));
  record.summary("ways", census.attempts.size());
  record.summary("algorithms_listed", census.algorithms_listed);
  record.summary("refused", refused(census));
  record.summary("not_repeating", not_repeating(census));
  record.summary("not_asked", census.ways_not_asked);
  record.summary("results", census.results.size());
  for (const char* verdict : {"explained", "ambiguous", "undetermined", "unexplained"})
    record.summary(fmt::format("results.{}", verdict), census.count(verdict));
  record.summary("results.not_searched", census.count("not searched"));
  for (const Kind kind : {Kind::rounding, Kind::undecided, Kind::overflow, Kind::real_bug})
    record.summary(fmt::format("results.{}", name_of(kind)),
                   static_cast<std::size_t>(std::ranges::count_if(census.results, [&](const Result& result) {
                     return result.is_searched() && result.classification.name() == name_of(kind);
                   })));
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
  record.verdict(results_table(census).text());
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
