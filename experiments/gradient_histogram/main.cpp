/// Where do a network's gradients lie, and which of them can FP16 hold?
///
/// Trains in FP32, pools the gradients of a few batches late in training, and counts them by binary exponent;
/// beside them the weights, what a step changes in them, and the gradients at some moments of training. The
/// gradients are those of the FP32 run; what FP16 would make of them is their cast.

#include <fmt/format.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "experiments/frame/text_table.h"
#include "experiments/gradient_histogram/figures.h"
#include "experiments/gradient_histogram/paper_figures.h"
#include "experiments/gradient_histogram/pooled.h"
#include "experiments/training/counted_gradients.h"
#include "experiments/training/glossary.h"
#include "experiments/training/gradient_sites.h"
#include "experiments/training/laboratory.h"
#include "experiments/training/training_setup.h"

namespace experiments::gradient_histogram {
namespace {

struct Options {
  TrainingOptions training{.model = "mlp", .steps = 600};
  std::string figure = "exponents";
  int pool = 4;
  int moments = 8;
};

void write_histogram(Table& table, const Pooled& row) {
  const fp16::ExponentHistogram& exponents = row.exponents;
  const auto share = [total = static_cast<double>(exponents.total())](std::uint64_t count) {
    return 100 * static_cast<double>(count) / total;
  };
  table.row({row.name, "zero", exponents.zero(), 0, 0, 0, share(exponents.zero())});
  table.row({row.name, "infinite", exponents.infinite(), 0, 0, 0, share(exponents.infinite())});
  table.row({row.name, "nan", exponents.nan(), 0, 0, 0, share(exponents.nan())});
  if (exponents.nonzero_finite() == 0) return;
  for (int e = *exponents.lowest_exponent(); e <= *exponents.highest_exponent(); ++e) {
    const fp16::ExponentHistogram::Octave& octave = exponents.octave(e);
    table.row(
        {row.name, e, octave.total, octave.powers_of_two, octave.near_next, octave.top, share(octave.total)});
  }
}

const std::vector<std::string> histogram_columns{
    "tensor",          "exponent_log2", "count",        "count_powers_of_two",
    "count_near_next", "count_top",     "share_percent"};

void write_histograms(RunRecord& record, const Findings& found) {
  Table& gradients = record.table("histogram", histogram_columns);
  for (const Pooled* sum : {&found.all_gradients, &found.activation_gradients, &found.weight_gradients})
    write_histogram(gradients, *sum);
  for (const PooledSite& site : found.sites) write_histogram(gradients, site);
  Table& weights = record.table("weights", histogram_columns);
  for (const Pooled* sum : {&found.weights, &found.updates}) write_histogram(weights, *sum);
}

void write_over_training(RunRecord& record, const std::vector<Moment>& moments) {
  Table& table = record.table("over_training", {"step", "quantity", "exponent_log2", "share_percent"});
  Table& shares = record.table(
      "moments", {"step", "training_loss", "quantity", "fraction_zero", "fraction_flushed_at_scale_1",
                  "norm_share_flushed_at_scale_1", "max_abs_log2"});
  for (const Moment& moment : moments) {
    for (const Pooled* gradients : {&moment.activation_gradients, &moment.weight_gradients}) {
      shares.row({moment.step, moment.loss, gradients->name, gradients->fraction_zero(),
                  gradients->fraction_flushed(0), gradients->norm_share_flushed(),
                  gradients->max_abs_log2()});
      const std::optional<int> lowest = gradients->exponents.lowest_exponent();
      if (!lowest) continue;
      for (int e = *lowest - 1; e <= *gradients->exponents.highest_exponent() + 1; ++e)
        table.row({moment.step, gradients->name, e, gradients->percent_at(e)});
    }
  }
}

void write_operations(RunRecord& record, const std::vector<Pooled>& operations) {
  Table& table = record.table(
      "operations", {"operation", "values", "fraction_zero", "fraction_flushed_at_scale_1", "max_abs_log2"});
  for (const Pooled& operation : operations) {
    table.row({operation.name, operation.exponents.total(), operation.fraction_zero(),
               operation.fraction_flushed(0), operation.max_abs_log2()});
  }
}

void write_layers(RunRecord& record, const std::vector<PooledSite>& sites) {
  Table& table = record.table(
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

void write_summary(RunRecord& record, const Findings& found, bool is_classifier) {
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
                   recommended ? Value(p.fraction_flushed(*recommended)) : Value("none"));
  };
  write("", found.all_gradients);
  record.summary("recommended_scale_log2", value_or_none(recommended));
  write("weight_gradients.", found.weight_gradients);
  write("activation_gradients.", found.activation_gradients);
  record.summary("updates.max_abs_log2", found.updates.max_abs_log2());
  record.summary("updates.fraction_below_smallest_subnormal",
                 found.updates.fraction_below_smallest_subnormal());
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
                   const std::string& setting) {
  if (const std::string nonfinite = nonfinite_clause(found.all_gradients.exponents); !nonfinite.empty())
    record.verdict(nonfinite + ": the training itself has diverged.");
  if (const std::optional<int> recommended = found.recommended_scale_log2) {
    record.verdict(flushed_sentence(found.all_gradients, model, *recommended));
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
  sim::Trainer trainer = setup.trainer({.seed = options.training.seed, .threads = run.threads()});
  record_settings(run.record(), "optimizer", trainer.optimizer().name(), trainer.optimizer().options());
  Progress progress =
      run.progress("training in FP32", static_cast<std::size_t>(setup.steps() + options.pool));
  const Findings found = pool_gradients(setup, trainer,
                                        {.steps = setup.steps(),
                                         .pool = options.pool,
                                         .moments = options.moments,
                                         .seed = options.training.seed,
                                         .threads = run.threads()},
                                        progress);
  write_histograms(run.record(), found);
  write_over_training(run.record(), found.moments);
  write_operations(run.record(), found.operations);
  write_layers(run.record(), found.sites);
  write_summary(run.record(), found, setup.model().is_classifier());
  const std::string setting = fmt::format(
      "{}; step {}, {} batch{} pooled, seed {}, S = 1; {}.", setup.description(), setup.steps(), options.pool,
      options.pool == 1 ? "" : "es", options.training.seed, setup.quality(found.evaluation));
  if (options.figure == "paper3") run.record().verdict(draw_paper3(run, found, setup.model_name(), setting));
  if (options.figure == "paper2b")
    run.record().verdict(draw_paper2b(run, found, setup.model_name(), setting));
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
                        {"weight_gradients.*, activation_gradients.*", "the same for one kind of gradient"},
                        {"updates.*", "the same for what one step changes in the weights"},
                        {"paper3_share_flushed_at_scale_<S>",
                         "of all activation gradients, zeros included, become zero at S (--figure paper3)"},
                        {"paper2b_fraction_below_2^-24",
                         "of the non-zero weight gradients over training (--figure paper2b)"},
                        {"test_loss, test_accuracy", "of the trained network, in FP32"}}},
       .options =
           [&](CommandLine& command_line) {
             command_line.add_presets(
                 "--figure", options.figure,
                 {{"exponents", "the model's gradients by exponent", {}},
                  {"paper3",
                   "activation gradients in the layout of figure 3 of Micikevicius et al. (2018), by default "
                   "of",
                   {{"--model", "ssd:normaliser=1"},
                    {"--optimizer", "momentum:weight_decay=5.6e-6"},
                    {"--lr", "1.2"},
                    {"--batch", "32"},
                    {"--steps", "250"}}},
                  {"paper2b",
                   "weight gradients over training, as in their figure 2b, by default of",
                   {{"--model", "lstm:width=256"}, {"--steps", "160"}}}},
                 "what to draw besides");
             options.training.bind(command_line, 30);
             command_line.add("--pool", options.pool, "batches whose gradients are counted together",
                              {.minimum = 1, .maximum = 1000, .quick = 2});
             command_line.add("--moments", options.moments,
                              "moments of training, evenly spaced, whose gradients are drawn as ridges",
                              {.minimum = 1, .maximum = 100, .quick = 3});
           },
       .body = [&](Run& r) { gradient_histogram::run(r, options); }});
}
