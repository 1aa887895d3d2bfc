#include "experiments/gpu/gpu_throughput/record.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <utility>

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

void write_timing(RunRecord& record, const std::vector<Row>& rows, const std::vector<Judgement>& judgements) {
  Table& table =
      record.table("timing", {"row", "size", "unit", "amount_per_call", "repeats", "calls_per_repeat",
                              "time_median_s", "time_lowest_s", "time_highest_s", "rate_per_s", "limit",
                              "ratio", "ratio_lowest", "ratio_highest", "target", "outcome"});
  for (const Row& row : rows) {
    if (!row.times) continue;
    const Times& times = *row.times;
    const auto write = [&](std::string_view limit, double ratio, const Value& target,
                           std::string_view outcome) {
      table.row({row.name, row.group, row.unit == Unit::bytes ? "B" : "FLOP", row.amount, times.repeats,
                 times.calls_per_repeat, times.median_s, times.lowest_s, times.highest_s, row.rate(), limit,
                 ratio, ratio * times.median_s / times.highest_s, ratio * times.median_s / times.lowest_s,
                 target, outcome});
    };
    bool is_compared = false;
    for (const Judgement* judgement : of_row(judgements, row)) {
      if (judgement->ratio == 0) continue;
      is_compared = true;
      write(judgement->peer_name, judgement->ratio, judgement->target ? Value(*judgement->target) : Value(""),
            name_of(judgement->outcome));
    }
    if (!is_compared) write("", 1, "", "");
  }
}

void write_summary(RunRecord& record, const std::vector<Row>& rows,
                   const std::vector<Judgement>& judgements) {
  record.summary("rows", rows.size());
  record.summary("rows_checked", count(rows, [](const Row& row) { return row.check.compared != 0; }));
  record.summary("rows_failed", count(rows, &Row::failed));
  record.summary("targets", count(judgements, [](const Judgement& each) { return each.target.has_value(); }));
  for (const Row& row : rows) {
    if (row.times) record.summary("rate." + row.key(), row.rate());
  }
  for (const Judgement& judgement : judgements) {
    if (judgement.ratio == 0) continue;
    record.summary("ratio." + judgement.key, judgement.ratio);
    record.summary("limit." + judgement.key, judgement.peer->rate());
  }
}

void write_summary(RunRecord& record, const ContextMemory& memory) {
  if (memory.bytes) record.summary("overhead.context_bytes", *memory.bytes);
  record.summary("overhead.device_bytes_in_use", memory.in_use_bytes);
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
