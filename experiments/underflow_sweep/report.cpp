#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "experiments/frame/columns.h"
#include "experiments/frame/text_table.h"
#include "experiments/training/counted_gradients.h"
#include "experiments/training/glossary.h"
#include "experiments/training/instruments.h"
#include "experiments/underflow_sweep/findings.h"

namespace experiments::underflow_sweep {
namespace {

struct SweepRow {
  int scale_log2;
  const ScaleResult& result;
  const fp16::ExponentHistogram& twins;
  sim::TwinComparison total = result.total();

  double predicted(std::uint64_t count) const { return share_of_nonzero(twins, count); }
};

const TableOf<SweepRow> sweep_table{
    .name = "sweep",
    .rows = "each loss scale, over all tensors",
    .columns = {{"scale_log2", "log2", &SweepRow::scale_log2},
                {"fraction_flushed", "1", [](auto& r) { return r.total.fraction_flushed(); }},
                {"fraction_flushed_predicted", "1",
                 [](auto& r) { return r.predicted(r.twins.flushed_at_scale(r.scale_log2)); }},
                {"fraction_flushed_at_cast", "1", [](auto& r) { return r.total.fraction_flushed_at_cast(); }},
                {"fraction_lost_upstream", "1", [](auto& r) { return r.result.fraction_lost_upstream(); }},
                {"fraction_subnormal", "1", [](auto& r) { return r.total.fraction_subnormal(); }},
                {"fraction_subnormal_predicted", "1",
                 [](auto& r) { return r.predicted(r.twins.subnormal_at_scale(r.scale_log2)); }},
                {"fraction_overflow", "1", [](auto& r) { return r.total.fraction_overflow(); }},
                {"fraction_overflow_predicted", "1",
                 [](auto& r) { return r.predicted(r.twins.overflowed_at_scale(r.scale_log2)); }},
                {"relative_error", "1", [](auto& r) { return r.result.relative_error; }},
                {"cosine", "1", [](auto& r) { return r.result.cosine; }},
                {"norm_share_flushed", "1", [](auto& r) { return r.total.norm_share_flushed(); }}}};

struct LayerRow {
  std::size_t scale_log2;
  const sim::GradientSite& site;
  const sim::TwinComparison& loss;
  double fraction_lost_upstream;
};

const TableOf<LayerRow> layers_table{
    .name = "layers",
    .rows = "each tensor at each loss scale",
    .columns = {{"scale_log2", "log2", &LayerRow::scale_log2},
                {"tensor", "", [](auto& r) { return r.site.name; }},
                {"kind", "", [](auto& r) { return sim::name_of(r.site.kind); }},
                {"fraction_flushed", "1", [](auto& r) { return r.loss.fraction_flushed(); }},
                {"fraction_flushed_at_cast", "1", [](auto& r) { return r.loss.fraction_flushed_at_cast(); }},
                {"fraction_lost_upstream", "1", &LayerRow::fraction_lost_upstream},
                {"norm_share_flushed", "1", [](auto& r) { return r.loss.norm_share_flushed(); }},
                {"fraction_overflow", "1", [](auto& r) { return r.loss.fraction_overflow(); }},
                {"relative_error", "1", [](auto& r) { return r.loss.relative_error(); }},
                {"octaves_alive", "octaves", [](auto& r) { return r.loss.octaves_alive(); }}}};

void write_tables(RunRecord& record, const Findings& found) {
  const auto add_scale = sweep_table.start(record);
  const auto add_layer = layers_table.start(record);
  for (std::size_t m = 0; m < found.results.size(); ++m) {
    const ScaleResult& result = found.results[m];
    add_scale({.scale_log2 = static_cast<int>(m), .result = result, .twins = found.twin_exponents});
    for (std::size_t i = 0; i < found.sites.size(); ++i)
      add_layer({m, found.sites[i], result.sites[i], result.fraction_lost_upstream(i)});
  }
}

Value best_or_none(const Findings& found, std::size_t BestScales::*which) {
  return found.best_scales ? Value((*found.best_scales).*which) : Value("none");
}

const SummaryOf<Findings> scales_summary{
    {{"best_scale_log2", "of the smallest mean relative error without overflow, or \"none\"",
      [](const Findings& found) { return best_or_none(found, &BestScales::best); }},
     {"plateau_lowest_log2",
      "of the lowest scale from which on to the best the error is within 1 % of the smallest",
      [](const Findings& found) { return best_or_none(found, &BestScales::lowest); }},
     {"plateau_highest_log2", "of the highest such scale, from the best on",
      [](const Findings& found) { return best_or_none(found, &BestScales::highest); }},
     {"recommended_scale_log2", "floor(log2(65504 / largest twin gradient)) - 1, or \"none\"",
      [](const Findings& found) { return value_or_none(found.recommended_scale_log2); }}}};

/// At a scale; at none everything is "none".
template <class Quantity>
auto at_scale(Quantity quantity) {
  return [quantity](const ScaleResult* at) { return at != nullptr ? Value(quantity(*at)) : Value("none"); };
}

const SummaryOf<const ScaleResult*> losses_summary{
    {{"flushed_at_<scale>", "twin non-zero and run zero, over the twin's non-zero; at scale_1 and best_scale",
      at_scale([](auto& r) { return r.total().fraction_flushed(); })},
     {"flushed_at_cast_at_<scale>", "those of the flushed that their own rounding made zero",
      at_scale([](auto& r) { return r.total().fraction_flushed_at_cast(); })},
     {"lost_upstream_at_<scale>",
      "zero though S times the twin's would not round to zero, over the twin's non-zero",
      at_scale([](auto& r) { return r.fraction_lost_upstream(); })},
     {"norm_share_flushed_at_<scale>", "norm of the flushed values over the twin's norm",
      at_scale([](auto& r) { return r.total().norm_share_flushed(); })},
     {"relative_error_at_<scale>", "||run/S - twin|| / ||twin||, mean over the batches",
      at_scale([](auto& r) { return r.relative_error; })}}};

void write_summary(RunRecord& record, const Findings& found, bool is_classifier) {
  scales_summary.write(record, found);
  losses_summary.write(record, &found.results.front(), {"scale_1"});
  losses_summary.write(record, found.best_scales ? &found.results[found.best_scales->best] : nullptr,
                       {"best_scale"});
  evaluation_summary().write(record, {found.evaluation, is_classifier});
}

/// "2^4 to 2^23", "2^8 alone".
std::string plateau_text(const BestScales& scales) {
  return scales.lowest == scales.highest ? fmt::format("2^{} alone", scales.best)
                                         : fmt::format("2^{} to 2^{}", scales.lowest, scales.highest);
}

/// What the policy loses without loss scaling, and which scales lose least; there are such.
std::string answer(const Findings& found) {
  const std::string flushed = percent(found.results.front().total().fraction_flushed());
  const BestScales& scales = *found.best_scales;
  if (found.results.size() == 1)
    return fmt::format(
        "Without loss scaling {} flushes {} of the non-zero gradients; whether that matters cannot be told, "
        "as "
        "--max-scale-log2 leaves no larger scale to try.",
        found.subject(), flushed);
  if (scales.lowest == 0) {
    return fmt::format(
        "Without loss scaling {} flushes {} of the non-zero gradients, too small ones to matter: no larger "
        "scale lowers the gradient's error by more than 1 %.",
        found.subject(), flushed);
  }
  return fmt::format(
      "Without loss scaling {} flushes {} of the non-zero gradients; with S = {} the gradient's error is "
      "within 1 % of the least.",
      found.subject(), flushed, plateau_text(scales));
}

/// What was flushed on the way to gradients that FP16 could have held; empty where nothing was.
std::string upstream_sentence(const Findings& found) {
  const ScaleResult& at_1 = found.results.front();
  if (at_1.fraction_lost_upstream() == 0) return {};
  std::size_t worst = 0;
  for (std::size_t i = 0; i < found.sites.size(); ++i) {
    if (at_1.sites[i].is_rounding_noise) continue;
    if (at_1.fraction_lost_upstream(i) > at_1.fraction_lost_upstream(worst)) worst = i;
  }
  return fmt::format(
      "Some gradients are zero at S = 1 though FP16 could hold them, as what they are computed from had been "
      "flushed; "
      "{} of {}, more than of any other tensor.",
      percent(at_1.fraction_lost_upstream(worst)), found.sites[worst].name);
}

/// The rule looks at the largest gradient alone; what the sweep says of that scale stands beside it.
std::string recommendation_sentence(const Findings& found) {
  const int recommended = *found.recommended_scale_log2;
  const bool inside = recommended >= 0 && static_cast<std::size_t>(recommended) < found.results.size();
  const auto judgement = [&] {
    if (!inside) return "is outside of this sweep";
    if (found.results[static_cast<std::size_t>(recommended)].overflows()) return "overflows on the way to it";
    const auto scale = static_cast<std::size_t>(recommended);
    const bool is_good =
        found.best_scales && found.best_scales->lowest <= scale && scale <= found.best_scales->highest;
    return is_good ? "is among the best" : "loses more than the best";
  };
  return fmt::format(
      "The scale recommended by the largest gradient, an octave below 65504, is 2^{}, which {}.", recommended,
      judgement());
}

std::string overflow_sentence(const Findings& found) {
  const auto overflowing = std::ranges::find_if(found.results, &ScaleResult::overflows);
  return overflowing == found.results.end()
             ? "No scale of the sweep overflows."
             : fmt::format("From S = 2^{} on gradients overflow, and such a step would have to be skipped.",
                           overflowing - found.results.begin());
}

TextTable verdict_table(const Findings& found) {
  const std::vector<ScaleResult>& results = found.results;
  TextTable table{
      .columns = {"S", "flushed", "at the cast", "upstream", "of the norm", "subnormal", "overflow",
                  "relative error", "cosine"},
      .rows = {},
      .notes = {"at the cast: those of the flushed that their own rounding made zero.",
                "upstream: those that FP16 could hold, but an operation before them handed on a zero.",
                notes::of_the_norm, notes::relative_error}};
  for (std::size_t m = 0; m < results.size(); ++m) {
    const bool shown = m % 4 == 0 || (found.best_scales && m == found.best_scales->best) ||
                       static_cast<int>(m) == found.recommended_scale_log2 || m + 1 == results.size();
    if (!shown) continue;
    const sim::TwinComparison total = results[m].total();
    const bool overflows = results[m].overflows();
    table.rows.push_back({fmt::format("2^{}", m), percent(total.fraction_flushed()),
                          percent(total.fraction_flushed_at_cast()),
                          percent(results[m].fraction_lost_upstream()), percent(total.norm_share_flushed()),
                          percent(total.fraction_subnormal()), percent(total.fraction_overflow()),
                          overflows ? "-" : fmt::format("{:.2g}", results[m].relative_error),
                          overflows ? "-" : fmt::format("{:.6f}", results[m].cosine)});
  }
  if (!found.is_fp16)
    table.notes.push_back(fmt::format(
        "subnormal, upstream and the recommended scale are those of FP16, which {} lacks.", found.subject()));
  return table;
}

/// What there is to say of twins that are finite.
std::vector<std::string> sentences(const Findings& found) {
  if (found.results.front().total().nonzero == 0)
    return {
        fmt::format("There is nothing for {} to lose: the twin has no non-zero gradient.", found.subject())};
  std::vector<std::string> sentences{
      found.best_scales ? answer(found) : "No scale is a good one: every one of the sweep overflows."};
  if (const std::string upstream = upstream_sentence(found); !upstream.empty()) sentences.push_back(upstream);
  if (found.recommended_scale_log2) sentences.push_back(recommendation_sentence(found));
  sentences.push_back(overflow_sentence(found));
  return sentences;
}

void write_verdict(RunRecord& record, const Findings& found, const std::string& setting) {
  const std::string nonfinite = nonfinite_clause(found.twin_exponents);
  if (!nonfinite.empty()) {
    record.verdict(nonfinite + ": the training itself has diverged, or the policy's forward pass overflows.");
  } else {
    for (const std::string& sentence : sentences(found)) record.verdict(sentence);
  }
  record.verdict(verdict_table(found).text());
  record.verdict(setting);
}

}  // namespace

Outputs outputs() {
  return outputs_of(sweep_table, layers_table, scales_summary, losses_summary, evaluation_summary());
}

void report(Run& run, const Findings& found, bool is_classifier, const std::string& setting) {
  write_tables(run.record(), found);
  write_summary(run.record(), found, is_classifier);
  draw_figures(run, found, setting);
  write_verdict(run.record(), found, setting);
}

}  // namespace experiments::underflow_sweep
