/// Where do a network's gradients lie, and which of them can FP16 hold?
///
/// Trains in FP32, pools the gradients of a few batches late in training, and counts them by binary exponent.
/// The gradients are those of the FP32 run; what FP16 would make of them is their cast.

#include <fmt/format.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "experiments/common/counted_gradients.h"
#include "experiments/common/experiment.h"
#include "experiments/common/gradient_sites.h"
#include "experiments/common/text_table.h"
#include "experiments/common/training_setup.h"
#include "experiments/gradient_histogram/figures.h"
#include "experiments/gradient_histogram/pooled.h"

namespace experiments::gradient_histogram {
namespace {

void write_histogram(sim::Table& table, const Pooled& row) {
  const sim::ExponentHistogram& exponents = row.exponents;
  const auto share = [total = static_cast<double>(exponents.total())](std::uint64_t count) {
    return 100 * static_cast<double>(count) / total;
  };
  table.row({row.name, "zero", exponents.zero(), 0, 0, 0, share(exponents.zero())});
  table.row({row.name, "infinite", exponents.infinite(), 0, 0, 0, share(exponents.infinite())});
  table.row({row.name, "nan", exponents.nan(), 0, 0, 0, share(exponents.nan())});
  if (exponents.nonzero_finite() == 0) return;
  for (int e = *exponents.lowest_exponent(); e <= *exponents.highest_exponent(); ++e) {
    const sim::ExponentHistogram::Octave& octave = exponents.octave(e);
    table.row(
        {row.name, e, octave.total, octave.powers_of_two, octave.near_next, octave.top, share(octave.total)});
  }
}

void write_histograms(sim::RunRecord& record, const Findings& found) {
  sim::Table& table = record.table("histogram", {"tensor", "exponent_log2", "count", "count_powers_of_two",
                                                 "count_near_next", "count_top", "share_percent"});
  for (const Pooled* sum : {&found.all, &found.activations, &found.weights}) write_histogram(table, *sum);
  for (const PooledSite& site : found.sites) write_histogram(table, site);
}

void write_layers(sim::RunRecord& record, const std::vector<PooledSite>& sites) {
  sim::Table& table = record.table(
      "layers",
      {"tensor", "kind", "values", "fraction_zero", "fraction_below_smallest_subnormal",
       "fraction_flushed_at_scale_1", "fraction_subnormal_at_scale_1", "fraction_overflow_at_scale_1",
       "norm_share_flushed_at_scale_1", "max_abs_log2", "octaves_alive", "is_rounding_noise"});
  for (const PooledSite& site : sites) {
    table.row({site.name, sim::name_of(site.kind), site.exponents.total(), site.fraction_zero(),
               site.fraction_below_smallest_subnormal(), site.fraction_flushed(0),
               site.fraction_subnormal_at_scale_1(), site.fraction_overflow(0), site.norm_share_flushed(),
               site.max_abs_log2(), site.octaves_alive(), int{site.is_rounding_noise}});
  }
}

void write_summary(sim::RunRecord& record, const Findings& found, bool is_classifier) {
  const std::optional<int>& recommended = found.recommended_scale_log2;
  const auto write = [&](const std::string& prefix, const Pooled& p) {
    record.summary(prefix + "values_total", p.exponents.total());
    record.summary(prefix + "fraction_zero", p.fraction_zero());
    record.summary(prefix + "fraction_below_smallest_subnormal", p.fraction_below_smallest_subnormal());
    record.summary(prefix + "fraction_flushed_at_scale_1", p.fraction_flushed(0));
    record.summary(prefix + "fraction_subnormal_at_scale_1", p.fraction_subnormal_at_scale_1());
    record.summary(prefix + "fraction_overflow_at_scale_1", p.fraction_overflow(0));
    record.summary(prefix + "norm_share_flushed_at_scale_1", p.norm_share_flushed());
    record.summary(prefix + "max_abs_log2", p.max_abs_log2());
    record.summary(prefix + "fraction_flushed_at_recommended_scale",
                   recommended ? sim::Value(p.fraction_flushed(*recommended)) : sim::Value("none"));
  };
  write("", found.all);
  record.summary("recommended_scale_log2", value_or_none(recommended));
  write("weights.", found.weights);
  write("activations.", found.activations);
  record.summary("test_loss", found.evaluation.loss);
  if (is_classifier) record.summary("test_accuracy", found.evaluation.accuracy);
}

/// Of the tensor that vanishes first; empty where none can.
std::string weakest_site_sentence(const std::vector<PooledSite>& sites) {
  const auto weakest = nearest_to_vanishing(sites);
  if (weakest == sites.end()) return {};
  return fmt::format("Nearest to vanishing: {}.",
                     octaves_alive_clause(weakest->name, weakest->octaves_alive()));
}

std::string flushed_sentence(const Pooled& all, std::string_view model, int recommended) {
  const double still_flushed = all.fraction_flushed(recommended);
  return fmt::format(
      "{} of the non-zero gradients of {} round to zero in FP16 without loss scaling, with {} of "
      "the gradient's norm; multiplied by 2^{} {} do.",
      percent(all.fraction_flushed(0)), model, percent(all.norm_share_flushed()), recommended,
      still_flushed == 0 ? "none" : "only " + percent(still_flushed));
}

std::string kinds_table(const Findings& found, int recommended) {
  TextTable table{.columns = {"gradients", "values", "exact zeros", "flushed S=1", "of the norm",
                              "subnormal S=1", "largest", fmt::format("flushed S=2^{}", recommended)},
                  .rows = {}};
  for (const Pooled* p : {&found.activations, &found.weights, &found.all}) {
    table.rows.push_back({p->name, fmt::format("{}", p->exponents.total()), percent(p->fraction_zero()),
                          percent(p->fraction_flushed(0)), percent(p->norm_share_flushed()),
                          percent(p->fraction_subnormal_at_scale_1()),
                          fmt::format("2^{:.1f}", p->max_abs_log2()),
                          percent(p->fraction_flushed(recommended))});
  }
  return table.text();
}

void write_verdict(sim::RunRecord& record, const Findings& found, std::string_view model,
                   const std::string& setting) {
  if (const std::string nonfinite = nonfinite_clause(found.all.exponents); !nonfinite.empty())
    record.verdict(nonfinite + ": the training itself has diverged.");
  if (const std::optional<int> recommended = found.recommended_scale_log2) {
    record.verdict(flushed_sentence(found.all, model, *recommended));
    if (const std::string sentence = weakest_site_sentence(found.sites); !sentence.empty())
      record.verdict(sentence);
    record.verdict(kinds_table(found, *recommended));
  } else {
    record.verdict(
        fmt::format("{} has no finite non-zero gradient left: there is nothing for FP16 to lose.", model));
  }
  record.verdict(setting);
}

void run(Run& run, Options& options) {
  const TrainingSetup setup(options.training);
  sim::Trainer trainer = setup.trainer({.seed = options.training.seed});
  record_settings(run.record(), "optimizer", trainer.optimizer().name(), trainer.optimizer().options());
  Progress progress =
      run.progress("training in FP32", static_cast<std::size_t>(setup.steps() + options.pool));
  const Findings found = pool_gradients(setup, trainer, options, progress);
  write_histograms(run.record(), found);
  write_layers(run.record(), found.sites);
  write_summary(run.record(), found, setup.model().is_classifier());
  const std::string setting = fmt::format(
      "{}; step {}, {} batch{} pooled, seed {}, S = 1; {}.", setup.description(), setup.steps(), options.pool,
      options.pool == 1 ? "" : "es", options.training.seed, setup.quality(found.evaluation));
  draw_figures(run, found, setup.model_name(), setting);
  write_verdict(run.record(), found, setup.model_name(), setting);
  if (!found.prediction_is_exact())
    run.fail("the histogram's prediction differs from the values' cast to FP16");
}

}  // namespace
}  // namespace experiments::gradient_histogram

int main(int argc, char** argv) {
  using namespace experiments;
  gradient_histogram::Options options;
  return run(
      argc, argv,
      {.program = {.name = "gradient_histogram",
                   .question = "Where do a network's gradients lie, and which of them can FP16 hold?",
                   .example = "gradient_histogram --model cnn --steps 300 --out results/cnn",
                   .summary_keys =
                       {{"values_total", "gradient values counted, weights and activations"},
                        {"fraction_zero", "exact zeros over all values"},
                        {"fraction_below_smallest_subnormal", "0 < |g| < 2^-24 over the non-zero values"},
                        {"fraction_flushed_at_scale_1", "become zero in FP16, over the non-zero values"},
                        {"fraction_subnormal_at_scale_1", "become subnormal in FP16, likewise"},
                        {"fraction_overflow_at_scale_1", "become infinite in FP16, likewise"},
                        {"norm_share_flushed_at_scale_1", "norm of the flushed values over the whole norm"},
                        {"max_abs_log2", "log2 of the largest magnitude"},
                        {"recommended_scale_log2", "floor(log2(65504 / largest)) - 1, or \"none\""},
                        {"fraction_flushed_at_recommended_scale", "become zero at that scale"},
                        {"weights.*, activations.*", "the same for one kind of gradient"},
                        {"test_loss, test_accuracy", "of the trained network, in FP32"}}},
       .options =
           [&](CommandLine& command_line) {
             options.training.bind(command_line, 30);
             command_line.add("--pool", options.pool, "batches whose gradients are counted together",
                              {.minimum = 1, .maximum = 1000, .quick = 2});
           },
       .body = [&](Run& r) { gradient_histogram::run(r, options); }});
}
