/// Where do a network's gradients lie, and which of them can FP16 hold?
///
/// Trains in FP32, pools the gradients of a few batches late in training, and counts them by binary exponent.
/// The gradients are those of the FP32 run; what FP16 would make of them is their cast.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "experiments/common/experiment.h"
#include "experiments/common/text_table.h"
#include "experiments/common/training_setup.h"
#include "sim/loss_scaling/registry.h"
#include "sim/statistics/cast_counts.h"

namespace {

using experiments::percent;
using sim::ExponentHistogram;
using sim::GradientSite;

struct Options {
  experiments::TrainingOptions training{.model = "mlp", .steps = 750};
  int pool = 4;
};

/// The pooled gradients of one site, or of several together.
struct Pooled {
  std::string name;
  GradientSite::Kind kind = GradientSite::Kind::weight;
  ExponentHistogram exponents = {};
  sim::CastCounts cast_at_scale_1 = {};
  double square = 0;          ///< sum of g^2, in the order of the values
  double flushed_square = 0;  ///< the same where |g| <= 2^-25

  void add(std::span<const float> gradients) {
    exponents.add(gradients);
    cast_at_scale_1 += sim::count_casts(gradients, 0);
    for (const float g : gradients) {
      const double squared = static_cast<double>(g) * g;
      square += squared;
      flushed_square += std::fabs(g) <= 0x1p-25f ? squared : 0;
    }
  }

  Pooled& operator+=(const Pooled& other) {
    exponents += other.exponents;
    cast_at_scale_1 += other.cast_at_scale_1;
    square += other.square;
    flushed_square += other.flushed_square;
    return *this;
  }

  double share_of_nonzero(std::uint64_t count) const {
    const std::uint64_t nonzero = exponents.nonzero_finite();
    return nonzero == 0 ? 0 : static_cast<double>(count) / static_cast<double>(nonzero);
  }
  double fraction_zero() const {
    return static_cast<double>(exponents.zero()) / static_cast<double>(exponents.total());
  }
  double fraction_flushed(int log2_scale) const {
    return share_of_nonzero(exponents.flushed_at_scale(log2_scale));
  }
  double fraction_overflow(int log2_scale) const {
    return share_of_nonzero(exponents.overflowed_at_scale(log2_scale));
  }
  double fraction_below_smallest_subnormal() const {
    std::uint64_t count = 0;
    for (int e = ExponentHistogram::min_exponent; e < -24; ++e) count += exponents.octave(e).total;
    return share_of_nonzero(count);
  }
  double norm_share_flushed() const { return square == 0 ? 0 : std::sqrt(flushed_square / square); }
  double max_abs_log2() const { return std::log2(exponents.max_abs()); }
  /// Octaves between the largest gradient and 2^-25, where nearest-even reaches zero.
  double octaves_alive() const { return max_abs_log2() + 25; }
};

/// Trains in FP32 and pools the gradients of the last batches, site by site.
std::vector<Pooled> pool_gradients(sim::Trainer& trainer, const experiments::TrainingSetup& setup,
                                   const Options& options, experiments::Progress& progress) {
  for (int step = 0; step < options.training.steps; ++step) {
    trainer.step();
    progress.tick();
  }
  std::vector<Pooled> sites;
  for (int sample = 0; sample < options.pool; ++sample) {
    const auto [tape, forward] = sim::record_step(setup.model(), trainer.parameters(), trainer.weights(),
                                                  trainer.next_batch(), sim::find_precision_policy("fp32"));
    const sim::SiteGradients gradients = tape.backward(forward.loss, {});
    sites.resize(tape.sites().size());
    for (std::size_t i = 0; i < sites.size(); ++i) {
      sites[i].name = tape.sites()[i].name;
      sites[i].kind = tape.sites()[i].kind;
      sites[i].add(gradients.gradients[i].elements<float>());
    }
    trainer.step();
    progress.tick();
  }
  return sites;
}

Pooled sum_of(const std::vector<Pooled>& sites, std::string name, auto&& wanted) {
  Pooled sum{.name = std::move(name)};
  for (const Pooled& site : sites) {
    if (wanted(site)) sum += site;
  }
  return sum;
}

void write_histogram(sim::RunRecord& record, const std::vector<Pooled>& rows,
                     const std::vector<std::string>& kinds) {
  sim::Table& table = record.table("histogram", {"tensor", "kind", "exponent_log2", "count",
                                                 "count_powers_of_two", "count_top", "share_percent"});
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const Pooled& row = rows[i];
    const double total = static_cast<double>(row.exponents.total());
    const auto share = [total](std::uint64_t count) { return 100 * static_cast<double>(count) / total; };
    table.row({row.name, kinds[i], "zero", row.exponents.zero(), 0, 0, share(row.exponents.zero())});
    table.row(
        {row.name, kinds[i], "infinite", row.exponents.infinite(), 0, 0, share(row.exponents.infinite())});
    table.row({row.name, kinds[i], "nan", row.exponents.nan(), 0, 0, share(row.exponents.nan())});
    if (row.exponents.nonzero_finite() == 0) continue;
    for (int e = *row.exponents.lowest_exponent(); e <= *row.exponents.highest_exponent(); ++e) {
      const ExponentHistogram::Octave& octave = row.exponents.octave(e);
      table.row({row.name, kinds[i], e, octave.total, octave.powers_of_two, octave.top, share(octave.total)});
    }
  }
}

void write_layers(sim::RunRecord& record, const std::vector<Pooled>& sites) {
  sim::Table& table =
      record.table("layers", {"tensor", "kind", "values", "fraction_zero",
                              "fraction_below_smallest_subnormal", "fraction_flushed_at_scale_1",
                              "fraction_subnormal_at_scale_1", "fraction_overflow_at_scale_1",
                              "norm_share_flushed_at_scale_1", "max_abs_log2", "octaves_alive"});
  for (const Pooled& site : sites) {
    table.row({site.name, sim::name_of(site.kind), site.exponents.total(), site.fraction_zero(),
               site.fraction_below_smallest_subnormal(), site.fraction_flushed(0),
               site.share_of_nonzero(site.cast_at_scale_1.subnormal), site.fraction_overflow(0),
               site.norm_share_flushed(), site.max_abs_log2(), site.octaves_alive()});
  }
}

void write_summary(sim::RunRecord& record, const Pooled& all, const Pooled& weights,
                   const Pooled& activations, int recommended, const sim::Evaluation& evaluation) {
  const auto write = [&](const std::string& prefix, const Pooled& p) {
    record.summary(prefix + "values_total", p.exponents.total());
    record.summary(prefix + "fraction_zero", p.fraction_zero());
    record.summary(prefix + "fraction_below_smallest_subnormal", p.fraction_below_smallest_subnormal());
    record.summary(prefix + "fraction_flushed_at_scale_1", p.fraction_flushed(0));
    record.summary(prefix + "fraction_subnormal_at_scale_1", p.share_of_nonzero(p.cast_at_scale_1.subnormal));
    record.summary(prefix + "fraction_overflow_at_scale_1", p.fraction_overflow(0));
    record.summary(prefix + "norm_share_flushed_at_scale_1", p.norm_share_flushed());
    record.summary(prefix + "max_abs_log2", p.max_abs_log2());
    record.summary(prefix + "fraction_flushed_at_recommended_scale", p.fraction_flushed(recommended));
  };
  write("", all);
  record.summary("recommended_scale_log2", recommended);
  write("weights.", weights);
  write("activations.", activations);
  record.summary("test_loss", evaluation.loss);
  record.summary("test_accuracy", evaluation.accuracy);
}

/// Exact zeros in a narrow panel of their own scale, beside them the non-zero values by exponent, zones of
/// FP16 shaded.
std::string histogram_rows(const std::vector<const Pooled*>& rows, double lowest) {
  std::string script = "set multiplot\nset style fill solid 1.0\nset boxwidth 0.9\n";
  const double height = 1.0 / static_cast<double>(rows.size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const Pooled& row = *rows[i];
    double peak = 0;
    for (int e = ExponentHistogram::min_exponent; e <= ExponentHistogram::max_exponent; ++e) {
      peak = std::max(peak, static_cast<double>(row.exponents.octave(e).total));
    }
    peak *= 100 / static_cast<double>(row.exponents.total());
    const double bottom = 1 - height * static_cast<double>(i + 1);
    const std::string filter = fmt::format("(strcol(\"tensor\") eq \"{}\" ? {{}} : NaN)", row.name);
    script += fmt::format(
        "set bmargin at screen {0}\nset tmargin at screen {1}\nunset key\n"
        "unset object\nunset arrow\nunset label\n"
        "set lmargin at screen 0.08\nset rmargin at screen 0.17\n"
        "set xrange [-1:1]\nset yrange [0:100]\nset xtics (\"exact 0\" 0)\nset ytics 25\nset xlabel \"\"\n"
        "set ylabel \"share of all values, %\"\nset grid noxtics\n"
        "set label 1 \"{3}\" at 0, {4} center offset 0,0.6\n"
        "set label 2 \"{2}\" at graph 0,1.10 left font \",15\"\n"
        "plot \"histogram.csv\" using ({5}):(strcol(\"exponent_log2\") eq \"zero\" ? "
        "column(\"share_percent\") : NaN) "
        "with boxes linecolor rgb grey\n",
        bottom + 0.10, bottom + height - 0.085, row.name, percent(row.fraction_zero()),
        100 * row.fraction_zero(), fmt::format(fmt::runtime(filter), "0"));
    script += fmt::format(
        "unset label\nset lmargin at screen 0.22\nset rmargin at screen 0.98\n"
        "set xrange [{}:16]\nset yrange [0:{}]\nset xtics 4\nset ytics autofreq\nset ylabel \"\"\nset grid "
        "xtics\n"
        "set xlabel \"{}\" offset 0,0.3\n",
        lowest, 1.35 * peak, i + 1 == rows.size() ? "binary exponent of |gradient|, floor(log_2 |g|)" : "");
    script += experiments::zones({{lowest, -25, "zero in FP16", "vermillion"},
                                  {-25, -14, "FP16 subnormal", "orange"},
                                  {-14, 16, "FP16 normal range", "green"}});
    script += experiments::marks({{.x = -24, .label = "2^{-24}: smallest subnormal", .label_height = 0.80},
                                  {.x = -25,
                                   .label = "2^{-25}: nearest-even zero",
                                   .label_height = 0.80,
                                   .side = experiments::Mark::Side::left}});
    script += fmt::format(
        "plot \"histogram.csv\" using ({}):(column(\"share_percent\")) with boxes linecolor rgb blue\n",
        fmt::format(fmt::runtime(filter), "column(\"exponent_log2\") + 0.5"));
  }
  return script + "unset multiplot\n";
}

double figure_left_edge(const Pooled& all) {
  const double total = static_cast<double>(all.exponents.total());
  int e = ExponentHistogram::min_exponent;
  for (double share = 0; e < -30; ++e) {  // leave out less than one value in a thousand
    share += static_cast<double>(all.exponents.octave(e).total) / total;
    if (share > 0.001) break;
  }
  return e - 1;
}

std::string layer_figure(const std::vector<Pooled>& sites, double lowest) {
  std::string script = fmt::format(
      "set xrange [{}:16]\nset xtics 4\nset yrange [0:*]\nset key outside right top\n"
      "set xlabel \"binary exponent of |gradient|, floor(log_2 |g|)\"\n"
      "set ylabel \"share of the tensor's values, %\"\n",
      lowest);
  script +=
      experiments::zones({{lowest, -25, "", "vermillion"}, {-25, -14, "", "orange"}, {-14, 16, "", "green"}});
  script += "plot ";
  for (std::size_t i = 0; i < sites.size(); ++i) {
    script += fmt::format(
        "{}\"histogram.csv\" using (strcol(\"tensor\") eq \"{}\" ? column(\"exponent_log2\") + 0.5 : "
        "NaN):(column(\"share_percent\")) with linespoints {} title \"{}\"",
        i == 0 ? "" : ", ", sites[i].name,
        sites[i].kind == GradientSite::Kind::weight ? "dashtype 2" : "dashtype 1", sites[i].name);
  }
  return script + "\n";
}

void run(experiments::Run& run, const Options& options) {
  const experiments::TrainingSetup setup(options.training);
  sim::Trainer trainer = setup.trainer("fp32", sim::make_scaler("none"), options.training.seed);
  experiments::Progress progress =
      run.progress("training in FP32", static_cast<std::size_t>(options.training.steps + options.pool));
  const std::vector<Pooled> sites = pool_gradients(trainer, setup, options, progress);
  const sim::Evaluation evaluation = sim::evaluate(setup.model(), setup.dataset(), trainer.weights());

  const Pooled weights =
      sum_of(sites, "weight gradients", [](const Pooled& s) { return s.kind == GradientSite::Kind::weight; });
  const Pooled activations = sum_of(sites, "activation gradients",
                                    [](const Pooled& s) { return s.kind == GradientSite::Kind::activation; });
  const Pooled all = sum_of(sites, "all gradients", [](const Pooled&) { return true; });
  if (all.exponents.nonzero_finite() == 0 || all.exponents.infinite() + all.exponents.nan() > 0) {
    throw std::runtime_error("the FP32 run has no finite non-zero gradients left; lower --lr or --steps");
  }
  const int recommended = *all.exponents.log2_headroom() - 1;

  std::vector<Pooled> rows{all, activations, weights};
  std::vector<std::string> kinds{"all", "activation", "weight"};
  for (const Pooled& site : sites) {
    rows.push_back(site);
    kinds.emplace_back(sim::name_of(site.kind));
  }
  write_histogram(run.record(), rows, kinds);
  write_layers(run.record(), sites);
  write_summary(run.record(), all, weights, activations, recommended, evaluation);

  const std::string setting =
      fmt::format("{}; step {}, {} batches pooled, seed {}, S = 1; {}.", setup.description(),
                  options.training.steps, options.pool, options.training.seed, setup.quality(evaluation));
  const double lowest = figure_left_edge(all);
  run.figure(
      {.name = "gradient_histogram",
       .title = fmt::format("Gradients of {} by magnitude", setup.model_name()),
       .caption = fmt::format("{} {} of all values are exact zeros; of the others {} round to zero in FP16. "
                              "FP16's range reaches to 2^16: all of it right of the bars stays unused.",
                              setting, percent(all.fraction_zero()), percent(all.fraction_flushed(0))),
       .script = histogram_rows({&activations, &weights}, lowest),
       .height = 640});
  run.figure({.name = "layers",
              .title = fmt::format("Gradients of {}, tensor by tensor", setup.model_name()),
              .caption = setting + " Activation gradients solid, weight gradients dashed. Zones as above.",
              .script = layer_figure(sites, lowest)});

  if (all.cast_at_scale_1.flushed != all.exponents.flushed_at_scale(0) ||
      all.cast_at_scale_1.overflowed != all.exponents.overflowed_at_scale(0)) {
    run.fail("the histogram's prediction differs from the values' cast to FP16");
  }

  const auto weakest = std::ranges::min_element(
      sites, {}, [](const Pooled& s) { return s.exponents.max_abs() > 0 ? s.octaves_alive() : 1000.0; });
  run.record().verdict(fmt::format(
      "{} of the non-zero gradients of {} round to zero in FP16 without loss scaling ({} of their norm); "
      "multiplied by 2^{} {} do.",
      percent(all.fraction_flushed(0)), setup.model_name(), percent(all.norm_share_flushed()), recommended,
      percent(all.fraction_flushed(recommended))));
  run.record().verdict(
      fmt::format("The tensor nearest to vanishing is {}: its largest gradient is 2^{:.1f}, {:.1f} octaves "
                  "above the 2^-25 where "
                  "nearest-even rounding reaches zero.",
                  weakest->name, weakest->max_abs_log2(), weakest->octaves_alive()));
  experiments::TextTable table{
      .columns = {"gradients", "values", "exact zeros", "flushed S=1", "of the norm", "subnormal S=1",
                  "largest", fmt::format("flushed S=2^{}", recommended)},
      .rows = {}};
  for (const Pooled* p : {&activations, &weights, &all}) {
    table.rows.push_back({p->name, fmt::format("{}", p->exponents.total()), percent(p->fraction_zero()),
                          percent(p->fraction_flushed(0)), percent(p->norm_share_flushed()),
                          percent(p->share_of_nonzero(p->cast_at_scale_1.subnormal)),
                          fmt::format("2^{:.1f}", p->max_abs_log2()),
                          percent(p->fraction_flushed(recommended))});
  }
  run.record().verdict(table.text());
  run.record().verdict(setting);
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  return experiments::run(
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
                        {"recommended_scale_log2", "floor(log2(65504 / largest)) - 1"},
                        {"fraction_flushed_at_recommended_scale", "become zero at that scale"},
                        {"weights.*, activations.*", "the same for one kind of gradient"},
                        {"test_loss, test_accuracy", "of the trained network, in FP32"}}},
       .options =
           [&](experiments::CommandLine& command_line) {
             options.training.bind(command_line, 30);
             command_line.add("--pool", options.pool, "batches whose gradients are counted together",
                              {.minimum = 1, .maximum = 1000, .quick = 2});
           },
       .body = [&](experiments::Run& r) { run(r, options); }});
}
