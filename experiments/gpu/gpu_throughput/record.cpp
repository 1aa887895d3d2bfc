#include "experiments/gpu/gpu_throughput/record.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <utility>

#include "experiments/frame/columns.h"
#include "experiments/frame/text_table.h"

namespace experiments::gpu_throughput {
namespace {

template <typename Rows, typename Predicate>
std::size_t count(const Rows& rows, Predicate predicate) {
  return static_cast<std::size_t>(std::ranges::count_if(rows, predicate));
}

std::string time_text(double time_s) {
  return fmt::format("{:.4g}", 1e6 * time_s);
}

std::string share_text(double share) {
  return fmt::format("{:.1f} %", 100 * share);
}

/// The judgements of one row.
std::vector<const Judgement*> of_row(const std::vector<Judgement>& judgements, const Row& row) {
  std::vector<const Judgement*> found;
  for (const Judgement& judgement : judgements) {
    if (judgement.row == &row) found.push_back(&judgement);
  }
  return found;
}

std::vector<std::string> names_with(const std::vector<Judgement>& judgements, Outcome outcome) {
  std::vector<std::string> names;
  for (const Judgement& judgement : judgements) {
    if (judgement.target && judgement.outcome == outcome)
      names.push_back(
          fmt::format("{} {} of {}", judgement.row->key(), share_text(judgement.ratio), judgement.peer_name));
  }
  return names;
}

std::vector<std::string> screen_cells(const Row& row) {
  if (!row.times) return {row.key(), "-", "-", "-", "-"};
  return {row.key(), rate_text(row.rate(), row.unit), time_text(row.times->median_s),
          time_text(row.times->lowest_s), time_text(row.times->highest_s)};
}

std::string outcome_text(const Row& row, const Judgement* judgement) {
  if (!row.absent.empty()) return "not run";
  if (!row.failure.empty()) return "FAILED";
  if (row.check.wrong != 0) return "WRONG RESULTS";
  return judgement == nullptr ? "" : std::string(name_of(judgement->outcome));
}

std::vector<std::string> judgement_cells(const Row& row, const Judgement* judgement) {
  if (judgement == nullptr) return {"", "-", "-", outcome_text(row, judgement)};
  return {judgement->peer_name, judgement->ratio == 0 ? "-" : share_text(judgement->ratio),
          judgement->target ? share_text(*judgement->target) : "-", outcome_text(row, judgement)};
}

std::string check_text(const Row& row) {
  if (!row.absent.empty()) return "not run";
  if (!row.failure.empty()) return "FAILED";
  return row.check.wrong == 0 ? "as on the CPU" : "WRONG";
}

/// A paragraph for each reason why rows did not run or failed.
std::vector<std::string> reasons(const std::vector<Row>& rows) {
  std::vector<std::string> found, paragraphs;
  for (const Row& row : rows) {
    const std::string& reason = row.absent.empty() ? row.failure : row.absent;
    if (reason.empty() || std::ranges::find(found, reason) != found.end()) continue;
    found.push_back(reason);
    std::vector<std::string> names;
    for (const Row& other : rows) {
      if (other.absent == reason || other.failure == reason) names.push_back(other.key());
    }
    paragraphs.push_back(fmt::format(
        "{} {}: {}.", row.absent.empty() ? "Failed:" : "Not run:", fmt::join(names, ", "), reason));
  }
  return paragraphs;
}

/// A row with times beside one of its limits; null where none was measured.
struct TimedRow {
  const Row& row;
  const Judgement* judgement;
  const Times& times = *row.times;
  double ratio = judgement ? judgement->ratio : 1;
};

const TableOf<TimedRow> timing_table{
    .name = "timing",
    .rows = "each row that was timed, at each size, and each limit of it",
    .columns = {{"row", "", [](auto& r) { return r.row.name; }},
                {"size", "", [](auto& r) { return r.row.group; }},
                {"unit", "", [](auto& r) { return r.row.unit == Unit::bytes ? "B" : "FLOP"; }},
                {"amount_per_call", "B or FLOP", [](auto& r) { return r.row.amount; }},
                {"repeats", "repeats", [](auto& r) { return r.times.repeats; }},
                {"calls_per_repeat", "calls", [](auto& r) { return r.times.calls_per_repeat; }},
                {"time_median_s", "s", [](auto& r) { return r.times.median_s; }},
                {"time_lowest_s", "s", [](auto& r) { return r.times.lowest_s; }},
                {"time_highest_s", "s", [](auto& r) { return r.times.highest_s; }},
                {"rate_per_s", "B/s or FLOP/s", [](auto& r) { return r.row.rate(); }},
                {"limit", "", [](auto& r) { return r.judgement ? r.judgement->peer_name : ""; }},
                {"ratio", "1", &TimedRow::ratio},
                {"ratio_lowest", "1", [](auto& r) { return r.ratio * r.times.median_s / r.times.highest_s; }},
                {"ratio_highest", "1", [](auto& r) { return r.ratio * r.times.median_s / r.times.lowest_s; }},
                {"target", "1",
                 [](auto& r) {
                   return r.judgement && r.judgement->target ? Value(*r.judgement->target) : Value("");
                 }},
                {"outcome", "", [](auto& r) { return r.judgement ? name_of(r.judgement->outcome) : ""; }}}};

const SummaryOf<std::vector<Row>> rows_summary{
    {{"rows", "kernels by sizes", [](auto& rows) { return rows.size(); }},
     {"rows_checked", "those that ran and were compared with the CPU",
      [](auto& rows) { return count(rows, [](const Row& row) { return row.check.compared != 0; }); }},
     {"rows_failed", "with wrong results", [](auto& rows) { return count(rows, &Row::failed); }}}};

const SummaryOf<std::vector<Judgement>> targets_summary{
    {{"targets", "rows and limits for which a least share is aimed at", [](auto& judgements) {
        return count(judgements, [](const Judgement& each) { return each.target.has_value(); });
      }}}};

const SummaryOf<Row> rates_summary{
    {{"rate.<row>",
      "bytes or operations a second, by the median time; of products rate.<row>.<edge>, here and below",
      &Row::rate, "rows that were timed"}}};

const SummaryOf<Judgement> limits_summary{
    {{"ratio.<row>", "that over its limit's; over a second limit's ratio.<row>.over_<peer>",
      &Judgement::ratio, "rows and limits that were timed"},
     {"limit.<row>", "the limit's, in the same unit; the second one's limit.<row>.over_<peer>",
      [](auto& judgement) { return judgement.peer->rate(); }, "rows and limits that were timed"}}};

const SummaryOf<ContextMemory> context_summary{
    {{"overhead.context_bytes",
      "the device's used memory after the first call that needs a context less that before, by NVML",
      &ContextMemory::bytes, "NVML"},
     {"overhead.device_bytes_in_use",
      "total less free memory at that moment, of all processes and the driver",
      &ContextMemory::in_use_bytes}}};

}  // namespace

std::string rate_text(double rate, Unit unit) {
  constexpr std::array prefixes{"", "k", "M", "G", "T", "P"};
  std::size_t prefix = 0;
  for (; rate >= 1000 && prefix + 1 < prefixes.size(); ++prefix) rate /= 1000;
  return fmt::format("{:.3g} {}{}", rate, prefixes[prefix], unit == Unit::bytes ? "B/s" : "FLOP/s");
}

std::string conclusion(const std::vector<Judgement>& judgements) {
  const std::size_t targets =
      count(judgements, [](const Judgement& each) { return each.target.has_value(); });
  if (targets == 0) return "None of these rows has a target.";
  const std::vector<std::string> missed = names_with(judgements, Outcome::missed);
  const std::size_t reached = names_with(judgements, Outcome::reached).size();
  std::string text = fmt::format("{} of {} targets are reached.", reached, targets);
  if (!missed.empty()) text += fmt::format(" Not reached: {}.", fmt::join(missed, ", "));
  if (const std::size_t open = targets - reached - missed.size(); open != 0)
    text += fmt::format(" {} are not judged.", open);
  return text;
}

std::string screen_text(const std::vector<Row>& rows, const std::vector<Judgement>& judgements) {
  TextTable table{.columns = {"row", "rate", "time in us", "lowest", "highest", "limit",
                              "of the limit's rate", "target", "outcome"},
                  .rows = {}};
  for (const Row& row : rows) {
    std::vector<const Judgement*> shown = of_row(judgements, row);
    if (shown.empty()) shown.push_back(nullptr);
    for (const Judgement* judgement : shown) {
      std::vector<std::string> cells = judgement == shown.front()
                                           ? screen_cells(row)
                                           : std::vector<std::string>{row.key(), "", "", "", ""};
      std::ranges::move(judgement_cells(row, judgement), std::back_inserter(cells));
      table.rows.push_back(std::move(cells));
    }
  }
  return fmt::format("\n{}\n{}\n", table.text(), conclusion(judgements));
}

std::string copy_text(const std::vector<Row>& rows, double stated_rate) {
  const auto copy = std::ranges::find(rows, "copy", &Row::name);
  if (copy == rows.end() || !copy->times || stated_rate == 0) return "";
  return fmt::format("The copy reaches {} of the {} that the driver states for the memory.\n",
                     share_text(copy->rate() / stated_rate), rate_text(stated_rate, Unit::bytes));
}

std::string context_text(const ContextMemory& memory) {
  constexpr double mebi = 1 << 20;
  const std::string in_use =
      fmt::format("{:.0f} MiB of the device's memory are in use by all processes and the driver",
                  static_cast<double>(memory.in_use_bytes) / mebi);
  if (!memory.bytes)
    return fmt::format(
        "With the context begun and nothing allocated, {}; what of it is the context's is not "
        "known ({}).\n",
        in_use, memory.absent);
  return fmt::format("The context takes {:.0f} MiB of the device's memory before the first allocation; {}.\n",
                     static_cast<double>(*memory.bytes) / mebi, in_use);
}

Outputs outputs() {
  return outputs_of(timing_table, rows_summary, targets_summary, rates_summary, limits_summary,
                    context_summary);
}

void write_timing(RunRecord& record, const std::vector<Row>& rows, const std::vector<Judgement>& judgements) {
  const auto add = timing_table.start(record);
  for (const Row& row : rows) {
    if (!row.times) continue;
    std::vector<const Judgement*> compared = of_row(judgements, row);
    std::erase_if(compared, [](const Judgement* judgement) { return judgement->ratio == 0; });
    if (compared.empty()) compared.push_back(nullptr);
    for (const Judgement* judgement : compared) add({row, judgement});
  }
}

void write_summary(RunRecord& record, const std::vector<Row>& rows,
                   const std::vector<Judgement>& judgements) {
  rows_summary.write(record, rows);
  targets_summary.write(record, judgements);
  for (const Row& row : rows) {
    if (row.times) rates_summary.write(record, row, {row.key()});
  }
  for (const Judgement& judgement : judgements) {
    if (judgement.ratio != 0) limits_summary.write(record, judgement, {judgement.key});
  }
}

void write_summary(RunRecord& record, const ContextMemory& memory) {
  context_summary.write(record, memory);
}

void write_verdict(Run& run, const std::vector<Row>& rows) {
  TextTable table{.columns = {"row", "results compared", "wrong", "verdict"}, .rows = {}};
  for (const Row& row : rows)
    table.rows.push_back({row.key(), fmt::format("{}", row.check.compared),
                          fmt::format("{}", row.check.wrong), check_text(row)});
  const std::size_t failed = count(rows, &Row::failed);
  const std::size_t checked = count(rows, [](const Row& row) { return row.check.compared != 0; });
  run.record().verdict(
      failed == 0
          ? fmt::format("{} of {} rows ran, and each computes what the CPU does, bit for bit, NaNs aside "
                        "(products of cuBLAS, whose order is its own: of small integers). Times and rates "
                        "are in timing.csv and in summary.json.",
                        checked, rows.size())
          : fmt::format("{} of {} rows fail or compute something else than the CPU; they were not timed.",
                        failed, rows.size()));
  run.record().verdict(table.text());
  for (const std::string& paragraph : reasons(rows)) run.record().verdict(paragraph);
  if (failed != 0) run.fail(fmt::format("{} of {} rows have wrong results or fail", failed, rows.size()));
}

}  // namespace experiments::gpu_throughput
