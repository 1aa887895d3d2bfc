#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "experiments/frame/columns.h"
#include "experiments/frame/printable.h"
#include "experiments/frame/text_table.h"
#include "tools/halflab/replay/findings.h"

namespace halflab::replay {
namespace {

using namespace experiments;

std::string_view name_of(Untold untold) {
  switch (untold) {
    case Untold::no:
      return "";
    case Untold::overflow:
      return "overflow";
    case Untold::exponents:
      return "exponents";
    case Untold::twin:
      return "twin";
  }
  return "";
}

struct StepRow {
  const Replay& replay;
  const StepGradients& recorded;
  const ReplayedStep& step;
};

const TableOf<StepRow> steps_table{
    .name = "steps",
    .rows = "each step of each scaler",
    .columns = {{"scaler", "", [](auto& row) { return row.replay.scaler; }},
                {"step", "steps", [](auto& row) { return row.recorded.step; }},
                {"scale_log2", "log2", [](auto& row) { return std::log2(row.step.scale); }},
                {"decision", "", [](auto& row) { return sim::name_of(row.step.decision); }},
                {"cannot_be_told", "", [](auto& row) { return name_of(row.step.untold); }},
                {"fraction_flushed", "1", [](auto& row) { return row.step.flushed_share.value_or(NAN); }}}};

struct ScalerRow {
  const Findings& found;
  const Replay& replay;

  double extreme(bool highest) const {
    const auto [low, high] = std::ranges::minmax(replay.steps, {}, &ReplayedStep::scale);
    return std::log2(highest ? high.scale : low.scale);
  }
  bool is_as_recorded() const { return found.equals_record(replay); }
  const char* as_recorded(const char* unknown) const {
    if (!found.has_scales() || !replay.is_told()) return unknown;
    return is_as_recorded() ? "yes" : "no";
  }
};

const TableOf<ScalerRow> scalers_table{
    .name = "scalers",
    .rows = "each scaler",
    .columns = {
        {"scaler", "", [](auto& row) { return row.replay.scaler; }},
        {"steps", "steps", [](auto& row) { return row.replay.steps.size(); }},
        {"skipped", "steps", [](auto& row) { return row.replay.skipped(); }},
        {"cannot_be_told", "steps", [](auto& row) { return row.replay.untold(); }},
        {"lowest_scale_log2", "log2", [](auto& row) { return row.extreme(false); }},
        {"highest_scale_log2", "log2", [](auto& row) { return row.extreme(true); }},
        {"final_scale_log2", "log2", [](auto& row) { return std::log2(row.replay.steps.back().scale); }},
        {"mean_fraction_flushed", "1",
         [](auto& row) { return row.replay.mean_flushed_share().value_or(NAN); }},
        {"equals_record", "", [](auto& row) { return row.as_recorded(""); }}}};

const SummaryOf<Findings> summary{
    {{"steps", "recorded", [](const Findings& found) { return found.record.steps.size(); }},
     {"recorded_skips", "steps that were not finite in the run",
      [](const Findings& found) {
        return std::ranges::count_if(found.record.steps, &StepGradients::found_nonfinite);
      }},
     {"scalers", "replayed", [](const Findings& found) { return found.replays.size(); }},
     {"equal_to_record", "scalers whose S is the recorded one at every step", [](const Findings& found) {
        return std::ranges::count_if(found.replays,
                                     [&](const Replay& replay) { return found.equals_record(replay); });
      }}}};

const SummaryOf<ScalerRow> scaler_summary{
    {{"skipped.<scaler>", "steps", [](const ScalerRow& row) { return row.replay.skipped(); }},
     {"cannot_be_told.<scaler>", "steps", [](const ScalerRow& row) { return row.replay.untold(); }}}};

const char* const in_a_log = "a log";

const TableOf<LogBounds::Overflow> overflows_table{
    .name = "overflows",
    .rows = "each line that tells of an overflow",
    .columns = {{"line", "", [](auto& row) { return row.line; }},
                {"scale_log2", "log2", [](auto& row) { return row.scale > 0 ? std::log2(row.scale) : NAN; }}},
    .when = in_a_log};

const SummaryOf<LogBounds> log_summary{
    {{"overflows", "lines that tell of one", [](const LogBounds& bounds) { return bounds.overflows.size(); },
      in_a_log},
     {"zero_scale_overflows", "of these, lines where S was 0 or sank to 0",
      [](const LogBounds& bounds) { return bounds.overflows.size() - bounds.bounding().size(); }, in_a_log},
     {"lowest_overflow_scale_log2", "the smallest S above 0 that overflowed",
      [](const LogBounds& bounds) { return std::log2(bounds.lowest_scale()); }, in_a_log},
     {"sinking_overflows", "the last ones, each at a smaller S than the one before",
      [](const LogBounds& bounds) { return bounds.sinking(); }, in_a_log}}};

std::string skips_of_few(const Findings& found) {
  std::vector<std::string> clauses;
  for (const Replay& replay : found.replays) {
    const std::size_t untold = replay.untold();
    clauses.push_back(!replay.is_told()
                          ? replay.scaler + " cannot be told at any step"
                          : fmt::format("{} skips {}{}", replay.scaler, replay.skipped(),
                                        untold == 0 ? "" : fmt::format(" ({} cannot be told)", untold)));
  }
  return fmt::format("{}", fmt::join(clauses, "; "));
}

/// Who skips least and most of those that are told of.
std::string skips_of_many(const Findings& found) {
  std::vector<const Replay*> told;
  std::vector<std::string> untold;
  for (const Replay& replay : found.replays) {
    if (replay.is_told())
      told.push_back(&replay);
    else
      untold.push_back(replay.scaler);
  }
  std::vector<std::string> clauses;
  if (!told.empty()) {
    const auto [least, most] =
        std::ranges::minmax(told, {}, [](const Replay* replay) { return replay->skipped(); });
    clauses.push_back(fmt::format("{} scalers skip from {} ({}) to {} ({})", told.size(), least->skipped(),
                                  least->scaler, most->skipped(), most->scaler));
  }
  if (!untold.empty()) clauses.push_back(fmt::format("{} cannot be told", fmt::join(untold, ", ")));
  return fmt::format("{}", fmt::join(clauses, "; "));
}

std::string answer(const Findings& found) {
  constexpr std::size_t few = 4;
  const auto recorded = std::ranges::count_if(found.record.steps, &StepGradients::found_nonfinite);
  return fmt::format("Of {} recorded, {} of which overflowed in the run: {}.",
                     counted(found.record.steps.size(), "step"), recorded,
                     found.replays.size() > few ? skips_of_many(found) : skips_of_few(found));
}

std::string untold_sentence(const Findings& found) {
  std::set<Untold> reasons;
  for (const Replay& replay : found.replays) {
    for (const ReplayedStep& step : replay.steps) reasons.insert(step.untold);
  }
  std::vector<std::string> sentences;
  if (reasons.contains(Untold::overflow))
    sentences.emplace_back(
        "A step that overflowed in the run at a larger S and by an unknown amount, or whose largest gradient "
        "is unknown, cannot be told: it is taken as finite.");
  if (reasons.contains(Untold::exponents) || reasons.contains(Untold::twin))
    sentences.emplace_back(
        found.record.exponents_every == 0
            ? "A scaler that asks for exponents or a twin keeps its scale, as this record has none."
            : "A scaler that asks for exponents or a twin keeps its scale at steps that have none; "
              "--record-every 1 keeps those of every step.");
  return fmt::format("{}", fmt::join(sentences, " "));
}

std::string record_sentence(const Findings& found) {
  const auto own = std::ranges::find(found.replays, found.record.scaler, &Replay::scaler);
  if (found.record.scaler.empty() || own == found.replays.end()) return {};
  return ScalerRow{found, *own}.is_as_recorded()
             ? fmt::format("The run's own scaler, {}, gives the recorded S at every step.", own->scaler)
             : fmt::format(
                   "The run's own scaler, {}, does not give the recorded S at every step: other options, or "
                   "steps that cannot be told.",
                   own->scaler);
}

TextTable verdict_table(const Findings& found) {
  TextTable table{
      .columns = {"scaler", "skipped", "cannot be told", "lowest S", "highest S", "last S", "flushed",
                  "S as recorded"},
      .rows = {},
      .notes = {
          "flushed: of the non-zero gradients, in the mean over the steps whose FP32 gradients were kept."}};
  for (const Replay& replay : found.replays) {
    const ScalerRow row{found, replay};
    const auto flushed = replay.mean_flushed_share();
    const auto if_told = [&](const std::string& cell) { return replay.is_told() ? cell : "-"; };
    const auto power = [&](double log2) { return if_told(fmt::format("2^{:.4g}", log2)); };
    table.rows.push_back({replay.scaler, if_told(fmt::format("{}", replay.skipped())),
                          fmt::format("{}", replay.untold()), power(row.extreme(false)),
                          power(row.extreme(true)), power(std::log2(replay.steps.back().scale)),
                          if_told(flushed ? percent(*flushed) : "-"), row.as_recorded("-")});
    if (!replay.abort_reason.empty())
      table.notes.push_back(fmt::format("{} ends the run after {}: {}.", replay.scaler,
                                        counted(replay.steps.size(), "step"), replay.abort_reason));
  }
  return table;
}

/// "line 3", "lines 3 to 5".
std::string from_to(std::string_view what, const std::string& first, const std::string& last) {
  return first == last ? fmt::format("{} {}", what, first) : fmt::format("{}s {} to {}", what, first, last);
}

/// ", at scales 2^10 to 2^16: gradients reached at least 64, or were NaN."
std::string bounds_clause(const LogBounds& bounds) {
  const double reached = 65520 / bounds.lowest_scale();
  const auto power = [](double scale) { return fmt::format("2^{:.4g}", std::log2(scale)); };
  return fmt::format(
      ", at {}: gradients {}, or were NaN.",
      from_to("scale", power(bounds.lowest_scale()), power(bounds.highest_scale())),
      std::isfinite(reached) ? fmt::format("reached at least {:.3g}", reached) : "were infinite");
}

/// Which way S went; empty where few lines tell of it.
std::string course_sentence(const LogBounds& bounds) {
  constexpr std::size_t many = 3;
  const std::size_t count = bounds.overflows.size(), sinking = bounds.sinking();
  const auto zero = std::ranges::find(bounds.overflows, 0, &LogBounds::Overflow::scale);
  if (zero != bounds.overflows.end())
    return fmt::format(" S sank to 0, first in line {}: such gradients are not finite at any S.", zero->line);
  if (sinking >= many)
    return fmt::format(
        " {} came each at a smaller S than the one before: {}gradients grow, or are not finite at any S.",
        sinking == count ? "They" : fmt::format("The last {}", sinking),
        sinking == count ? "S began too high, " : "");
  return count < many ? ""
                      : " S grew back between the last ones, and so overflowed again: a dynamic scaler skips "
                        "such steps on purpose.";
}

}  // namespace

Outputs outputs() {
  return outputs_of(scalers_table, steps_table, overflows_table, summary, scaler_summary, log_summary);
}

void report(Run& run, const Findings& found) {
  RunRecord& record = run.record();
  const auto add_step = steps_table.start(record);
  const auto add_scaler = scalers_table.start(record);
  summary.write(record, found);
  for (const Replay& replay : found.replays) {
    add_scaler({found, replay});
    scaler_summary.write(record, {found, replay}, {replay.scaler});
    for (std::size_t i = 0; i < replay.steps.size(); ++i)
      add_step({replay, found.record.steps[i], replay.steps[i]});
  }
  if (run.draws()) draw_figures(run, found);
  std::vector<std::string> sentences{answer(found)};
  for (const std::string& sentence : {record_sentence(found), untold_sentence(found)})
    if (!sentence.empty()) sentences.push_back(sentence);
  sentences.emplace_back("The weights go the recorded way, whatever a scaler skips.");
  record.verdict(fmt::format("{}", fmt::join(sentences, " ")));
  record.verdict(verdict_table(found).text());
  record.verdict(fmt::format("Record: {}.", found.record.source));
}

void report(Run& run, const LogBounds& bounds) {
  overflows_table.write(run.record(), bounds.overflows);
  log_summary.write(run.record(), bounds);
  const std::size_t count = bounds.overflows.size();
  std::string text = fmt::format("This {} log tells of {}, in {}", bounds.kind, counted(count, "overflow"),
                                 from_to("line", std::to_string(bounds.overflows.front().line),
                                         std::to_string(bounds.overflows.back().line)));
  text += bounds.bounding().empty() ? "." : bounds_clause(bounds);
  text += course_sentence(bounds);
  text +=
      " What another scaler would have done cannot be told from it, as it says nothing of the steps between.";
  run.record().verdict(text);
}

}  // namespace halflab::replay
