#include "experiments/gradient_histogram/paper_figures.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include "experiments/frame/columns.h"
#include "experiments/frame/text_table.h"
#include "experiments/gradient_histogram/panels.h"
#include "fp16/names.h"
#include "sim/models/registry.h"

namespace experiments::gradient_histogram {
namespace {

using fp16::ExponentHistogram;

/// The loss scales shown: none, the one that trains, and the one that recovers nearly all.
constexpr std::array paper_scales_log2{0, 3, 15};

constexpr int fine_from = -24;  ///< from here on a bar is one octave wide

/// The lower edge of the bar with this exponent: even below fine_from.
int lower_edge(int exponent) {
  return exponent >= fine_from ? exponent : 2 * static_cast<int>(std::floor(exponent / 2.0));
}

/// The share of all values, in per cent.
double percent_of(const Pooled& gradients, std::uint64_t count) {
  return 100 * static_cast<double>(count) / static_cast<double>(gradients.exponents.total());
}

double flushed_percent(const Pooled& gradients, int scale_log2) {
  return percent_of(gradients, gradients.exponents.flushed_at_scale(scale_log2));
}

double percent_between(const Pooled& gradients, int lower, int upper) {
  std::uint64_t count = 0;
  for (int e = lower; e < upper; ++e) count += gradients.exponents.octave(e).total;
  return percent_of(gradients, count);
}

std::string share(double percent) {
  return experiments::percent(percent / 100);
}

std::string scale_text(int scale_log2) {
  return scale_log2 <= 3 ? fmt::format("{}", 1 << scale_log2) : fmt::format("2^{{{}}}", scale_log2);
}

/// One row of figure 3: zeros at the left, bars over FP16's zones at the right.
std::string shifted_panels(const Pooled& gradients, int scale_log2, double lowest, double tallest) {
  const double flushed = flushed_percent(gradients, scale_log2), zero = 100 * gradients.fraction_zero();
  return zeros_panel({.table = "paper3",
                      .where = fmt::format("column('scale_log2') == {} && {}", scale_log2,
                                           column_is("lower_log2", "zero")),
                      .percent = zero,
                      .title = fmt::format("S = {}: {} more become zero, {} are left", scale_text(scale_log2),
                                           share(flushed), share(100 - zero - flushed))}) +
         exponents_axes(lowest, 1.3 * tallest,
                        fmt::format("log₂ of |gradient|{}", scale_log2 == 0 ? "" : " times S")) +
         fp16_zones(lowest) +
         fmt::format(
             "plot \"paper3.csv\" using (column('scale_log2') == {} && strcol('lower_log2') ne 'zero' ? "
             "(column('lower_log2') + column('upper_log2')) / 2 : "
             "NaN):(column('share_percent') / 2):(column('lower_log2') + 0.06):(column('upper_log2') - "
             "0.06):(0):(column('share_percent')) with boxxyerror linecolor rgb blue notitle\n",
             scale_log2);
}

constexpr const char *paper3 = "--figure paper3", *paper2b = "--figure paper2b";

struct Published {
  std::string quantity;
  std::string paper;
  std::string guide;
  double ours;
};

const TableOf<Published> published_table{.name = "published",
                                         .rows = "each published figure",
                                         .columns = {{"quantity", "", &Published::quantity},
                                                     {"paper", "%", &Published::paper},
                                                     {"guide", "%", &Published::guide},
                                                     {"ours_percent", "%", &Published::ours}},
                                         .when = paper3};

/// A bar at one scale; that of the zeros has no bin.
struct ScaledBin {
  int scale_log2;
  std::optional<Bin> bin;
  double percent;

  Value edge(int Bin::*which) const { return bin ? Value((*bin).*which) : Value("zero"); }
};

const TableOf<ScaledBin> paper3_table{
    .name = "paper3",
    .rows = "each bar at each scale",
    .columns = {{"scale_log2", "log2", &ScaledBin::scale_log2},
                {"lower_log2", "log2", [](auto& b) { return b.edge(&Bin::lower); }},
                {"upper_log2", "log2", [](auto& b) { return b.edge(&Bin::upper); }},
                {"share_percent", "%", &ScaledBin::percent}},
    .when = paper3};

const SummaryOf<double> paper3_summary{
    {{"paper3_share_flushed_at_scale_<S>", "of all activation gradients, zeros included, become zero at S",
      [](double share) { return share; }, paper3}}};

struct OctaveShare {
  int exponent;
  double percent;
};

const TableOf<OctaveShare> paper2b_table{.name = "paper2b",
                                         .rows = "each octave of the weight gradients over training",
                                         .columns = {{"exponent_log2", "log2", &OctaveShare::exponent},
                                                     {"share_percent", "%", &OctaveShare::percent}},
                                         .when = paper2b};

const SummaryOf<double> paper2b_summary{
    {{"paper2b_fraction_below_2^-24", "of the non-zero weight gradients over training",
      [](double share) { return share; }, paper2b}}};

std::vector<Published> published_rows(const Pooled& gradients) {
  const double flushed = flushed_percent(gradients, 0), zero = 100 * gradients.fraction_zero();
  return {{"exact zeros", "67", "66.8", zero},
          {"become zero in FP16", "-", "31", flushed},
          {"non-zero in FP16", "-", "5.3", 100 - zero - flushed},
          {"within [2^-34, 2^-32)", "2", "-", percent_between(gradients, -34, -32)},
          {"within [2^-32, 2^-30)", "-", "4", percent_between(gradients, -32, -30)},
          {"within [2^-24, 2^-23)", "2", "-", percent_between(gradients, -24, -23)},
          {"become zero at S = 8", "trains", "suffices", flushed_percent(gradients, 3)},
          {"become zero at S = 2^15", "-", "0.1", flushed_percent(gradients, 15)}};
}

/// How much hangs on which tensors are counted.
std::string counting_sentence(const Findings& found) {
  Pooled every;
  for (const Pooled& operation : found.operations) every += operation;
  std::vector<std::string> parts;
  for (const Pooled& operation : found.operations) {
    if (operation.exponents.total() * 100 >= every.exponents.total())
      parts.push_back(fmt::format("{} {}", operation.name, percent(operation.fraction_zero())));
  }
  return fmt::format(
      "How many gradients are zero depends on which tensors are counted: the table has the outputs of layers "
      "before the "
      "non-linearity; of every tensor of the network it is {} ({}).",
      percent(every.fraction_zero()), fmt::join(parts, ", "));
}

const Pooled* operation_named(const Findings& found, std::string_view name) {
  const auto operation = std::ranges::find(found.operations, name, &Pooled::name);
  return operation == found.operations.end() ? nullptr : &*operation;
}

/// What makes the zeros, from the loss backward, and what makes the others small; none for a network that is not made
/// of the detector's parts.
std::vector<std::string> mechanism_sentences(const Findings& found) {
  const Pooled* heads = operation_named(found, "channels_last");
  const Pooled* pools = operation_named(found, "max_pool2d");
  const Pooled* relus = operation_named(found, "relu");
  const Pooled* convolutions = operation_named(found, "conv2d");
  if (!heads || !pools || !relus || !convolutions) return {};
  return {
      fmt::format(
          "Hard negative mining and max pooling make the zeros. Mining leaves {} of the heads' outputs "
          "without a gradient; convolutions spread the rest until {} of the pools' outputs are zero; a pool "
          "hands its gradient to one value of four, and {} of the ReLUs' outputs are zero.",
          percent(heads->fraction_zero()), percent(pools->fraction_zero()), percent(relus->fraction_zero())),
      fmt::format(
          "The normaliser and the spreading make the others small: the largest gradient of the heads is "
          "2^{:.1f}, that of the ReLUs 2^{:.1f}.",
          heads->max_abs_log2(), relus->max_abs_log2())};
}

}  // namespace

std::string normaliser_sentence(std::string_view model) {
  const auto [name, given] = names::parse_numeric_spec(model);
  if (name != "ssd") return {};
  constexpr std::array meanings{
      "the matched anchors (normaliser 0), as in SSD",
      "all anchors (normaliser 1), where SSD divides by the matched ones",
      "all values of the heads (normaliser 2), where SSD divides by the matched anchors"};
  return fmt::format(
      "The loss is divided by {}. On that hangs how many gradients become zero: each octave of the "
      "normaliser "
      "moves all of them by one.",
      meanings.at(static_cast<std::size_t>(names::options_from<sim::SsdOptions>(given).normaliser)));
}

std::vector<Bin> paper_bins(const Pooled& gradients, int scale_log2) {
  std::vector<Bin> bins;
  const ExponentHistogram& exponents = gradients.exponents;
  if (exponents.nonzero_finite() == 0) return bins;
  for (int e = *exponents.lowest_exponent(); e <= *exponents.highest_exponent(); ++e) {
    const int shifted = e + scale_log2, lower = lower_edge(shifted);
    if (bins.empty() || bins.back().lower != lower)
      bins.push_back({lower, lower >= fine_from ? lower + 1 : lower + 2, 0});
    bins.back().percent += gradients.percent_at(e);
  }
  return bins;
}

Outputs paper_outputs() {
  return outputs_of(paper3_table, published_table, paper2b_table, paper3_summary, paper2b_summary);
}

std::vector<std::string> draw_paper3(Run& run, const Findings& found, std::string_view model,
                                     const std::string& setting) {
  const Pooled& gradients = found.activation_gradients;
  const auto add = paper3_table.start(run.record());
  double tallest = 0.1;
  for (const int scale_log2 : paper_scales_log2) {
    paper3_summary.write(run.record(),
                         gradients.fraction_flushed(scale_log2) * (1 - gradients.fraction_zero()),
                         {fmt::format("2^{}", scale_log2)});
    add({scale_log2, std::nullopt, 100 * gradients.fraction_zero()});
    for (const Bin& bin : paper_bins(gradients, scale_log2)) {
      add({scale_log2, bin, bin.percent});
      tallest = std::max(tallest, bin.percent);
    }
  }
  const std::vector<Published> published = published_rows(gradients);
  published_table.write(run.record(), published);
  TextTable text{.columns = {"activation gradients, % of all", "paper", "guide", "here"}, .rows = {}};
  for (const Published& row : published)
    text.rows.push_back({row.quantity, row.paper, row.guide, fmt::format("{:.3g}", row.ours)});
  constexpr double lowest = -40;
  std::string script = "set multiplot\nset boxwidth 0.9\nunset key\n";
  int index = 0;
  for (const int scale_log2 : paper_scales_log2)
    script += panel(index++, static_cast<int>(paper_scales_log2.size())) +
              shifted_panels(gradients, scale_log2, lowest, tallest);
  run.figure(
      {.name = "paper3",
       .title = fmt::format("Activation gradients of {}, times a loss scale S", names::name_in(model)),
       .caption = fmt::format(
           "{} Gradients of the outputs of layers before the non-linearity, {} of them exact zeros. Bars "
           "are two octaves wide below 2^-24 and one above, as in figure 3 of Micikevicius et al. (2018).",
           setting, percent(gradients.fraction_zero())),
       .script = script + "unset multiplot\n",
       .height = 860});
  std::vector<std::string> sentences{text.text()};
  if (std::string sentence = normaliser_sentence(model); !sentence.empty())
    sentences.push_back(std::move(sentence));
  sentences.push_back(counting_sentence(found));
  return joined<std::string>(std::move(sentences), mechanism_sentences(found));
}

std::vector<std::string> draw_paper2b(Run& run, const Findings& found, std::string_view model,
                                      const std::string& setting) {
  Pooled gradients{.name = "weight gradients"};
  for (const Moment& moment : found.moments) gradients += moment.weight_gradients;
  const auto add = paper2b_table.start(run.record());
  const ExponentHistogram& exponents = gradients.exponents;
  const int lowest = exponents.lowest_exponent().value_or(-40),
            highest = exponents.highest_exponent().value_or(0);
  for (int e = lowest; e <= highest; ++e) add({e, gradients.percent_at(e)});
  const double lost = gradients.fraction_below_smallest_subnormal();
  paper2b_summary.write(run.record(), lost);
  const double left = std::max(lowest, -60) - 1;
  run.figure(
      {.name = "paper2b",
       .title = fmt::format("Weight gradients of {} by exponent", model),
       .caption = fmt::format(
           "{} All weight gradients at {} moments from the first step to the last; {} of the non-zero ones "
           "lie below 2^-24, {} are exact zeros. After figure 2b of Micikevicius et al. (2018).",
           setting, found.moments.size(), percent(lost), percent(gradients.fraction_zero())),
       .script =
           fmt::format("unset key\nset boxwidth 0.9\nset xrange [{}:{}]\nset yrange [0:{}]\nset xtics 4\n"
                       "set xlabel \"{}\"\nset ylabel \"share of all values, %\"\n",
                       left, std::max(highest + 2, 0), 1.35 * std::max(gradients.peak_percent(), 0.001),
                       exponent_label) +
           zones({{left, -24, fmt::format("below 2^{{-24}}: {} of the non-zero", percent(lost)),
                   "vermillion"}}) +
           marks({{.x = -24, .label = "2^{-24}", .label_height = 0.9}}) +
           plot({{.table = "paper2b",
                  .x = "column('exponent_log2') + 0.5",
                  .y = "column('share_percent')",
                  .style = "with boxes linecolor rgb blue"}})});
  return {fmt::format(
      "Over the whole training {} of the non-zero weight gradients lie below 2^-24; in the speech model of "
      "figure 2b about 5 % do.",
      percent(lost))};
}

}  // namespace experiments::gradient_histogram
