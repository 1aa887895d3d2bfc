#include "experiments/validate_gpu/findings.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <numeric>

#include "experiments/common/text_table.h"
#include "experiments/validate_gpu/cuda_header.h"

namespace experiments::validate_gpu {
namespace {

std::string bits(std::uint64_t value) {
  const int digits = value >> 32 != 0 ? 16 : value >> 16 != 0 ? 8 : 4;
  return fmt::format("0x{:0{}x}", value, digits);
}

std::vector<std::string> example_of(const Trial& trial) {
  const Operands& operands = trial.operands;
  return {bits(operands.a), bits(operands.b), bits(operands.c), bits(trial.result), bits(trial.expected)};
}

/// "2^32" where it is a power of two.
std::string count_text(std::uint64_t count) {
  const bool is_power = count >= 1024 && (count & (count - 1)) == 0;
  return is_power ? fmt::format("2^{:.0f}", std::log2(static_cast<double>(count))) : fmt::format("{}", count);
}

/// Neighbouring findings of one family, subject and fate, added up.
struct Group {
  const Finding* first;
  std::size_t operations = 0;
  std::uint64_t inputs = 0, inputs_now = 0, mismatches = 0, documented = 0;
  double time_s = 0;
};

std::vector<Group> groups_of(const std::vector<Finding>& findings) {
  std::vector<Group> groups;
  for (const Finding& finding : findings) {
    const auto same = [&](const Group& group) {
      return group.first->family == finding.family && group.first->subject == finding.subject &&
             group.first->needs == finding.needs;
    };
    auto group = std::ranges::find_if(groups, same);
    if (group == groups.end()) group = groups.insert(groups.end(), {.first = &finding});
    ++group->operations;
    group->inputs += finding.inputs;
    group->inputs_now += finding.inputs_now;
    group->mismatches += finding.mismatches;
    group->documented += finding.documented;
    group->time_s += finding.time_s;
  }
  return groups;
}

template <typename Predicate>
std::size_t count(const std::vector<Finding>& findings, Predicate&& predicate) {
  return static_cast<std::size_t>(std::ranges::count_if(findings, std::forward<Predicate>(predicate)));
}

std::uint64_t total(const std::vector<Finding>& findings, std::uint64_t Finding::*field) {
  return std::accumulate(findings.begin(), findings.end(), std::uint64_t{0},
                         [field](std::uint64_t sum, const Finding& each) { return sum + each.*field; });
}

std::string verdict_of(const Finding& finding) {
  if (!finding.ran()) return "needs " + finding.needs;
  return finding.mismatches == 0 ? "equal" : "MISMATCH";
}

std::string examples_text(const std::vector<Finding>& findings) {
  TextTable table{.columns = {"operation", "subject", "a", "b", "c", "result", "expected"}, .rows = {}};
  for (const Finding& finding : findings) {
    constexpr std::size_t shown = 3;
    for (std::size_t i = 0; i < std::min(shown, finding.examples.size()); ++i) {
      table.rows.push_back({finding.operation, finding.subject});
      std::ranges::copy(finding.examples[i], std::back_inserter(table.rows.back()));
    }
  }
  return table.text();
}

void write_deviations(sim::RunRecord& record, const std::vector<Finding>& findings) {
  std::vector<std::string> clauses;
  for (const Finding& finding : findings) {
    if (finding.documented == 0) continue;
    std::string clause = fmt::format("{}: {}", finding.operation, finding.deviation);
    if (std::ranges::find(clauses, clause) == clauses.end()) clauses.push_back(std::move(clause));
  }
  if (!clauses.empty())
    record.verdict(fmt::format("Unlike the software half, as documented: {}.", fmt::join(clauses, "; ")));
}

/// How many rows did not run for want of what.
std::string missing_sentence(const std::vector<Finding>& findings) {
  std::vector<std::string> clauses;
  for (const Group& group : groups_of(findings)) {
    const std::string& needs = group.first->needs;
    const std::size_t rows = count(findings, [&](const Finding& each) { return each.needs == needs; });
    const std::string clause = fmt::format("{} need{} {}", rows, rows == 1 ? "s" : "", needs);
    if (!needs.empty() && std::ranges::find(clauses, clause) == clauses.end()) clauses.push_back(clause);
  }
  return clauses.empty() ? "" : fmt::format(" Rows not run: {}.", fmt::join(clauses, ", "));
}

std::string conclusion(const std::vector<Finding>& findings) {
  const std::size_t ran = count(findings, &Finding::ran);
  if (ran == 0) return "Nothing of this runs here.";
  const std::string all =
      fmt::format("{} rows on {} inputs", ran, count_text(total(findings, &Finding::inputs)));
  const std::uint64_t wrong = mismatches(findings);
  if (wrong == 0) return fmt::format("{}: every result is the expected one, bit for bit.", all);
  return fmt::format("{}: {} results in {} of these rows are not the expected ones.", all, wrong,
                     count(findings, [](const Finding& each) { return each.mismatches != 0; }));
}

}  // namespace

Finding finding_of(const RowOutcome& outcome) {
  const Row& row = rows()[outcome.row];
  const bool is_tensor_core = row.operation->family == "tensor core";
  Finding finding{.operation = row.operation->name,
                  .family = row.operation->family,
                  .subject = std::string(name_of(row.subject)),
                  .reference = row.subject == Subject::software_half ? "double arithmetic"
                               : is_tensor_core                      ? "tensor-core model"
                                                                     : "software half",
                  .domain = std::string(row.domain().meaning),
                  .pipe = is_tensor_core    ? "tensor core"
                          : row.is_packed() ? "packed"
                                            : "scalar",
                  .needs = std::string(row.needs),
                  .is_complete_domain = row.domain().is_complete,
                  .inputs_possible = row.domain().inputs(),
                  .inputs = outcome.inputs,
                  .inputs_now = outcome.inputs_now,
                  .mismatches = outcome.mismatches,
                  .documented = outcome.documented,
                  .deviation = row.deviation == nullptr ? "" : std::string(row.deviation->meaning),
                  .examples = {},
                  .time_s = outcome.time_s};
  for (const Trial& trial : outcome.counterexamples) finding.examples.push_back(example_of(trial));
  return finding;
}

std::vector<Finding> vector_findings(const std::optional<std::filesystem::path>& folder,
                                     const VectorFile& file) {
  std::vector<VectorOutcome> outcomes{{.accumulator = "f32"}, {.accumulator = "f16"}};
  if (folder) outcomes = check_vectors(*folder, file);
  std::vector<Finding> findings;
  for (const VectorOutcome& outcome : outcomes) {
    Finding finding{.operation = fmt::format("step_{}_{}", file.core.name, outcome.accumulator),
                    .family = "tensor core",
                    .subject = "recorded steps",
                    .reference = "tensor-core model",
                    .domain = std::string(file.name),
                    .pipe = "tensor core",
                    .needs = folder ? "" : "HALFLAB_DATA_DIR",
                    .is_complete_domain = false,
                    .inputs_possible = outcome.steps,
                    .inputs = outcome.steps,
                    .inputs_now = outcome.steps,
                    .mismatches = outcome.mismatches,
                    .deviation = {},
                    .examples = {}};
    for (const VectorMismatch& found : outcome.counterexamples)
      finding.examples.push_back(
          {fmt::format("line {}", found.line), "", "", bits(found.result), bits(found.expected)});
    findings.push_back(std::move(finding));
  }
  return findings;
}

void write_tables(sim::RunRecord& record, const std::vector<Finding>& findings) {
  sim::Table& verdicts = record.table(
      "verdicts", {"operation", "family", "subject", "pipe", "reference", "domain", "inputs_possible",
                   "inputs", "mismatches", "documented_deviations", "verdict", "documented"});
  sim::Table& examples = record.table("counterexamples", {"operation", "subject", "a_bits", "b_bits",
                                                          "c_bits", "result_bits", "expected_bits"});
  sim::Table& timing =
      record.table("timing", {"operation", "subject", "inputs", "time_s", "rate_inputs_per_s"});
  for (const Finding& finding : findings) {
    verdicts.row({finding.operation, finding.family, finding.subject, finding.pipe, finding.reference,
                  finding.domain, finding.inputs_possible, finding.inputs, finding.mismatches,
                  finding.documented, verdict_of(finding), finding.deviation});
    for (const auto& cells : finding.examples) {
      std::vector<sim::Value> row{finding.operation, finding.subject};
      row.insert(row.end(), cells.begin(), cells.end());
      examples.row(row);
    }
    if (finding.time_s == 0) continue;
    timing.row({finding.operation, finding.subject, finding.inputs_now, finding.time_s,
                static_cast<double>(finding.inputs_now) / finding.time_s});
  }
}

void write_summary(sim::RunRecord& record, const std::vector<Finding>& findings) {
  record.summary("device", "cpu");
  record.summary("rows", findings.size());
  record.summary("rows_run", count(findings, &Finding::ran));
  record.summary("rows_not_run", count(findings, [](const Finding& each) { return !each.ran(); }));
  record.summary("rows_failed", count(findings, [](const Finding& each) { return each.mismatches != 0; }));
  record.summary("rows_exhaustive", count(findings, [](const Finding& each) {
                   return each.ran() && each.is_complete_domain && each.inputs == each.inputs_possible;
                 }));
  record.summary("inputs", total(findings, &Finding::inputs));
  record.summary("mismatches", mismatches(findings));
  record.summary("documented_deviations", total(findings, &Finding::documented));
  record.summary("cuda_fp16.h",
                 cuda_header_version().empty() ? std::string_view("none") : cuda_header_version());
}

void write_verdict(sim::RunRecord& record, const std::vector<Finding>& findings) {
  TextTable table{
      .columns = {"operations", "subject", "rows", "inputs", "mismatches", "documented", "verdict"},
      .rows = {}};
  for (const Group& group : groups_of(findings)) {
    const bool ran = group.first->ran();
    const auto number = [ran](const std::string& text) { return ran ? text : "-"; };
    table.rows.push_back({std::string(group.first->family), group.first->subject,
                          fmt::format("{}", group.operations), number(count_text(group.inputs)),
                          number(fmt::format("{}", group.mismatches)),
                          number(fmt::format("{}", group.documented)),
                          !ran                    ? "needs " + group.first->needs
                          : group.mismatches == 0 ? "equal"
                                                  : "MISMATCH"});
  }
  record.verdict(conclusion(findings) + missing_sentence(findings));
  record.verdict(table.text());
  if (mismatches(findings) != 0) record.verdict(examples_text(findings));
  write_deviations(record, findings);
}

std::string timing_text(const std::vector<Finding>& findings) {
  TextTable table{.columns = {"operations", "subject", "time in s, all threads", "million inputs per s"},
                  .rows = {}};
  for (const Group& group : groups_of(findings)) {
    if (group.time_s == 0) continue;
    table.rows.push_back(
        {std::string(group.first->family), group.first->subject, fmt::format("{:.2f}", group.time_s),
         fmt::format("{:.1f}", 1e-6 * static_cast<double>(group.inputs_now) / group.time_s)});
  }
  return table.rows.empty() ? "" : '\n' + table.text();
}

std::uint64_t mismatches(const std::vector<Finding>& findings) {
  return total(findings, &Finding::mismatches);
}

}  // namespace experiments::validate_gpu
