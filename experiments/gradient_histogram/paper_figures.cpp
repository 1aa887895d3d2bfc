#include "experiments/gradient_histogram/paper_figures.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "experiments/frame/columns.h"
#include "experiments/frame/text_table.h"
#include "experiments/gradient_histogram/panels.h"
#include "experiments/gradient_histogram/paper3.h"
#include "fp16/names.h"
#include "sim/models/registry.h"

namespace experiments::gradient_histogram {
namespace {

/// The loss scales shown: none, the one that trains, and the one that recovers nearly all.
constexpr std::array paper_scales_log2{0, 3, 15};

double flushed_percent(const Pooled& gradients, int scale_log2) {
  return percent_of(gradients.exponents, gradients.exponents.flushed_at_scale(scale_log2));
}

double percent_between(const Pooled& gradients, int lower, int upper) {
  std::uint64_t count = 0;
  for (int e = lower; e < upper; ++e) count += gradients.exponents.octave(e).total;
  return percent_of(gradients.exponents, count);
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

Outputs paper_outputs() {
  return outputs_of(paper3_outputs(), published_table, paper2b_table, paper2b_summary);
}

std::vector<std::string> report_paper3(Run& run, const Findings& found, std::string_view model,
                                       const std::string& setting) {
  const Pooled& gradients = found.activation_gradients;
  const std::vector<Published> published = published_rows(gradients);
  published_table.write(run.record(), published);
  TextTable text{.columns = {"activation gradients, % of all", "paper", "guide", "here"}, .rows = {}};
  for (const Published& row : published)
    text.rows.push_back({row.quantity, row.paper, row.guide, fmt::format("{:.3g}", row.ours)});
  draw_paper3(
      run, {.gradients = gradients.exponents,
            .scales_log2 = {paper_scales_log2.begin(), paper_scales_log2.end()},
            .title = fmt::format("Activation gradients of {}, times a loss scale S", names::name_in(model)),
            .caption = fmt::format(
                "{} Gradients of the outputs of layers before the non-linearity, {} of them exact zeros.",
                setting, percent(gradients.fraction_zero()))});
  std::vector<std::string> sentences{text.text()};
  if (std::string sentence = normaliser_sentence(model); !sentence.empty())
    sentences.push_back(std::move(sentence));
  sentences.push_back(counting_sentence(found));
  return joined<std::string>(std::move(sentences), mechanism_sentences(found));
}

std::vector<std::string> report_paper2b(Run& run, const Findings& found, std::string_view model,
                                        const std::string& setting) {
  Pooled gradients{.name = "weight gradients"};
  for (const Moment& moment : found.moments) gradients += moment.weight_gradients;
  const auto add = paper2b_table.start(run.record());
  const fp16::ExponentHistogram& exponents = gradients.exponents;
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
