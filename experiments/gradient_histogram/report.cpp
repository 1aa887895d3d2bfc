#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "experiments/frame/columns.h"
#include "experiments/frame/text_table.h"
#include "experiments/gradient_histogram/findings.h"
#include "experiments/gradient_histogram/paper_figures.h"
#include "experiments/training/counted_gradients.h"
#include "experiments/training/glossary.h"
#include "experiments/training/gradient_sites.h"
#include "experiments/training/instruments.h"

namespace experiments::gradient_histogram {
namespace {

using Octave = fp16::ExponentHistogram::Octave;

/// The values of one exponent, or the zeros, infinities or NaNs.
struct Bar {
  const Pooled& tensor;
  Value exponent;
  Octave octave;
};

const std::vector<Column<Bar>> bar_columns{
    {"tensor", "", [](auto& b) { return b.tensor.name; }},
    {"exponent_log2", "log2", &Bar::exponent},
    {"count", "values", [](auto& b) { return b.octave.total; }},
    {"count_powers_of_two", "values", [](auto& b) { return b.octave.powers_of_two; }},
    {"count_near_next", "values", [](auto& b) { return b.octave.near_next; }},
    {"count_top", "values", [](auto& b) { return b.octave.top; }},
    {"share_percent", "%", [](auto& b) {
       return 100 * static_cast<double>(b.octave.total) / static_cast<double>(b.tensor.exponents.total());
     }}};

const TableOf<Bar> histogram_table{
    .name = "histogram", .rows = "each exponent of each tensor's gradients", .columns = bar_columns};
const TableOf<Bar> weights_table{
    .name = "weights", .rows = "each exponent of the weights and of their updates", .columns = bar_columns};

void write_bars(const auto& add, const Pooled& tensor) {
  const fp16::ExponentHistogram& exponents = tensor.exponents;
  add({tensor, "zero", {.total = exponents.zero()}});
  add({tensor, "infinite", {.total = exponents.infinite()}});
  add({tensor, "nan", {.total = exponents.nan()}});
  if (exponents.nonzero_finite() == 0) return;
  for (int e = *exponents.lowest_exponent(); e <= *exponents.highest_exponent(); ++e)
    add({tensor, e, exponents.octave(e)});
}

struct MomentRow {
  const Moment& moment;
  const Pooled& gradients;
  int exponent = 0;

  const Octave& octave() const { return gradients.exponents.octave(exponent); }
};

const TableOf<MomentRow> over_training_table{
    .name = "over_training",
    .rows = "each exponent of the gradients at each moment",
    .columns = {{"step", "steps", [](auto& r) { return r.moment.step; }},
                {"quantity", "", [](auto& r) { return r.gradients.name; }},
                {"exponent_log2", "log2", &MomentRow::exponent},
                {"share_percent", "%", [](auto& r) { return r.gradients.percent_at(r.exponent); }},
                {"count", "values", [](auto& r) { return r.octave().total; }},
                {"count_powers_of_two", "values", [](auto& r) { return r.octave().powers_of_two; }},
                {"count_near_next", "values", [](auto& r) { return r.octave().near_next; }},
                {"count_top", "values", [](auto& r) { return r.octave().top; }},
                {"sum_of_squares", "1", [](auto& r) { return r.gradients.square_at(r.exponent); }}}};

const TableOf<MomentRow> moments_table{
    .name = "moments",
    .rows = "the gradients at each moment",
    .columns = {
        {"step", "steps", [](auto& r) { return r.moment.step; }},
        {"training_loss", "1", [](auto& r) { return r.moment.loss; }},
        {"quantity", "", [](auto& r) { return r.gradients.name; }},
        {"values", "values", [](auto& r) { return r.gradients.exponents.total(); }},
        {"zeros", "values", [](auto& r) { return r.gradients.exponents.zero(); }},
        {"nonfinite", "values",
         [](auto& r) { return r.gradients.exponents.infinite() + r.gradients.exponents.nan(); }},
        {"fraction_zero", "1", [](auto& r) { return r.gradients.fraction_zero(); }},
        {"fraction_flushed_at_scale_1", "1", [](auto& r) { return r.gradients.fraction_flushed(0); }},
        {"norm_share_flushed_at_scale_1", "1", [](auto& r) { return r.gradients.norm_share_flushed(); }},
        {"max_abs_log2", "log2", [](auto& r) { return r.gradients.max_abs_log2(); }}}};

const TableOf<Pooled> operations_table{
    .name = "operations",
    .rows = "each operation",
    .columns = {{"operation", "", &Pooled::name},
                {"values", "values", [](auto& p) { return p.exponents.total(); }},
                {"fraction_zero", "1", &Pooled::fraction_zero},
                {"fraction_flushed_at_scale_1", "1", [](auto& p) { return p.fraction_flushed(0); }},
                {"max_abs_log2", "log2", &Pooled::max_abs_log2}}};

const TableOf<PooledSite> layers_table{
    .name = "layers",
    .rows = "each tensor",
    .columns = {{"tensor", "", &PooledSite::name},
                {"kind", "", [](auto& s) { return sim::name_of(s.kind); }},
                {"values", "values", [](auto& s) { return s.exponents.total(); }},
                {"fraction_zero", "1", &PooledSite::fraction_zero},
                {"fraction_below_smallest_subnormal", "1", &PooledSite::fraction_below_smallest_subnormal},
                {"fraction_flushed_at_scale_1", "1", [](auto& s) { return s.fraction_flushed(0); }},
                {"fraction_subnormal_at_scale_1", "1", &PooledSite::fraction_subnormal_at_scale_1},
                {"fraction_overflow_at_scale_1", "1", [](auto& s) { return s.fraction_overflow(0); }},
                {"norm_share_flushed_at_scale_1", "1", &PooledSite::norm_share_flushed},
                {"max_abs_log2", "log2", &PooledSite::max_abs_log2},
                {"octaves_alive", "octaves", &PooledSite::octaves_alive},
                {"is_rounding_noise", "0 or 1", [](auto& s) { return int{s.is_rounding_noise}; }}}};

void write_tables(RunRecord& record, const Findings& found) {
  const auto add_gradients = histogram_table.start(record);
  for (const Pooled* sum : {&found.all_gradients, &found.activation_gradients, &found.weight_gradients})
    write_bars(add_gradients, *sum);
  for (const PooledSite& site : found.sites) write_bars(add_gradients, site);
  const auto add_weights = weights_table.start(record);
  for (const Pooled* sum : {&found.weights, &found.updates}) write_bars(add_weights, *sum);
  const auto add_exponent = over_training_table.start(record), add_moment = moments_table.start(record);
  for (const Moment& moment : found.moments) {
    for (const Pooled* gradients : {&moment.activation_gradients, &moment.weight_gradients}) {
      add_moment({moment, *gradients});
      const std::optional<int> lowest = gradients->exponents.lowest_exponent();
      if (!lowest) continue;
      const int first = std::max(*lowest - 1, fp16::ExponentHistogram::min_exponent);
      for (int e = first; e <= *gradients->exponents.highest_exponent() + 1; ++e)
        add_exponent({moment, *gradients, e});
    }
  }
  operations_table.write(record, found.operations);
  layers_table.write(record, found.sites);
}

struct AtRecommended {
  const Pooled& gradients;
  std::optional<int> scale_log2;
};

/// The keys of one kind of gradients, after a prefix.
SummaryOf<AtRecommended> gradients_summary(const std::string& prefix) {
  return {{{prefix + "values_total", "gradient values counted",
            [](auto& r) { return r.gradients.exponents.total(); }},
           {prefix + "fraction_zero", "exact zeros over all values",
            [](auto& r) { return r.gradients.fraction_zero(); }},
           {prefix + "fraction_below_smallest_subnormal", "0 < |g| < 2^-24 over the non-zero values",
            [](auto& r) { return r.gradients.fraction_below_smallest_subnormal(); }},
           {prefix + "fraction_flushed_at_scale_1", "become zero in FP16, over the non-zero values",
            [](auto& r) { return r.gradients.fraction_flushed(0); }},
           {prefix + "fraction_subnormal_at_scale_1", "become subnormal in FP16, over the non-zero values",
            [](auto& r) { return r.gradients.fraction_subnormal_at_scale_1(); }},
           {prefix + "fraction_overflow_at_scale_1", "become infinite in FP16, over the non-zero values",
            [](auto& r) { return r.gradients.fraction_overflow(0); }},
           {prefix + "norm_share_flushed_at_scale_1", "norm of the flushed values over the whole norm",
            [](auto& r) { return r.gradients.norm_share_flushed(); }},
           {prefix + "max_abs_log2", "log2 of the largest magnitude",
            [](auto& r) { return r.gradients.max_abs_log2(); }},
           {prefix + "fraction_flushed_at_recommended_scale", "become zero at the recommended scale",
            [](auto& r) {
              return r.scale_log2 ? Value(r.gradients.fraction_flushed(*r.scale_log2)) : Value("none");
            }}}};
}

const SummaryOf<AtRecommended> all_summary = gradients_summary(""),
                               kind_summary = gradients_summary("<kind>_gradients.");

const SummaryOf<Findings> scale_summary{
    {{"recommended_scale_log2", "floor(log2(65504 / largest)) - 1, or \"none\"",
      [](const Findings& found) { return value_or_none(found.recommended_scale_log2); }}}};

const SummaryOf<Pooled> updates_summary{
    {{"updates.max_abs_log2", "log2 of the largest change of a weight in one step", &Pooled::max_abs_log2},
     {"updates.fraction_below_smallest_subnormal", "changes below 2^-24 over the non-zero ones",
      &Pooled::fraction_below_smallest_subnormal}}};

void write_summary(RunRecord& record, const Findings& found, bool is_classifier) {
  const std::optional<int>& recommended = found.recommended_scale_log2;
  all_summary.write(record, {found.all_gradients, recommended});
  scale_summary.write(record, found);
  kind_summary.write(record, {found.weight_gradients, recommended}, {"weight"});
  kind_summary.write(record, {found.activation_gradients, recommended}, {"activation"});
  updates_summary.write(record, found.updates);
  evaluation_summary().write(record, {found.evaluation, is_classifier});
}

std::string answer(const Findings& found, std::string_view model) {
  if (!found.recommended_scale_log2)
    return fmt::format("There is nothing for FP16 to lose: {} has no finite non-zero gradient left.", model);
  const double still_flushed = found.all_gradients.fraction_flushed(*found.recommended_scale_log2);
  return fmt::format(
      "Without loss scaling FP16 rounds {} of the non-zero gradients of {} to zero; multiplied by 2^{} it "
      "keeps {}.",
      percent(found.all_gradients.fraction_flushed(0)), model, *found.recommended_scale_log2,
      still_flushed == 0     ? "them all"
      : still_flushed < 0.01 ? "nearly all"
                             : "all but " + percent(still_flushed));
}

/// A sentence on the tensor that vanishes first; empty where none can.
std::string weakest_site_sentence(const std::vector<PooledSite>& sites) {
  const auto weakest = nearest_to_vanishing(sites);
  if (weakest == sites.end()) return {};
  return fmt::format("Nearest to vanishing: {}.",
                     octaves_alive_clause(weakest->name, weakest->octaves_alive()));
}

std::string kinds_table(const Findings& found, int recommended) {
  TextTable table{.columns = {"gradients", "values", "exact zeros", "flushed S=1", "of the norm",
                              "subnormal S=1", "largest", fmt::format("flushed S=2^{}", recommended)},
                  .rows = {},
                  .notes = {notes::of_the_norm}};
  for (const Pooled* p : {&found.activation_gradients, &found.weight_gradients, &found.all_gradients}) {
    table.rows.push_back({p->name, fmt::format("{}", p->exponents.total()), percent(p->fraction_zero()),
                          percent(p->fraction_flushed(0)), percent(p->norm_share_flushed()),
                          percent(p->fraction_subnormal_at_scale_1()),
                          fmt::format("2^{:.1f}", p->max_abs_log2()),
                          percent(p->fraction_flushed(recommended))});
  }
  return table.text();
}

void write_verdict(RunRecord& record, const Findings& found, std::string_view model,
                   const std::vector<std::string>& paper) {
  if (const std::string nonfinite = nonfinite_clause(found.all_gradients.exponents); !nonfinite.empty())
    record.verdict(nonfinite + ": the training itself has diverged.");
  record.verdict(answer(found, model));
  if (const std::string sentence = weakest_site_sentence(found.sites); !sentence.empty())
    record.verdict(sentence);
  if (found.recommended_scale_log2) record.verdict(kinds_table(found, *found.recommended_scale_log2));
  for (const std::string& paragraph : paper) record.verdict(paragraph);
}

}  // namespace

Outputs outputs() {
  return outputs_of(histogram_table, weights_table, over_training_table, moments_table, operations_table,
                    layers_table, all_summary, scale_summary, kind_summary, updates_summary,
                    evaluation_summary(), paper_outputs());
}

void report(Run& run, const Findings& found, const TrainingSetup& setup, const Options& options,
            const std::string& setting) {
  const std::string_view model = setup.model_name();
  write_tables(run.record(), found);
  write_summary(run.record(), found, setup.model().is_classifier());
  std::vector<std::string> paper;
  if (options.figure == "paper3") paper = report_paper3(run, found, options.training.model, setting);
  if (options.figure == "paper2b") paper = report_paper2b(run, found, model, setting);
  draw_figures(run, found, model, setting);
  write_verdict(run.record(), found, model, paper);
  run.record().verdict(setting);
}

}  // namespace experiments::gradient_histogram
