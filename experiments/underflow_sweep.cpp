/// How much of the gradient does FP16 lose at each loss scale, measured and predicted?
///
/// Trains in FP32, then takes a few batches and, for S = 2^0 .. 2^24, runs the real backward pass of the
/// policy with the loss times S against the twin: the same forward values, differentiated in FP32. Beside it
/// stands what the twin's exponent histogram at S = 1 predicts, which knows of the last rounding only, not of
/// those upstream.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "experiments/common/experiment.h"
#include "experiments/common/parallel.h"
#include "experiments/common/text_table.h"
#include "experiments/common/training_setup.h"
#include "sim/loss_scaling/registry.h"

namespace {

using experiments::percent;

struct Options {
  experiments::TrainingOptions training{.model = "mlp", .steps = 750};
  std::string policy = "amp";
  int pool = 4;
  int max_scale_log2 = 24;
};

/// One batch on the tape with its twin; every scale is measured on it.
struct Probe {
  sim::RecordedStep step;
  sim::SiteGradients twin;
  sim::ExponentHistogram twin_exponents;
};

/// What all probes together showed at one scale.
struct ScaleResult {
  std::vector<sim::TwinComparison> sites;
  double relative_error = 0;  ///< mean over the probes; not finite when one overflowed
  double cosine = 0;          ///< likewise

  sim::TwinComparison total() const { return sim::total_of(sites); }
  bool overflows() const { return total().nonfinite > 0; }
};

std::vector<Probe> make_probes(sim::Trainer& trainer, const experiments::TrainingSetup& setup,
                               const Options& options, experiments::Progress& progress) {
  for (int step = 0; step < options.training.steps; ++step) {
    trainer.step();
    progress.tick();
  }
  std::vector<Probe> probes;
  for (int sample = 0; sample < options.pool; ++sample) {
    Probe probe{.step = sim::record_step(setup.model(), trainer.parameters(), trainer.weights(),
                                         trainer.next_batch(), sim::find_precision_policy(options.policy)),
                .twin = {},
                .twin_exponents = {}};
    probe.twin = probe.step.tape.backward(
        probe.step.forward.loss,
        {.seed = 1, .twin = &sim::find_precision_policy("fp32"), .count_rounding = false});
    for (const sim::Tensor& gradient : probe.twin.gradients)
      sim::add_exponents(probe.twin_exponents, gradient);
    probes.push_back(std::move(probe));
    trainer.step();
    progress.tick();
  }
  return probes;
}

ScaleResult measure(const std::vector<Probe>& probes, float scale) {
  ScaleResult result;
  for (const Probe& probe : probes) {
    const sim::SiteGradients run = probe.step.tape.backward(
        probe.step.forward.loss, {.seed = scale, .twin = nullptr, .count_rounding = true});
    const std::vector<sim::TwinComparison> sites = sim::compare_sites(run, scale, probe.twin);
    result.sites.resize(sites.size());
    for (std::size_t i = 0; i < sites.size(); ++i) result.sites[i] += sites[i];
    const sim::TwinComparison total = sim::total_of(sites);
    result.relative_error += total.relative_error() / static_cast<double>(probes.size());
    result.cosine += total.cosine() / static_cast<double>(probes.size());
  }
  return result;
}

/// The scale of the smallest mean relative error among those without overflow, the smaller one on a tie.
std::optional<std::size_t> best_scale(const std::vector<ScaleResult>& results) {
  std::optional<std::size_t> best;
  for (std::size_t m = 0; m < results.size(); ++m) {
    if (results[m].overflows()) continue;
    if (!best || results[m].relative_error < results[*best].relative_error) best = m;
  }
  return best;
}

void write_tables(sim::RunRecord& record, const std::vector<ScaleResult>& results,
                  const std::vector<sim::GradientSite>& sites, const sim::ExponentHistogram& predicted) {
  sim::Table& sweep = record.table(
      "sweep", {"scale_log2", "fraction_flushed", "fraction_flushed_predicted", "fraction_flushed_at_cast",
                "fraction_subnormal", "fraction_subnormal_predicted", "fraction_overflow",
                "fraction_overflow_predicted", "relative_error", "cosine", "norm_share_flushed"});
  sim::Table& layers =
      record.table("layers", {"scale_log2", "tensor", "kind", "fraction_flushed", "norm_share_flushed",
                              "fraction_overflow", "relative_error", "octaves_alive_at_scale_1"});
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

constexpr std::string_view sweep_script = R"(set multiplot layout 2,1
set key outside right top
set xtics 4
set yrange [0:*]
set ylabel "share of non-zero values, %"
plot "sweep.csv" using "scale_log2":(100*column("fraction_flushed")) with points linetype 2 title "flushed", \
  "" using "scale_log2":(100*column("fraction_flushed_predicted")) with lines linetype 2 title "flushed, predicted", \
  "" using "scale_log2":(100*column("fraction_subnormal")) with points linetype 5 title "subnormal", \
  "" using "scale_log2":(100*column("fraction_subnormal_predicted")) with lines linetype 5 title "subnormal, predicted", \
  "" using "scale_log2":(100*column("fraction_overflow")) with points linetype 7 title "overflow", \
  "" using "scale_log2":(100*column("fraction_overflow_predicted")) with lines linetype 7 title "overflow, predicted"
set logscale y 10
set format y "10^{%T}"
set yrange [*:*]
set xlabel "log_2 of the loss scale S"
set ylabel "relative error of the gradient"
plot "sweep.csv" using "scale_log2":"relative_error" with linespoints linetype 1 title "against the twin", \
  "" using "scale_log2":(column("norm_share_flushed") > 0 ? column("norm_share_flushed") : NaN) with linespoints linetype 4 title "norm flushed"
unset multiplot
)";

std::string layer_script(const std::vector<sim::GradientSite>& sites) {
  std::string script =
      "set key outside right top\nset xtics 4\nset yrange [0:100]\nset xlabel \"log_2 of the loss scale S\"\n"
      "set ylabel \"norm of the tensor's gradient that was flushed, %\"\nplot ";
  for (std::size_t i = 0; i < sites.size(); ++i) {
    script += fmt::format(
        "{}\"layers.csv\" using (strcol(\"tensor\") eq \"{}\" ? column(\"scale_log2\") : "
        "NaN):(100*column(\"norm_share_flushed\")) with linespoints {} title \"{}\"",
        i == 0 ? "" : ", ", sites[i].name,
        sites[i].kind == sim::GradientSite::Kind::weight ? "dashtype 2" : "dashtype 1", sites[i].name);
  }
  return script + "\n";
}

void write_verdict(sim::RunRecord& record, const std::vector<ScaleResult>& results,
                   std::optional<std::size_t> best, const std::string& setting) {
  const sim::TwinComparison at_1 = results.front().total();
  if (best) {
    const sim::TwinComparison at_best = results[*best].total();
    record.verdict(
        fmt::format("At S = 1 {} of the non-zero gradients are flushed and the gradient's relative error is "
                    "{:.2g}; at the best "
                    "scale, 2^{}, {} and {:.2g}.",
                    percent(at_1.fraction_flushed()), results.front().relative_error, *best,
                    percent(at_best.fraction_flushed()), results[*best].relative_error));
  } else {
    record.verdict(
        "Every scale of the sweep overflows: there is no scale that FP16 can hold these gradients at.");
  }
  const auto overflowing = std::ranges::find_if(results, &ScaleResult::overflows);
  record.verdict(
      overflowing == results.end()
          ? "No scale of the sweep overflows."
          : fmt::format("From S = 2^{} on gradients overflow, and such a step would have to be skipped.",
                        overflowing - results.begin()));
  experiments::TextTable table{.columns = {"S", "flushed", "at the cast", "of the norm", "subnormal",
                                           "overflow", "relative error", "cosine"},
                               .rows = {}};
  for (std::size_t m = 0; m < results.size(); ++m) {
    const bool shown = m % 4 == 0 || m == best || m + 1 == results.size();
    if (!shown) continue;
    const sim::TwinComparison total = results[m].total();
    const bool overflows = results[m].overflows();
    table.rows.push_back({fmt::format("2^{}", m), percent(total.fraction_flushed()),
                          percent(total.fraction_flushed_at_cast()), percent(total.norm_share_flushed()),
                          percent(total.fraction_subnormal()), percent(total.fraction_overflow()),
                          overflows ? "-" : fmt::format("{:.2g}", results[m].relative_error),
                          overflows ? "-" : fmt::format("{:.6f}", results[m].cosine)});
  }
  record.verdict(table.text());
  record.verdict(setting);
}

void run(experiments::Run& run, const Options& options) {
  const experiments::TrainingSetup setup(options.training);
  sim::Trainer trainer = setup.trainer("fp32", sim::make_scaler("none"), options.training.seed);
  std::vector<ScaleResult> results(static_cast<std::size_t>(options.max_scale_log2) + 1);
  experiments::Progress progress =
      run.progress("sweep", static_cast<std::size_t>(options.training.steps + options.pool) + results.size());
  const std::vector<Probe> probes = make_probes(trainer, setup, options, progress);
  const sim::Evaluation evaluation = sim::evaluate(setup.model(), setup.dataset(), trainer.weights());

  experiments::parallel_for_each(results.size(), run.threads(), [&](std::size_t m) {
    results[m] = measure(probes, std::ldexp(1.0f, static_cast<int>(m)));
    progress.tick();
  });
  sim::ExponentHistogram predicted;
  for (const Probe& probe : probes) predicted += probe.twin_exponents;

  const std::vector<sim::GradientSite>& sites = probes.front().step.tape.sites();
  write_tables(run.record(), results, sites, predicted);

  const std::optional<std::size_t> best = best_scale(results);
  const ScaleResult& at_best = results[best.value_or(0)];
  sim::RunRecord& record = run.record();
  record.summary("best_scale_log2", best ? sim::Value(*best) : sim::Value("none"));
  record.summary("flushed_at_scale_1", results.front().total().fraction_flushed());
  record.summary("flushed_at_best_scale", at_best.total().fraction_flushed());
  record.summary("flushed_at_cast_at_scale_1", results.front().total().fraction_flushed_at_cast());
  record.summary("norm_share_flushed_at_scale_1", results.front().total().norm_share_flushed());
  record.summary("norm_share_flushed_at_best_scale", at_best.total().norm_share_flushed());
  record.summary("relative_error_at_scale_1", results.front().relative_error);
  record.summary("relative_error_at_best_scale", at_best.relative_error);
  record.summary("test_loss", evaluation.loss);
  record.summary("test_accuracy", evaluation.accuracy);

  const std::string setting =
      fmt::format("{}, policy {}; step {}, {} batches, seed {}; {}.", setup.description(), options.policy,
                  options.training.steps, options.pool, options.training.seed, setup.quality(evaluation));
  run.figure({.name = "sweep",
              .title = "What the loss scale saves and what it breaks",
              .caption = setting +
                         " Points: measured in a real scaled backward pass. Lines: predicted from the "
                         "exponent histogram of the twin's gradients alone.",
              .script = std::string(sweep_script),
              .height = 640});
  run.figure({.name = "layers",
              .title = "Share of each tensor's gradient norm that FP16 flushed",
              .caption = setting + " Activation gradients solid, weight gradients dashed.",
              .script = layer_script(sites)});
  write_verdict(record, results, best, setting);
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  return experiments::run(
      argc, argv,
      {.program =
           {.name = "underflow_sweep",
            .question = "How much of the gradient does FP16 lose at each loss scale, measured and predicted?",
            .example = "underflow_sweep --model autoencoder --steps 200 --out results/sweep",
            .summary_keys = {{"best_scale_log2", "smallest mean relative error without overflow"},
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
                              {.minimum = 1, .maximum = 1000, .quick = 2});
             command_line.add("--max-scale-log2", options.max_scale_log2, "the sweep runs from 2^0 to 2^this",
                              {.minimum = 0, .maximum = 120});
           },
       .body = [&](experiments::Run& r) { run(r, options); }});
}
