/// How much of the gradient does FP16 lose at each loss scale, measured and predicted?
///
/// Trains in FP32, then takes a few batches and, for S = 2^0 .. 2^24, runs the real backward pass of the
/// policy with the loss times S against the twin: the same forward values, differentiated in FP32. Beside it
/// stands what the twin's exponent histogram at S = 1 predicts, which knows of the last rounding only, not of
/// those upstream.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <tuple>

#include "experiments/common/experiment.h"
#include "experiments/common/parallel.h"
#include "experiments/common/recommended_scale.h"
#include "experiments/common/text_table.h"
#include "experiments/common/training_setup.h"
#include "sim/loss_scaling/current_scaling.h"

namespace {

using experiments::percent;

struct Options {
  experiments::TrainingOptions training{.model = "mlp", .steps = 600};
  std::string policy = "amp";
  int pool = 4;
  int max_scale_log2 = 24;
};

/// One batch on the tape with its twin; every scale is measured on it.
struct Probe {
  sim::RecordedStep step;
  sim::SiteGradients twin;
};

/// What all probes together showed at one scale.
struct ScaleResult {
  std::vector<sim::TwinComparison> sites;
  double relative_error = 0;  ///< mean over the probes; not finite when one overflowed
  double cosine = 0;          ///< likewise

  sim::TwinComparison total() const { return sim::total_of(sites); }
  bool overflows() const { return total().nonfinite > 0; }
};

/// Makes the probes, whose tapes refer to it.
struct Recorder {
  const sim::Model& model;
  sim::PrecisionPolicy policy;
  std::uint64_t seed;
  /// Of casts to FP8. A rule with a memory would have nothing to remember at a single batch, and could not be
  /// asked for several scales of the loss at once.
  sim::CurrentScaling cast_scaler{};

  Probe record(sim::Trainer& trainer) {
    Probe probe{
        .step = sim::record_step(model, trainer.state(), trainer.next_batch(), policy,
                                 {.seed = seed, .step = trainer.steps_done(), .tensor_scaler = &cast_scaler}),
        .twin = {}};
    probe.twin = probe.step.tape.backward(probe.step.forward.loss, {.seed = 1, .twin = fp16::binary32});
    return probe;
  }
};

std::vector<Probe> make_probes(sim::Trainer& trainer, Recorder& recorder, int count,
                               experiments::Progress& progress) {
  std::vector<Probe> probes;
  for (int i = 0; i < count; ++i) {
    probes.push_back(recorder.record(trainer));
    experiments::train(trainer, 1, progress);
  }
  return probes;
}

ScaleResult measure(const std::vector<Probe>& probes, float scale) {
  ScaleResult result;
  for (const Probe& probe : probes) {
    const sim::SiteGradients run =
        probe.step.tape.backward(probe.step.forward.loss, {.seed = scale, .count_rounding = true});
    const std::vector<sim::TwinComparison> sites =
        sim::compare_sites(probe.step.tape.sites(), run, probe.twin);
    result.sites.resize(sites.size());
    for (std::size_t i = 0; i < sites.size(); ++i) result.sites[i] += sites[i];
    const sim::TwinComparison total = sim::total_of(sites);
    result.relative_error += total.relative_error() / static_cast<double>(probes.size());
    result.cosine += total.cosine() / static_cast<double>(probes.size());
  }
  return result;
}

/// Indices of scales, by the mean relative error among those without overflow.
struct BestScales {
  std::size_t best;     ///< of the smallest error, the smaller one on a tie
  std::size_t lowest;   ///< from here
  std::size_t highest;  ///< to here, without a gap, the error is within 1 % of the smallest
};

/// None when every scale overflows.
std::optional<BestScales> find_best_scales(const std::vector<ScaleResult>& results) {
  std::optional<std::size_t> best;
  for (std::size_t m = 0; m < results.size(); ++m) {
    if (results[m].overflows()) continue;
    if (!best || results[m].relative_error < results[*best].relative_error) best = m;
  }
  if (!best) return std::nullopt;
  const auto is_as_good = [&](std::size_t m) {
    return !results[m].overflows() && results[m].relative_error <= 1.01 * results[*best].relative_error;
  };
  BestScales found{.best = *best, .lowest = *best, .highest = *best};
  while (found.lowest > 0 && is_as_good(found.lowest - 1)) --found.lowest;
  while (found.highest + 1 < results.size() && is_as_good(found.highest + 1)) ++found.highest;
  return found;
}

/// What all probes at all scales came to.
struct Findings {
  std::vector<ScaleResult> results;  ///< at S = 2^0, 2^1, ...
  std::vector<sim::GradientSite> sites;
  sim::ExponentHistogram predicted;       ///< of the twins
  std::optional<BestScales> best_scales;  ///< none too where the twins are zero
  std::optional<int> recommended_scale_log2;
  sim::Evaluation evaluation;
};

/// Of the tensors that TwinComparison counts: without those of rounding noise.
sim::ExponentHistogram twin_exponents(const std::vector<Probe>& probes, const ScaleResult& result) {
  sim::ExponentHistogram exponents;
  for (const Probe& probe : probes) {
    for (std::size_t i = 0; i < result.sites.size(); ++i) {
      if (!result.sites[i].is_rounding_noise) sim::add_exponents(exponents, probe.twin.gradients[i]);
    }
  }
  return exponents;
}

void write_tables(sim::RunRecord& record, const Findings& found) {
  const std::vector<ScaleResult>& results = found.results;
  const std::vector<sim::GradientSite>& sites = found.sites;
  const sim::ExponentHistogram& predicted = found.predicted;
  sim::Table& sweep = record.table(
      "sweep", {"scale_log2", "fraction_flushed", "fraction_flushed_predicted", "fraction_flushed_at_cast",
                "fraction_subnormal", "fraction_subnormal_predicted", "fraction_overflow",
                "fraction_overflow_predicted", "relative_error", "cosine", "norm_share_flushed"});
  sim::Table& layers =
      record.table("layers", {"scale_log2", "tensor", "kind", "fraction_flushed", "norm_share_flushed",
                              "fraction_overflow", "relative_error", "octaves_alive"});
  const double nonzero = static_cast<double>(std::max<std::uint64_t>(predicted.nonzero_finite(), 1));
  for (std::size_t m = 0; m < results.size(); ++m) {
    const int scale_log2 = static_cast<int>(m);
    const sim::TwinComparison total = results[m].total();
    sweep.row({scale_log2, total.fraction_flushed(),
               static_cast<double>(predicted.flushed_at_scale(scale_log2)) / nonzero,
               total.fraction_flushed_at_cast(), total.fraction_subnormal(),
               static_cast<double>(predicted.subnormal_at_scale(scale_log2)) / nonzero,
               total.fraction_overflow(),
               static_cast<double>(predicted.overflowed_at_scale(scale_log2)) / nonzero,
               results[m].relative_error, results[m].cosine, total.norm_share_flushed()});
    for (std::size_t i = 0; i < sites.size(); ++i) {
      const sim::TwinComparison& site = results[m].sites[i];
      layers.row({scale_log2, sites[i].name, sim::name_of(sites[i].kind), site.fraction_flushed(),
                  site.norm_share_flushed(), site.fraction_overflow(), site.relative_error(),
                  site.octaves_alive()});
    }
  }
}

experiments::Curve curve(std::string_view column, int linetype, bool predicted) {
  return {.table = "sweep",
          .x = "column('scale_log2')",
          .y = fmt::format("column('{0}') > 0 ? 100 * column('{0}') : NaN",
                           std::string(column) + (predicted ? "_predicted" : "")),
          .style = fmt::format("with {} linetype {}", predicted ? "lines" : "points", linetype),
          .title = predicted ? "" : std::string(column.substr(column.find('_') + 1))};
}

constexpr std::string_view scale_label = "log_2 of the loss scale S";

std::size_t last_scale(const std::vector<ScaleResult>& results) {
  return std::max<std::size_t>(results.size() - 1, 1);
}

/// Begins a multiplot whose panels share the axis of scales.
std::string panels_over_scales(const std::vector<ScaleResult>& results) {
  return fmt::format("set multiplot\nset xtics 4\nset xrange [0:{}]\nset xlabel \"{}\"\n",
                     last_scale(results), scale_label);
}

std::string sweep_script(const std::vector<ScaleResult>& results) {
  std::vector<double> norms;
  for (const ScaleResult& result : results) {
    norms.push_back(result.relative_error);
    norms.push_back(result.total().norm_share_flushed());
  }
  constexpr std::array shares{0.0001, 100.0};  // per cent
  std::vector<experiments::Curve> losses;
  int linetype = 0;
  for (const char* column : {"fraction_subnormal", "fraction_flushed", "fraction_overflow"}) {
    losses.push_back(curve(column, ++linetype, false));
    losses.push_back(curve(column, linetype, true));
  }
  return panels_over_scales(results) + experiments::panel(0, 2) + experiments::log_axis(shares) +
         "set ylabel \"share of non-zero values, %\"\n" + experiments::plot(losses) +
         experiments::panel(1, 2) + experiments::log_axis(norms) +
         "set ylabel \"norm relative to the twin's\"\n" +
         experiments::plot({{.table = "sweep",
                             .x = "column('scale_log2')",
                             .y = "column('relative_error')",
                             .style = "with linespoints linetype 4",
                             .title = "error of the gradient"},
                            {.table = "sweep",
                             .x = "column('scale_log2')",
                             .y = "column('norm_share_flushed') > 0 ? column('norm_share_flushed') : NaN",
                             .style = "with linespoints linetype 2",
                             .title = "flushed part of the gradient"}}) +
         "unset multiplot\n";
}

/// Biases are left to the table.
std::vector<sim::GradientSite> drawn_sites(const std::vector<sim::GradientSite>& sites) {
  std::vector<sim::GradientSite> drawn;
  for (const sim::GradientSite::Kind kind :
       {sim::GradientSite::Kind::activation, sim::GradientSite::Kind::weight}) {
    for (const sim::GradientSite& site : sites) {
      if (site.kind == kind && !site.name.ends_with(".bias")) drawn.push_back(site);
    }
  }
  return drawn;
}

std::vector<std::string> names_of(const std::vector<sim::GradientSite>& sites) {
  std::vector<std::string> names;
  for (const sim::GradientSite& site : sites) names.push_back(site.name);
  return names;
}

/// Flushed values above, the part of the norm that went with them below.
std::string layer_panels(const std::vector<sim::GradientSite>& sites, const std::vector<ScaleResult>& results,
                         const experiments::KeyColumn& key) {
  std::vector<double> norms;
  for (const ScaleResult& result : results) {
    for (const sim::TwinComparison& site : result.sites) norms.push_back(100 * site.norm_share_flushed());
  }
  const std::vector<double> shares{0.0001, 100};
  std::string script = panels_over_scales(results);
  int panel = 0;
  for (const auto& [column, label, shown] :
       {std::tuple{"fraction_flushed", "flushed values, %", shares},
        std::tuple{"norm_share_flushed", "flushed part of the norm, %", norms}}) {
    script += experiments::panel(panel, 2) + key.script() + experiments::log_axis(shown) +
              fmt::format("set ylabel \"{}\"\n", label);
    std::vector<experiments::Curve> curves;
    for (const sim::GradientSite& site : sites) {
      const bool weight = site.kind == sim::GradientSite::Kind::weight;
      curves.push_back(
          {.table = "layers",
           .where = experiments::column_is("tensor", site.name) + fmt::format(" && column('{}') > 0", column),
           .x = "column('scale_log2')",
           .y = fmt::format("100 * column('{}')", column),
           .style = fmt::format("with linespoints linetype {} pointsize 0.5{}", curves.size() + 1,
                                weight ? " dashtype 2" : ""),
           .title = panel == 0 ? site.name : ""});
    }
    script += experiments::plot(curves);
    ++panel;
  }
  return script + "unset multiplot\n";
}

experiments::Figure layer_figure(const Findings& found, const std::string& setting) {
  const std::vector<sim::GradientSite> sites = drawn_sites(found.sites);
  experiments::Figure figure{.name = "layers",
                             .title = "What FP16 flushed of each tensor's gradient",
                             .caption = setting,
                             .script = {}};
  if (sites.size() <= experiments::most_curves) {
    const experiments::KeyColumn key(names_of(sites));
    figure.caption += " Gradients of layers' outputs solid, of their weights dashed.";
    figure.script = layer_panels(sites, found.results, key);
    figure.width = key.figure_width();
    figure.height = 640;
    return figure;
  }
  const experiments::HeatMapAxes axes{.tensors = names_of(sites),
                                      .lowest = -0.5,
                                      .highest = static_cast<double>(last_scale(found.results)) + 0.5,
                                      .x_label = std::string(scale_label),
                                      .color_label = "flushed, %"};
  const auto map = [](std::string title, std::string_view column) {
    return experiments::HeatMap{.table = "layers",
                                .title = std::move(title),
                                .x = "column('scale_log2')",
                                .percent = fmt::format("(100 * column('{}'))", column)};
  };
  const std::vector<experiments::HeatMap> maps{map("of the non-zero values", "fraction_flushed"),
                                               map("of the norm", "norm_share_flushed")};
  figure.caption +=
      " From the top the gradients of the layers' outputs, then those of their weights, each in the order of "
      "computation; white where nothing was flushed.";
  figure.script = experiments::heat_maps(maps, axes);
  figure.width = experiments::heat_map_width(axes, maps.size());
  figure.height = experiments::heat_map_height(axes);
  return figure;
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

experiments::TextTable verdict_table(const Findings& found) {
  const std::vector<ScaleResult>& results = found.results;
  experiments::TextTable table{.columns = {"S", "flushed", "at the cast", "of the norm", "subnormal",
                                           "overflow", "relative error", "cosine"},
                               .rows = {}};
  for (std::size_t m = 0; m < results.size(); ++m) {
    const bool shown = m % 4 == 0 || (found.best_scales && m == found.best_scales->best) ||
                       static_cast<int>(m) == found.recommended_scale_log2 || m + 1 == results.size();
    if (!shown) continue;
    const sim::TwinComparison total = results[m].total();
    const bool overflows = results[m].overflows();
    table.rows.push_back({fmt::format("2^{}", m), percent(total.fraction_flushed()),
                          percent(total.fraction_flushed_at_cast()), percent(total.norm_share_flushed()),
                          percent(total.fraction_subnormal()), percent(total.fraction_overflow()),
                          overflows ? "-" : fmt::format("{:.2g}", results[m].relative_error),
                          overflows ? "-" : fmt::format("{:.6f}", results[m].cosine)});
  }
  return table;
}

void write_verdict(sim::RunRecord& record, const Findings& found, const std::string& setting) {
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
  if (found.recommended_scale_log2) record.verdict(recommendation_sentence(found));
  const auto overflowing = std::ranges::find_if(results, &ScaleResult::overflows);
  record.verdict(
      overflowing == results.end()
          ? "No scale of the sweep overflows."
          : fmt::format("From S = 2^{} on gradients overflow, and such a step would have to be skipped.",
                        overflowing - results.begin()));
  record.verdict(verdict_table(found).text());
  record.verdict(setting);
}

void write_summary(sim::RunRecord& record, const Findings& found, bool is_classifier) {
  const auto value = [](const auto& scale) { return scale ? sim::Value(*scale) : sim::Value("none"); };
  const auto scale = [&](std::size_t BestScales::*which) {
    return found.best_scales ? std::optional((*found.best_scales).*which) : std::nullopt;
  };
  const auto write = [&](const std::string& suffix, std::optional<std::size_t> index) {
    const auto add = [&](const std::string& key, auto&& quantity) {
      record.summary(key + suffix, index ? sim::Value(quantity(found.results[*index])) : sim::Value("none"));
    };
    add("flushed_at_", [](const ScaleResult& r) { return r.total().fraction_flushed(); });
    add("flushed_at_cast_at_", [](const ScaleResult& r) { return r.total().fraction_flushed_at_cast(); });
    add("norm_share_flushed_at_", [](const ScaleResult& r) { return r.total().norm_share_flushed(); });
    add("relative_error_at_", [](const ScaleResult& r) { return r.relative_error; });
  };
  record.summary("best_scale_log2", value(scale(&BestScales::best)));
  record.summary("plateau_lowest_log2", value(scale(&BestScales::lowest)));
  record.summary("plateau_highest_log2", value(scale(&BestScales::highest)));
  record.summary("recommended_scale_log2", value(found.recommended_scale_log2));
  write("scale_1", 0);
  write("best_scale", scale(&BestScales::best));
  record.summary("test_loss", found.evaluation.loss);
  if (is_classifier) record.summary("test_accuracy", found.evaluation.accuracy);
}

void draw_figures(experiments::Run& run, const Findings& found, const std::string& setting) {
  run.figure({.name = "sweep",
              .title = "What the loss scale saves and what it breaks",
              .caption = setting +
                         " Points: measured in a real scaled backward pass. Lines: predicted from the "
                         "exponent histogram of the twin's gradients alone.",
              .script = sweep_script(found.results),
              .height = 640});
  run.figure(layer_figure(found, setting));
}

void run(experiments::Run& run, Options& options) {
  const experiments::TrainingSetup setup(options.training);
  Recorder recorder{.model = setup.model(),
                    .policy = sim::make_precision_policy(options.policy),
                    .seed = options.training.seed};
  sim::Trainer trainer = setup.trainer({.seed = options.training.seed});
  experiments::record_settings(run.record(), "optimizer", trainer.optimizer().name(),
                               trainer.optimizer().options());
  const std::size_t scales = static_cast<std::size_t>(options.max_scale_log2) + 1;
  experiments::Progress progress =
      run.progress("sweep", static_cast<std::size_t>(setup.steps() + options.pool) + scales);
  experiments::train(trainer, setup.steps(), progress);
  const std::vector<Probe> probes = make_probes(trainer, recorder, options.pool, progress);
  Findings found{.results = std::vector<ScaleResult>(scales),
                 .sites = probes.front().step.tape.sites(),
                 .predicted = {},
                 .best_scales = {},
                 .recommended_scale_log2 = {},
                 .evaluation = sim::evaluate(setup.model(), setup.dataset(), trainer.state())};
  experiments::parallel_for_each(scales, run.threads(), [&](std::size_t m) {
    found.results[m] = measure(probes, std::ldexp(1.0f, static_cast<int>(m)));
    progress.tick();
  });
  found.predicted = twin_exponents(probes, found.results.front());
  if (found.predicted.nonzero_finite() > 0) found.best_scales = find_best_scales(found.results);
  found.recommended_scale_log2 = experiments::recommended_scale_log2(found.predicted);

  write_tables(run.record(), found);
  write_summary(run.record(), found, setup.model().is_classifier());
  const std::string setting =
      fmt::format("{}, policy {}{}; step {}, {} batches, seed {}; {}.", setup.description(), options.policy,
                  recorder.policy.operands.narrows_per_tensor()
                      ? fmt::format(" with cast scales by {}", recorder.cast_scaler.name())
                      : "",
                  setup.steps(), options.pool, options.training.seed, setup.quality(found.evaluation));
  draw_figures(run, found, setting);
  write_verdict(run.record(), found, setting);
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  return experiments::run(
      argc, argv,
      {.program = {.name = "underflow_sweep",
                   .question =
                       "How much of the gradient does FP16 lose at each loss scale, measured and predicted?",
                   .example = "underflow_sweep --model autoencoder --steps 200 --out results/sweep",
                   .summary_keys =
                       {{"best_scale_log2", "smallest mean relative error without overflow, or \"none\""},
                        {"plateau_lowest_log2, plateau_highest_log2",
                         "the scales around it whose error is within 1 % of the smallest"},
                        {"recommended_scale_log2",
                         "floor(log2(65504 / largest twin gradient)) - 1, or \"none\""},
                        {"flushed_at_scale_1", "twin non-zero and run zero, over the twin's non-zero"},
                        {"flushed_at_best_scale", "the same at the best scale"},
                        {"flushed_at_cast_at_scale_1", "of these, zeroed by their own rounding"},
                        {"norm_share_flushed_at_*", "norm of the flushed values over the twin's norm"},
                        {"relative_error_at_*", "||run/S - twin|| / ||twin||, mean over the batches"},
                        {"test_loss, test_accuracy", "of the trained network, in FP32"}}},
       .options =
           [&](experiments::CommandLine& command_line) {
             options.training.bind(command_line, 30);
             command_line.add_policy(options.policy);
             command_line.add("--pool", options.pool, "batches measured at every scale",
                              {.minimum = 1, .maximum = 100, .quick = 2});
             command_line.add("--max-scale-log2", options.max_scale_log2, "the sweep runs from 2^0 to 2^this",
                              {.minimum = 0, .maximum = 120});
           },
       .body = [&](experiments::Run& r) { run(r, options); }});
}
