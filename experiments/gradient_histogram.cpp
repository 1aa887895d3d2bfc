/// Where do a network's gradients lie, and which of them can FP16 hold?
///
/// Trains in FP32, pools the gradients of a few batches late in training, and counts them by binary exponent.
/// The gradients are those of the FP32 run; what FP16 would make of them is their cast.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "experiments/common/experiment.h"
#include "experiments/common/recommended_scale.h"
#include "experiments/common/text_table.h"
#include "experiments/common/training_setup.h"
#include "sim/statistics/cast_counts.h"
#include "sim/statistics/log2.h"
#include "sim/statistics/twin_comparison.h"

namespace {

using experiments::percent;
using sim::ExponentHistogram;
using sim::GradientSite;

struct Options {
  experiments::TrainingOptions training{.model = "mlp", .steps = 600};
  int pool = 4;
};

/// The pooled gradients of one site, or of several together.
struct Pooled {
  std::string name;
  GradientSite::Kind kind = GradientSite::Kind::weight;
  ExponentHistogram exponents = {};
  sim::CastCounts cast_at_scale_1 = {};
  double square = 0;              ///< sum of g^2, in the order of the values
  double flushed_square = 0;      ///< the same where |g| <= 2^-25
  bool is_rounding_noise = true;  ///< in every batch, as sim::compare_sites() tells it

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
  double max_abs_log2() const { return sim::log2_of(exponents.max_abs()); }
  /// Octaves between the largest gradient and 2^-25, where nearest-even reaches zero.
  double octaves_alive() const { return max_abs_log2() + 25; }
};

/// Trains in FP32 and pools the gradients of the last batches, site by site.
std::vector<Pooled> pool_gradients(sim::Trainer& trainer, const experiments::TrainingSetup& setup,
                                   const Options& options, experiments::Progress& progress) {
  experiments::train(trainer, setup.steps(), progress);
  std::vector<Pooled> sites;
  for (int sample = 0; sample < options.pool; ++sample) {
    const sim::RecordedStep step = sim::record_step(
        setup.model(), trainer.state(), trainer.next_batch(), sim::find_precision_policy("fp32"),
        {.seed = options.training.seed, .step = trainer.steps_done()});
    const sim::SiteGradients gradients = step.tape.backward(step.forward.loss, {.count_rounding = true});
    // An FP32 pass is its own twin; only the verdict on rounding noise is wanted.
    const std::vector<sim::TwinComparison> comparisons =
        sim::compare_sites(step.tape.sites(), gradients, gradients);
    sites.resize(step.tape.sites().size());
    for (std::size_t i = 0; i < sites.size(); ++i) {
      sites[i].name = step.tape.sites()[i].name;
      sites[i].kind = step.tape.sites()[i].kind;
      sites[i].is_rounding_noise &= comparisons[i].is_rounding_noise;
      sites[i].add(gradients.gradients[i].elements<float>());
    }
    experiments::train(trainer, 1, progress);
  }
  return sites;
}

/// All that the run found; the sums are over its sites.
struct Findings {
  std::vector<Pooled> sites;
  Pooled activations, weights, all;
  std::optional<int> recommended_scale_log2;  ///< none without a finite non-zero gradient
  sim::Evaluation evaluation;
};

Findings summed(std::vector<Pooled> sites, const sim::Evaluation& evaluation) {
  const auto sum = [&](std::string name, auto&& wanted) {
    Pooled total{.name = std::move(name)};
    for (const Pooled& site : sites) {
      if (wanted(site.kind)) total += site;
    }
    return total;
  };
  Findings found{
      .sites = {},
      .activations =
          sum("activation gradients", [](auto kind) { return kind == GradientSite::Kind::activation; }),
      .weights = sum("weight gradients", [](auto kind) { return kind == GradientSite::Kind::weight; }),
      .all = sum("all gradients", [](auto) { return true; }),
      .recommended_scale_log2 = {},
      .evaluation = evaluation};
  found.sites = std::move(sites);
  found.recommended_scale_log2 = experiments::recommended_scale_log2(found.all.exponents);
  return found;
}

void write_histogram(sim::RunRecord& record, const Findings& found) {
  std::vector<Pooled> rows{found.all, found.activations, found.weights};
  rows.insert(rows.end(), found.sites.begin(), found.sites.end());
  sim::Table& table = record.table("histogram", {"tensor", "exponent_log2", "count", "count_powers_of_two",
                                                 "count_near_next", "count_top", "share_percent"});
  for (const Pooled& row : rows) {
    const double total = static_cast<double>(row.exponents.total());
    const auto share = [total](std::uint64_t count) { return 100 * static_cast<double>(count) / total; };
    table.row({row.name, "zero", row.exponents.zero(), 0, 0, 0, share(row.exponents.zero())});
    table.row({row.name, "infinite", row.exponents.infinite(), 0, 0, 0, share(row.exponents.infinite())});
    table.row({row.name, "nan", row.exponents.nan(), 0, 0, 0, share(row.exponents.nan())});
    if (row.exponents.nonzero_finite() == 0) continue;
    for (int e = *row.exponents.lowest_exponent(); e <= *row.exponents.highest_exponent(); ++e) {
      const ExponentHistogram::Octave& octave = row.exponents.octave(e);
      table.row({row.name, e, octave.total, octave.powers_of_two, octave.near_next, octave.top,
                 share(octave.total)});
    }
  }
}

void write_layers(sim::RunRecord& record, const std::vector<Pooled>& sites) {
  sim::Table& table = record.table(
      "layers",
      {"tensor", "kind", "values", "fraction_zero", "fraction_below_smallest_subnormal",
       "fraction_flushed_at_scale_1", "fraction_subnormal_at_scale_1", "fraction_overflow_at_scale_1",
       "norm_share_flushed_at_scale_1", "max_abs_log2", "octaves_alive", "is_rounding_noise"});
  for (const Pooled& site : sites) {
    table.row({site.name, sim::name_of(site.kind), site.exponents.total(), site.fraction_zero(),
               site.fraction_below_smallest_subnormal(), site.fraction_flushed(0),
               site.share_of_nonzero(site.cast_at_scale_1.subnormal), site.fraction_overflow(0),
               site.norm_share_flushed(), site.max_abs_log2(), site.octaves_alive(),
               int{site.is_rounding_noise}});
  }
}

void write_summary(sim::RunRecord& record, const Findings& found, bool is_classifier) {
  const std::optional<int>& recommended = found.recommended_scale_log2;
  const auto write = [&](const std::string& prefix, const Pooled& p) {
    record.summary(prefix + "values_total", p.exponents.total());
    record.summary(prefix + "fraction_zero", p.fraction_zero());
    record.summary(prefix + "fraction_below_smallest_subnormal", p.fraction_below_smallest_subnormal());
    record.summary(prefix + "fraction_flushed_at_scale_1", p.fraction_flushed(0));
    record.summary(prefix + "fraction_subnormal_at_scale_1", p.share_of_nonzero(p.cast_at_scale_1.subnormal));
    record.summary(prefix + "fraction_overflow_at_scale_1", p.fraction_overflow(0));
    record.summary(prefix + "norm_share_flushed_at_scale_1", p.norm_share_flushed());
    record.summary(prefix + "max_abs_log2", p.max_abs_log2());
    record.summary(prefix + "fraction_flushed_at_recommended_scale",
                   recommended ? sim::Value(p.fraction_flushed(*recommended)) : sim::Value("none"));
  };
  write("", found.all);
  record.summary("recommended_scale_log2", recommended ? sim::Value(*recommended) : sim::Value("none"));
  write("weights.", found.weights);
  write("activations.", found.activations);
  record.summary("test_loss", found.evaluation.loss);
  if (is_classifier) record.summary("test_accuracy", found.evaluation.accuracy);
}

constexpr std::string_view exponent_label = "binary exponent of |gradient|, floor(log_2 |g|)";

/// The tallest bar in per cent of all values; at least a thousandth, so that an empty histogram has an axis.
double highest_share(const ExponentHistogram& exponents) {
  double peak = 0;
  for (int e = ExponentHistogram::min_exponent; e <= ExponentHistogram::max_exponent; ++e) {
    peak = std::max(peak, static_cast<double>(exponents.octave(e).total));
  }
  return std::max(100 * peak / static_cast<double>(exponents.total()), 0.001);
}

std::string fp16_zones(double lowest) {
  return experiments::zones({{lowest, -25, "zero in FP16", "vermillion"},
                             {-25, -14, "subnormal", "orange"},
                             {-14, 16, "FP16 normal range", "green"}}) +
         "set offsets 0, 0, 0, 0\n" +
         experiments::marks(
             {{.x = -24, .label = "2^{-24}: smallest subnormal", .label_height = 0.86},
              {.x = -25, .label = "2^{-25}: nearest-even zero", .label_height = 0.77, .label_x = -24}});
}

/// Exact zeros in a narrow panel of their own scale, beside them the non-zero values by exponent, zones of
/// FP16 shaded.
std::string histogram_rows(const std::vector<const Pooled*>& rows, double lowest) {
  std::string script = "set multiplot\nset boxwidth 0.9\nunset key\n";
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const Pooled& row = *rows[i];
    const double peak = highest_share(row.exponents);
    const std::string of_row = experiments::column_is("tensor", row.name);
    script += experiments::panel(static_cast<int>(i), static_cast<int>(rows.size()));
    script += fmt::format(
        "set lmargin at screen 0.09\nset rmargin at screen 0.18\nset grid noxtics\n"
        "set xrange [-1:1]\nset yrange [0:100]\nset xtics (\"exact 0\" 0)\nset ytics 25\nset xlabel \"\"\n"
        "set ylabel \"share of all values, %\"\n"
        "set label \"{}\" at 0, {} center offset 0,0.6\n"
        "set label \"{}\" at graph 0, graph 1.08 left font \",13\"\n",
        percent(row.fraction_zero()), 100 * row.fraction_zero(), row.name);
    script += experiments::plot({{.table = "histogram",
                                  .where = of_row + " && " + experiments::column_is("exponent_log2", "zero"),
                                  .x = "0",
                                  .y = "column('share_percent')",
                                  .style = "with boxes linecolor rgb grey"}});
    script += fmt::format(
        "unset label\nset lmargin at screen 0.235\nset rmargin at screen 0.98\nset grid xtics\n"
        "set xrange [{}:16]\nset yrange [0:{}]\nset xtics 4\nset ytics autofreq\nset ylabel \"\"\n"
        "set xlabel \"{}\"\n",
        lowest, 1.45 * peak, exponent_label);
    script += fp16_zones(lowest);
    script += experiments::plot({{.table = "histogram",
                                  .where = of_row,
                                  .x = "column('exponent_log2') + 0.5",
                                  .y = "column('share_percent')",
                                  .style = "with boxes linecolor rgb blue"}});
  }
  return script + "unset multiplot\n";
}

double figure_left_edge(const Pooled& all) {
  const double total = static_cast<double>(all.exponents.total());
  int e = ExponentHistogram::min_exponent;
  for (double share = 0; e < -34; ++e) {  // leave out less than one value in a thousand
    share += static_cast<double>(all.exponents.octave(e).total) / total;
    if (share > 0.001) break;
  }
  return e - 1;
}

/// The matrices and kernels of one kind; biases are left to the table.
std::vector<const Pooled*> drawn_sites(const std::vector<Pooled>& sites, GradientSite::Kind kind) {
  std::vector<const Pooled*> drawn;
  for (const Pooled& site : sites) {
    if (site.kind == kind && !site.name.ends_with(".bias")) drawn.push_back(&site);
  }
  return drawn;
}

experiments::KeyColumn key_of(const std::vector<Pooled>& sites) {
  std::vector<std::string> names;
  for (const Pooled& site : sites) names.push_back(site.name);
  return experiments::KeyColumn(names);
}

std::string layer_panels(const std::vector<Pooled>& sites, double lowest) {
  std::string script = fmt::format(
      "set multiplot\nset xrange [{}:16]\nset xtics 4\nset xlabel \"{}\"\n"
      "set ylabel \"share of the tensor's values, %\"\n",
      lowest, exponent_label);
  int panel = 0;
  for (const GradientSite::Kind kind : {GradientSite::Kind::activation, GradientSite::Kind::weight}) {
    double highest = 0;
    std::vector<experiments::Curve> curves;
    for (const Pooled* site : drawn_sites(sites, kind)) {
      highest = std::max(highest, highest_share(site->exponents));
      curves.push_back({.table = "histogram",
                        .where = experiments::column_is("tensor", site->name),
                        .x = "column('exponent_log2') + 0.5",
                        .y = "column('share_percent')",
                        .style = fmt::format("with linespoints linetype {}", curves.size() + 1),
                        .title = site->name});
    }
    script += experiments::panel(panel, 2) + key_of(sites).script() + fp16_zones(lowest) +
              fmt::format("set yrange [0:{}]\n", 1.6 * highest) + experiments::plot(curves);
    ++panel;
  }
  return script + "unset multiplot\n";
}

/// Sites in the order of computation, the outputs of layers before the weights.
experiments::HeatMapAxes layer_map_axes(const std::vector<Pooled>& sites, double lowest) {
  std::vector<std::string> names;
  for (const GradientSite::Kind kind : {GradientSite::Kind::activation, GradientSite::Kind::weight}) {
    for (const Pooled* site : drawn_sites(sites, kind)) names.push_back(site->name);
  }
  return {.tensors = std::move(names),
          .lowest = lowest,
          .highest = 16,
          .x_label = std::string(exponent_label),
          .color_label = "share of the tensor's values, %",
          .x_marks = experiments::marks(
              {{.x = -25, .label = "zero in FP16", .label_height = 1, .side = experiments::Mark::Side::left},
               {.x = -14, .label = "subnormal", .label_height = 1, .side = experiments::Mark::Side::left}})};
}

experiments::Figure layer_figure(const std::vector<Pooled>& sites, double lowest, std::string_view model,
                                 const std::string& setting) {
  experiments::Figure figure{.name = "layers",
                             .title = fmt::format("Gradients of {}, tensor by tensor", model),
                             .caption = setting,
                             .script = {}};
  const auto has_colors = [&](GradientSite::Kind kind) {
    return drawn_sites(sites, kind).size() <= experiments::most_curves;
  };
  if (has_colors(GradientSite::Kind::activation) && has_colors(GradientSite::Kind::weight)) {
    figure.caption += " Above the gradients of each layer's output, below those of its weights.";
    figure.script = layer_panels(sites, lowest);
    figure.width = key_of(sites).figure_width();
    figure.height = 640;
    return figure;
  }
  const experiments::HeatMapAxes axes = layer_map_axes(sites, lowest);
  figure.caption +=
      " From the top the gradients of the layers' outputs, then those of their weights, each in the order of "
      "computation. Lines: 2^-25, up to which FP16 rounds to zero, and 2^-14, from which it is normal.";
  figure.script = experiments::heat_maps({{.table = "histogram",
                                           .title = "",
                                           .x = "column('exponent_log2') + 0.5",
                                           .percent = "column('share_percent')"}},
                                         axes);
  figure.width = experiments::heat_map_width(axes, 1);
  figure.height = experiments::heat_map_height(axes);
  return figure;
}

void draw_figures(experiments::Run& run, const Findings& found, std::string_view model,
                  const std::string& setting) {
  const double lowest = figure_left_edge(found.all);
  run.figure({.name = "gradient_histogram",
              .title = fmt::format("Gradients of {} by magnitude", model),
              .caption = fmt::format(
                  "{} {} of all values are exact zeros; of the others {} round to zero in FP16. "
                  "FP16's range reaches to 2^16: all of it right of the bars stays unused.",
                  setting, percent(found.all.fraction_zero()), percent(found.all.fraction_flushed(0))),
              .script = histogram_rows({&found.activations, &found.weights}, lowest),
              .height = 640});
  run.figure(layer_figure(found.sites, lowest, model, setting));
}

/// Of tensors that are zero in exact arithmetic nothing can vanish; empty where that leaves none.
std::string weakest_site_sentence(const std::vector<Pooled>& sites) {
  constexpr double out_of_question = std::numeric_limits<double>::infinity();
  const auto octaves = [](const Pooled& site) {
    return site.is_rounding_noise || site.exponents.max_abs() == 0 ? out_of_question : site.octaves_alive();
  };
  const auto weakest = std::ranges::min_element(sites, {}, octaves);
  if (octaves(*weakest) == out_of_question) return {};
  return fmt::format("Nearest to vanishing: {}.",
                     experiments::octaves_alive_clause(weakest->name, weakest->octaves_alive()));
}

void write_verdict(sim::RunRecord& record, const Findings& found, std::string_view model,
                   const std::string& setting) {
  const Pooled& all = found.all;
  if (const std::uint64_t nonfinite = all.exponents.infinite() + all.exponents.nan(); nonfinite > 0) {
    record.verdict(
        fmt::format("{} of {} gradients are infinite or NaN in FP32 already, which no loss scale cures: the "
                    "training itself has diverged.",
                    nonfinite, all.exponents.total()));
  }
  if (!found.recommended_scale_log2) {
    record.verdict(
        fmt::format("{} has no finite non-zero gradient left: there is nothing for FP16 to lose.", model));
    return record.verdict(setting);
  }
  const int recommended = *found.recommended_scale_log2;
  const double still_flushed = all.fraction_flushed(recommended);
  record.verdict(
      fmt::format("{} of the non-zero gradients of {} round to zero in FP16 without loss scaling, with {} of "
                  "the gradient's norm; multiplied by 2^{} {} do.",
                  percent(all.fraction_flushed(0)), model, percent(all.norm_share_flushed()), recommended,
                  still_flushed == 0 ? "none" : "only " + percent(still_flushed)));
  if (const std::string sentence = weakest_site_sentence(found.sites); !sentence.empty())
    record.verdict(sentence);
  experiments::TextTable table{
      .columns = {"gradients", "values", "exact zeros", "flushed S=1", "of the norm", "subnormal S=1",
                  "largest", fmt::format("flushed S=2^{}", recommended)},
      .rows = {}};
  for (const Pooled* p : {&found.activations, &found.weights, &all}) {
    table.rows.push_back({p->name, fmt::format("{}", p->exponents.total()), percent(p->fraction_zero()),
                          percent(p->fraction_flushed(0)), percent(p->norm_share_flushed()),
                          percent(p->share_of_nonzero(p->cast_at_scale_1.subnormal)),
                          fmt::format("2^{:.1f}", p->max_abs_log2()),
                          percent(p->fraction_flushed(recommended))});
  }
  record.verdict(table.text());
  record.verdict(setting);
}

void run(experiments::Run& run, Options& options) {
  const experiments::TrainingSetup setup(options.training);
  sim::Trainer trainer = setup.trainer({.seed = options.training.seed});
  experiments::record_settings(run.record(), "optimizer", trainer.optimizer().name(),
                               trainer.optimizer().options());
  experiments::Progress progress =
      run.progress("training in FP32", static_cast<std::size_t>(setup.steps() + options.pool));
  std::vector<Pooled> sites = pool_gradients(trainer, setup, options, progress);
  const Findings found =
      summed(std::move(sites), sim::evaluate(setup.model(), setup.dataset(), trainer.state()));

  write_histogram(run.record(), found);
  write_layers(run.record(), found.sites);
  write_summary(run.record(), found, setup.model().is_classifier());
  const std::string setting =
      fmt::format("{}; step {}, {} batches pooled, seed {}, S = 1; {}.", setup.description(), setup.steps(),
                  options.pool, options.training.seed, setup.quality(found.evaluation));
  draw_figures(run, found, setup.model_name(), setting);
  write_verdict(run.record(), found, setup.model_name(), setting);
  if (found.all.cast_at_scale_1.flushed != found.all.exponents.flushed_at_scale(0) ||
      found.all.cast_at_scale_1.subnormal != found.all.exponents.subnormal_at_scale(0) ||
      found.all.cast_at_scale_1.overflowed != found.all.exponents.overflowed_at_scale(0)) {
    run.fail("the histogram's prediction differs from the values' cast to FP16");
  }
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
