#include "experiments/validation/findings.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <bit>
#include <iterator>
#include <numeric>
#include <string_view>
#include <utility>

#include "experiments/frame/columns.h"
#include "experiments/frame/text_table.h"

namespace experiments::validation {
namespace {

/// "2^32" for a large power of two, else with commas.
std::string count_text(std::uint64_t count) {
  const bool is_large_power = count >= 1 << 20 && std::has_single_bit(count);
  return is_large_power ? fmt::format("2^{}", std::countr_zero(count)) : long_number(count);
}

/// Neighbouring findings of one family, subject and fate, added up.
struct Group {
  const Finding* first;
  std::size_t operations = 0;
  std::uint64_t inputs = 0, inputs_now = 0, mismatches = 0, documented = 0, other_nans = 0, misrounded = 0;
  std::uint64_t shards_wanted = 0, shards_finished = 0;
  bool device_failed = false;
  double time_s = 0;
};

std::vector<Group> groups_of(const std::vector<Finding>& findings) {
  std::vector<Group> groups;
  for (const Finding& finding : findings) {
    const auto same = [&](const Group& group) {
      return group.first->family == finding.family && group.first->subject == finding.subject &&
             group.first->obstacle == finding.obstacle;
    };
    auto group = std::ranges::find_if(groups, same);
    if (group == groups.end()) group = groups.insert(groups.end(), {.first = &finding});
    ++group->operations;
    group->inputs += finding.inputs;
    group->inputs_now += finding.inputs_now;
    group->mismatches += finding.mismatches;
    group->documented += finding.documented;
    group->other_nans += finding.other_nans;
    group->misrounded += finding.misrounded;
    group->shards_wanted += finding.shards_wanted;
    group->shards_finished += finding.shards_finished;
    group->device_failed = group->device_failed || finding.device_failed;
    group->time_s += finding.time_s;
  }
  return groups;
}

template <typename Predicate>
std::size_t count(const std::vector<Finding>& findings, Predicate&& predicate) {
  return static_cast<std::size_t>(std::ranges::count_if(findings, std::forward<Predicate>(predicate)));
}

template <typename Field>
std::uint64_t total(const std::vector<Finding>& findings, Field Finding::*field) {
  return std::accumulate(findings.begin(), findings.end(), std::uint64_t{0},
                         [field](std::uint64_t sum, const Finding& each) { return sum + each.*field; });
}

/// The verdict on one finding or on the sum of a group of them.
template <typename Counts>
std::string verdict_of(const Counts& counts, const std::string& obstacle) {
  if (!obstacle.empty()) return obstacle;
  std::string text = counts.mismatches != 0 ? "MISMATCH" : counts.inputs != 0 ? "equal" : "not begun";
  if (counts.mismatches == 0 && counts.misrounded != 0)
    text = fmt::format("{} of {} not correctly rounded", long_number(counts.misrounded),
                       long_number(counts.inputs));
  if (counts.other_nans != 0) text += ", other NaNs";
  if (counts.device_failed) text += ", DEVICE FAILED";
  if (counts.shards_finished != counts.shards_wanted)
    text += fmt::format(", {} of {} shards", long_number(counts.shards_finished),
                        long_number(counts.shards_wanted));
  return text;
}

std::string examples_text(const std::vector<Finding>& findings) {
  TextTable table{.columns = {"operation", "subject", "what", "a", "b", "c", "result", "expected"},
                  .rows = {}};
  for (const Finding& finding : findings) {
    if (finding.mismatches == 0) continue;
    constexpr std::size_t shown = 3;
    for (std::size_t i = 0; i < std::min(shown, finding.examples.size()); ++i) {
      table.rows.push_back({finding.operation, finding.subject, finding.examples[i].kind});
      std::ranges::copy(finding.examples[i].bits, std::back_inserter(table.rows.back()));
    }
  }
  return table.text();
}

/// "hneg / habs", or of many the first one and how many more.
std::string some_of(const std::vector<std::string>& names) {
  constexpr std::size_t most = 4;
  return names.size() <= most ? fmt::format("{}", fmt::join(names, " / "))
                              : fmt::format("{} and {} more", names.front(), names.size() - 1);
}

void write_deviations(RunRecord& record, const std::vector<Finding>& findings) {
  std::vector<std::pair<std::string, std::vector<std::string>>> deviations;
  for (const Finding& finding : findings) {
    if (finding.documented == 0) continue;
    auto found =
        std::ranges::find(deviations, finding.deviation, [](const auto& each) { return each.first; });
    if (found == deviations.end()) found = deviations.insert(found, {finding.deviation, {}});
    if (std::ranges::find(found->second, finding.operation) == found->second.end())
      found->second.push_back(finding.operation);
  }
  std::vector<std::string> clauses;
  for (const auto& [deviation, names] : deviations)
    clauses.push_back(fmt::format("{}: {}", some_of(names), deviation));
  if (!clauses.empty())
    record.verdict(fmt::format("Unlike the software half, as documented: {}.", fmt::join(clauses, "; ")));
}

/// How many rows did not run, and why.
std::string missing_sentence(const std::vector<Finding>& findings) {
  std::vector<std::string> clauses;
  for (const Group& group : groups_of(findings)) {
    const std::string& obstacle = group.first->obstacle;
    const std::size_t rows = count(findings, [&](const Finding& each) { return each.obstacle == obstacle; });
    const std::string clause = fmt::format("{} ({})", obstacle, rows);
    if (!obstacle.empty() && std::ranges::find(clauses, clause) == clauses.end()) clauses.push_back(clause);
  }
  return clauses.empty() ? "" : fmt::format(" Rows not run: {}.", fmt::join(clauses, ", "));
}

std::string unfinished_sentence(const std::vector<Finding>& findings) {
  const std::size_t rows = count(findings, [](const Finding& each) { return !each.is_finished(); });
  if (rows == 0) return "";
  return fmt::format(" {} not finished: {} of the {} shards wanted are; the next run goes on.",
                     rows == 1 ? "1 row is" : fmt::format("{} rows are", rows),
                     long_number(total(findings, &Finding::shards_finished)),
                     long_number(total(findings, &Finding::shards_wanted)));
}

std::string conclusion(const std::vector<Finding>& findings) {
  const std::size_t ran = count(findings, &Finding::ran);
  if (ran == 0)
    return count(findings, [](const Finding& each) { return each.obstacle.empty(); }) == 0
               ? "Nothing of this runs here."
               : "Nothing was tried yet.";
  const std::string all =
      fmt::format("{} rows on {} inputs", ran, count_text(total(findings, &Finding::inputs)));
  const std::uint64_t wrong = mismatches(findings), misrounded = total(findings, &Finding::misrounded),
                      nans = total(findings, &Finding::other_nans);
  if (wrong != 0)
    return fmt::format("{}: {} results in {} of these rows are not the expected ones.", all,
                       long_number(wrong),
                       count(findings, [](const Finding& each) { return each.mismatches != 0; }));
  std::string exceptions;
  if (nans != 0)
    exceptions = fmt::format(", but for {} NaNs, whose bits are not promised", long_number(nans));
  if (misrounded != 0)
    exceptions += fmt::format("{}{} values of functions that are not promised to be correctly rounded",
                              nans != 0 ? ", and " : ", but for ", long_number(misrounded));
  return fmt::format("{}: every result is the expected one, bit for bit{}.", all, exceptions);
}

const TableOf<Finding> verdicts_table{
    .name = "verdicts",
    .rows = "each operation of each subject",
    .columns = {{"operation", "", &Finding::operation},
                {"family", "", &Finding::family},
                {"subject", "", &Finding::subject},
                {"pipe", "", &Finding::pipe},
                {"reference", "", &Finding::reference},
                {"domain", "", &Finding::domain},
                {"inputs_possible", "inputs", &Finding::inputs_possible},
                {"inputs", "inputs", &Finding::inputs},
                {"shards_wanted", "shards", &Finding::shards_wanted},
                {"shards_finished", "shards", &Finding::shards_finished},
                {"mismatches", "results", &Finding::mismatches},
                {"documented_deviations", "results", &Finding::documented},
                {"other_nans", "results", &Finding::other_nans},
                {"not_correctly_rounded", "results", &Finding::misrounded},
                {"verdict", "", [](auto& f) { return verdict_of(f, f.obstacle); }},
                {"documented", "", &Finding::deviation}}};

struct ExampleRow {
  const Finding& finding;
  const Example& example;
};

/// An operand or a result of the example, as bits or as a number.
auto part_of(std::array<std::string, 5> Example::*form, std::size_t place) {
  return [form, place](const ExampleRow& row) { return (row.example.*form)[place]; };
}

const TableOf<ExampleRow> examples_table{
    .name = "counterexamples",
    .rows = "each of the first unexpected results of a row of verdicts.csv",
    .columns = {{"operation", "", [](auto& r) { return r.finding.operation; }},
                {"subject", "", [](auto& r) { return r.finding.subject; }},
                {"what", "", [](auto& r) { return r.example.kind; }},
                {"a_bits", "", part_of(&Example::bits, 0)},
                {"b_bits", "", part_of(&Example::bits, 1)},
                {"c_bits", "", part_of(&Example::bits, 2)},
                {"result_bits", "", part_of(&Example::bits, 3)},
                {"expected_bits", "", part_of(&Example::bits, 4)},
                {"a", "1", part_of(&Example::values, 0)},
                {"b", "1", part_of(&Example::values, 1)},
                {"c", "1", part_of(&Example::values, 2)},
                {"result", "1", part_of(&Example::values, 3)},
                {"expected", "1", part_of(&Example::values, 4)}}};

const TableOf<Finding> timing_table{.name = "timing",
                                    .rows = "each row of verdicts.csv that took time in this run",
                                    .columns = {{"operation", "", &Finding::operation},
                                                {"subject", "", &Finding::subject},
                                                {"inputs", "inputs", &Finding::inputs_now},
                                                {"time_s", "s", &Finding::time_s},
                                                {"rate_inputs_per_s", "inputs/s", [](auto& f) {
                                                   return static_cast<double>(f.inputs_now) / f.time_s;
                                                 }}}};

auto rows_where(auto predicate) {
  return [predicate](const std::vector<Finding>& findings) { return count(findings, predicate); };
}

auto total_of(auto field) {
  return [field](const std::vector<Finding>& findings) { return total(findings, field); };
}

const SummaryOf<std::vector<Finding>> summary{
    {{"rows", "operations by subjects", [](auto& findings) { return findings.size(); }},
     {"rows_run", "of these run, at least in part", rows_where(&Finding::ran)},
     {"rows_not_run", "of these not begun, or what they need is missing",
      rows_where([](auto& f) { return !f.ran(); })},
     {"rows_failed", "with a mismatch that is not documented, or that the device failed at",
      rows_where(&Finding::failed)},
     {"rows_exhaustive", "of those run, on every input of their domain",
      rows_where([](auto& f) { return f.ran() && f.is_complete_domain && f.inputs == f.inputs_possible; })},
     {"inputs", "of all rows", total_of(&Finding::inputs)},
     {"mismatches", "results that are not the expected bits", total_of(&Finding::mismatches)},
     {"documented_deviations", "results that differ from the software half as documented",
      total_of(&Finding::documented)},
     {"other_nans", "results that are NaNs, but of other bits; mismatches only where the bits are promised",
      total_of(&Finding::other_nans)},
     {"not_correctly_rounded", "results of functions without that promise", total_of(&Finding::misrounded)},
     {"shards_wanted", "of all rows", total_of(&Finding::shards_wanted)},
     {"shards_finished", "of all rows; fewer are finished after --budget",
      total_of(&Finding::shards_finished)}}};

}  // namespace

Outputs finding_outputs() {
  return outputs_of(verdicts_table, examples_table, timing_table, summary);
}

void write_tables(RunRecord& record, const std::vector<Finding>& findings) {
  verdicts_table.write(record, findings);
  const auto add_example = examples_table.start(record);
  const auto add_time = timing_table.start(record);
  for (const Finding& finding : findings) {
    for (const Example& example : finding.examples) add_example({finding, example});
    if (finding.time_s != 0) add_time(finding);
  }
}

void write_summary(RunRecord& record, const std::vector<Finding>& findings) {
  summary.write(record, findings);
}

void write_verdict(RunRecord& record, const std::vector<Finding>& findings, std::string_view failures) {
  TextTable table{.columns = {"operations", "subject", "rows", "inputs", "mismatches", "documented",
                              "other NaNs", "not correctly rounded", "verdict"},
                  .rows = {}};
  for (const Group& group : groups_of(findings)) {
    const bool ran = group.inputs != 0;
    const auto number = [ran](const std::string& text) { return ran ? text : "-"; };
    table.rows.push_back({std::string(group.first->family), group.first->subject,
                          fmt::format("{}", group.operations), number(count_text(group.inputs)),
                          number(long_number(group.mismatches)), number(long_number(group.documented)),
                          number(long_number(group.other_nans)), number(long_number(group.misrounded)),
                          verdict_of(group, group.first->obstacle)});
  }
  record.verdict(conclusion(findings) + std::string(failures) + unfinished_sentence(findings) +
                 missing_sentence(findings));
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

}  // namespace experiments::validation
