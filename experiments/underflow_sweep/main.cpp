/// How much of the gradient does FP16 lose at each loss scale, measured and predicted?
///
/// Trains in FP32, then takes a few batches and, for S = 2^0 .. 2^24, runs the real backward pass of the
/// policy with the loss times S against the twin: the same forward values, differentiated in FP32. Beside it
/// stands what the twin's exponent histogram at S = 1 predicts, which knows of the last rounding only, not of
/// those upstream.

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "experiments/frame/text_table.h"
#include "experiments/training/counted_gradients.h"
#include "experiments/training/glossary.h"
#include "experiments/training/laboratory.h"
#include "experiments/training/options.h"
#include "experiments/training/training_setup.h"
#include "experiments/underflow_sweep/figures.h"
#include "experiments/underflow_sweep/measurement.h"

namespace experiments::underflow_sweep {
namespace {

void write_sweep(RunRecord& record, const Findings& found) {
  Table& table = record.table(
      "sweep",
      {"scale_log2", "fraction_flushed", "fraction_flushed_predicted", "fraction_flushed_at_cast",
       "fraction_lost_upstream", "fraction_subnormal", "fraction_subnormal_predicted", "fraction_overflow",
       "fraction_overflow_predicted", "relative_error", "cosine", "norm_share_flushed"});
  const fp16::ExponentHistogram& twins = found.twin_exponents;
  for (std::size_t m = 0; m < found.results.size(); ++m) {
    const int scale_log2 = static_cast<int>(m);
    const sim::TwinComparison total = found.results[m].total();
    table.row({scale_log2, total.fraction_flushed(),
               share_of_nonzero(twins, twins.flushed_at_scale(scale_log2)), total.fraction_flushed_at_cast(),
               found.results[m].fraction_lost_upstream(), total.fraction_subnormal(),
               share_of_nonzero(twins, twins.subnormal_at_scale(scale_log2)), total.fraction_overflow(),
               share_of_nonzero(twins, twins.overflowed_at_scale(scale_log2)),
               found.results[m].relative_error, found.results[m].cosine, total.norm_share_flushed()});
  }
}

void write_layers(RunRecord& record, const Findings& found) {
  Table& table =
      record.table("layers", {"scale_log2", "tensor", "kind", "fraction_flushed", "fraction_flushed_at_cast",
                              "fraction_lost_upstream", "norm_share_flushed", "fraction_overflow",
                              "relative_error", "octaves_alive"});
  for (std::size_t m = 0; m < found.results.size(); ++m) {
    for (std::size_t i = 0; i < found.sites.size(); ++i) {
      const sim::GradientSite& site = found.sites[i];
      const sim::TwinComparison& loss = found.results[m].sites[i];
      table.row({m, site.name, sim::name_of(site.kind), loss.fraction_flushed(),
                 loss.fraction_flushed_at_cast(), found.results[m].fraction_lost_upstream(i),
                 loss.norm_share_flushed(), loss.fraction_overflow(), loss.relative_error(),
                 loss.octaves_alive()});
    }
  }
}

void write_summary(RunRecord& record, const Findings& found, bool is_classifier) {
  const auto scale = [&](std::size_t BestScales::*which) {
    return found.best_scales ? std::optional((*found.best_scales).*which) : std::nullopt;
  };
  const auto write = [&](const std::string& suffix, std::optional<std::size_t> index) {
    const auto add = [&](const std::string& key, auto&& quantity) {
      record.summary(key + suffix, index ? Value(quantity(found.results[*index])) : Value("none"));
    };
    add("flushed_at_", [](const ScaleResult& r) { return r.total().fraction_flushed(); });
    add("flushed_at_cast_at_", [](const ScaleResult& r) { return r.total().fraction_flushed_at_cast(); });
    add("lost_upstream_at_", [](const ScaleResult& r) { return r.fraction_lost_upstream(); });
    add("norm_share_flushed_at_", [](const ScaleResult& r) { return r.total().norm_share_flushed(); });
    add("relative_error_at_", [](const ScaleResult& r) { return r.relative_error; });
  };
  record.summary("best_scale_log2", value_or_none(scale(&BestScales::best)));
  record.summary("plateau_lowest_log2", value_or_none(scale(&BestScales::lowest)));
  record.summary("plateau_highest_log2", value_or_none(scale(&BestScales::highest)));
  record.summary("recommended_scale_log2", value_or_none(found.recommended_scale_log2));
  write("scale_1", 0);
  write("best_scale", scale(&BestScales::best));
  record.summary("test_loss", found.evaluation.loss);
  if (is_classifier) record.summary("test_accuracy", found.evaluation.accuracy);
}

/// Of what was flushed on the way to gradients that FP16 could have held; empty where nothing was.
std::string upstream_sentence(const Findings& found) {
  const ScaleResult& at_1 = found.results.front();
  if (at_1.fraction_lost_upstream() == 0) return {};
  std::size_t worst = 0;
  for (std::size_t i = 0; i < found.sites.size(); ++i) {
    if (at_1.sites[i].is_rounding_noise) continue;
    if (at_1.fraction_lost_upstream(i) > at_1.fraction_lost_upstream(worst)) worst = i;
  }
  return fmt::format(
      "{} are zero though FP16 could hold them: what they are computed from had been flushed before. That "
      "hits "
      "{} most, {} of it.",
      percent(at_1.fraction_lost_upstream()), found.sites[worst].name,
      percent(at_1.fraction_lost_upstream(worst)));
}

std::string plateau_sentence(const Findings& found) {
  const auto& [best, lowest, highest] = *found.best_scales;
  const double least = found.results[best].relative_error;
  const std::string flushed = percent(found.results[best].total().fraction_flushed());
  if (lowest == highest)
    return fmt::format(
        "The least error, {:.2g}, is that of S = 2^{}, with {} flushed; no scale beside it is "
        "within 1 % of it.",
        least, best, flushed);
  return fmt::format(
      "2^{} .. 2^{} are within 1 % of the least error, {:.2g}; at 2^{}, where it was found, {} "
      "are flushed.",
      lowest, highest, least, best, flushed);
}

/// The rule looks at the largest gradient alone; what the sweep says of that scale stands beside it.
std::string recommendation_sentence(const Findings& found) {
  const int recommended = *found.recommended_scale_log2;
  std::string text = fmt::format(
      "The recommended scale, which leaves the largest gradient an octave below 65504, is 2^{}", recommended);
  if (recommended < 0 || static_cast<std::size_t>(recommended) >= found.results.size())
    return text + ", outside of this sweep.";
  const ScaleResult& result = found.results[static_cast<std::size_t>(recommended)];
  return text + (result.overflows()
                     ? ": there gradients overflow on their way."
                     : fmt::format(": there the error is {:.2g} and {} are flushed.", result.relative_error,
                                   percent(result.total().fraction_flushed())));
}

TextTable verdict_table(const Findings& found) {
  const std::vector<ScaleResult>& results = found.results;
  TextTable table{
      .columns = {"S", "flushed", "at the cast", "upstream", "of the norm", "subnormal", "overflow",
                  "relative error", "cosine"},
      .rows = {},
      .notes = {"at the cast: those of the flushed that their own rounding to FP16 made zero.",
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
  return table;
}

/// Which scales are good ones and which are not; of twins that are finite.
void write_scales_verdict(RunRecord& record, const Findings& found) {
  const std::vector<ScaleResult>& results = found.results;
  const sim::TwinComparison at_1 = results.front().total();
  if (found.best_scales) {
    record.verdict(fmt::format(
        "At S = 1, {} of the non-zero gradients are flushed and the gradient's relative error is {:.2g}. {}",
        percent(at_1.fraction_flushed()), results.front().relative_error, plateau_sentence(found)));
  } else {
    record.verdict(at_1.nonzero == 0 ? "The twin has no non-zero gradient: there is nothing for FP16 to lose."
                                     : "Every scale of the sweep overflows: none is a good one.");
  }
  if (const std::string sentence = upstream_sentence(found); !sentence.empty())
    record.verdict("At S = 1, " + sentence);
  if (found.recommended_scale_log2) record.verdict(recommendation_sentence(found));
  const auto overflowing = std::ranges::find_if(results, &ScaleResult::overflows);
  record.verdict(
      overflowing == results.end()
          ? "No scale of the sweep overflows."
          : fmt::format("From S = 2^{} on gradients overflow, and such a step would have to be skipped.",
                        overflowing - results.begin()));
}

void write_verdict(RunRecord& record, const Findings& found, const std::string& setting) {
  if (const std::string nonfinite = nonfinite_clause(found.twin_exponents); !nonfinite.empty()) {
    record.verdict(nonfinite + ": the training itself has diverged, or the policy's forward pass overflows.");
  } else {
    write_scales_verdict(record, found);
  }
  record.verdict(verdict_table(found).text());
  record.verdict(setting);
}

void run(Run& run, Options& options) {
  const TrainingSetup setup(options.training);
  sim::Trainer trainer = setup.trainer({.seed = options.training.seed, .threads = run.threads()});
  record_settings(run.record(), "optimizer", trainer.optimizer().name(), trainer.optimizer().options());
  const Findings found = measure(setup, trainer, options, run);
  write_sweep(run.record(), found);
  write_layers(run.record(), found);
  write_summary(run.record(), found, setup.model().is_classifier());
  const std::string setting =
      fmt::format("{}, {}; step {}, {} batch{}, seed {}; {}.", setup.description(),
                  policy_description(options.policy), setup.steps(), options.pool,
                  options.pool == 1 ? "" : "es", options.training.seed, setup.quality(found.evaluation));
  draw_figures(run, found, setting);
  write_verdict(run.record(), found, setting);
}

}  // namespace
}  // namespace experiments::underflow_sweep

int main(int argc, char** argv) {
  using namespace experiments;
  underflow_sweep::Options options;
  return run(
      argc, argv,
      {.program =
           {.name = "underflow_sweep",
            .question = "How much of the gradient does FP16 lose at each loss scale, measured and predicted?",
            .example = "underflow_sweep --model autoencoder --steps 200 --out results/sweep",
            .summary_keys =
                {{"best_scale_log2", "smallest mean relative error without overflow, or \"none\""},
                 {"plateau_lowest_log2, plateau_highest_log2",
                  "the scales around it whose error is within 1 % of the smallest"},
                 {"recommended_scale_log2", "floor(log2(65504 / largest twin gradient)) - 1, or \"none\""},
                 {"flushed_at_scale_1", "twin non-zero and run zero, over the twin's non-zero"},
                 {"flushed_at_best_scale", "the same at the best scale"},
                 {"flushed_at_cast_at_scale_1", "of these, zeroed by their own rounding"},
                 {"lost_upstream_at_*", "zero though S times the twin's would not round to zero, likewise"},
                 {"norm_share_flushed_at_*", "norm of the flushed values over the twin's norm"},
                 {"relative_error_at_*", "||run/S - twin|| / ||twin||, mean over the batches"},
                 {"test_loss, test_accuracy", "of the trained network, in FP32"}}},
       .options =
           [&](CommandLine& command_line) {
             options.training.bind(command_line, 30);
             add_policy(command_line, options.policy);
             command_line.add("--pool", options.pool, "batches measured at every scale",
                              {.minimum = 1, .maximum = 100, .quick = 2});
             command_line.add("--max-scale-log2", options.max_scale_log2, "the sweep runs from 2^0 to 2^this",
                              {.minimum = 0, .maximum = 120});
           },
       .body = [&](Run& r) { underflow_sweep::run(r, options); }});
}
