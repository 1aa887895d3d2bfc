#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <string_view>
#include <vector>

#include "experiments/formats/findings.h"
#include "experiments/formats/numbers.h"
#include "experiments/frame/columns.h"
#include "experiments/frame/printable.h"
#include "experiments/frame/text_table.h"
#include "fp16/formats.h"
#include "sim/tensor/log2.h"

namespace experiments::formats {
namespace {

using Format = fp16::NamedFormat;

const TableOf<Format> formats_table{
    .name = "formats",
    .rows = "each format",
    .columns = {{"format", "", &Format::name},
                {"width_bits", "bits", [](auto& f) { return f.format.width(); }},
                {"exponent_bits", "bits", [](auto& f) { return f.format.exponent_bits; }},
                {"precision_bits", "bits", [](auto& f) { return f.format.precision; }},
                {"max", "1", [](auto& f) { return f.format.max(); }},
                {"min_normal", "1", [](auto& f) { return f.format.min_normal(); }},
                {"min_subnormal", "1", [](auto& f) { return f.format.min_subnormal(); }},
                {"epsilon", "1", [](auto& f) { return f.format.epsilon(); }},
                {"unit_roundoff", "1", [](auto& f) { return f.format.unit_roundoff(); }},
                {"digits10", "digits", [](auto& f) { return f.format.digits10(); }},
                {"max_digits10", "digits", [](auto& f) { return f.format.max_digits10(); }},
                {"range_octaves", "octaves", [](auto& f) { return range_octaves(f.format); }},
                {"finite_values", "values", [](auto& f) { return f.format.finite_values(); }},
                {"special_values", "", [](auto& f) { return special_values(f.format); }}}};

struct Octave {
  Format format;
  int exponent;

  double values() const { return values_in_octave(format.format, exponent); }
  double largest_relative_spacing() const {
    return std::ldexp(1.0, std::max(0, format.format.emin() - exponent) - format.format.trailing_bits());
  }
};

const TableOf<Octave> octaves_table{
    .name = "octaves",
    .rows = "each octave of each format",
    .columns = {{"format", "", [](auto& o) { return o.format.name; }},
                {"exponent_log2", "log2", &Octave::exponent},
                {"values", "values", &Octave::values},
                {"values_log2", "log2", [](auto& o) { return sim::log2_of(o.values()); }},
                {"largest_relative_spacing", "1", &Octave::largest_relative_spacing}}};

struct Number {
  std::string_view format;
  double value;
};

const TableOf<Number> values_table{
    .name = "values",
    .rows = "each positive number of the formats of up to 8 bits",
    .columns = {{"format", "", &Number::format},
                {"value", "1", &Number::value},
                {"value_log2", "log2", [](auto& n) { return sim::log2_of(n.value); }}}};

const std::vector<Column<Measured>> loss_columns =
    columns_of_part<Measured, Loss>({{"relative_error", "1", &Loss::relative_error},
                                     {"row_relative_error", "1", &Loss::row_relative_error},
                                     {"fraction_flushed", "1", &Loss::fraction_flushed},
                                     {"fraction_saturated", "1", &Loss::fraction_saturated}},
                                    [](const Measured& m) -> const Loss& { return m.loss; });

const TableOf<Measured> spread_table{
    .name = "spread",
    .rows = "each format and scaling at each spread of the rows",
    .columns = joined<Column<Measured>>(
        {{"format", "", [](auto& m) { return m.scheme->name; }},
         {"scaling", "", [](auto& m) { return m.scheme->scaling(); }},
         {"block_size", "values", &Measured::block_size},
         {"bits_per_value", "bits", [](auto& m) { return m.scheme->bits_per_value; }},
         {"spread_octaves", "octaves", &Measured::spread}},
        loss_columns)};

double size_of(const Measured& m) {
  return static_cast<double>(m.block_size);
}

const TableOf<Measured> block_size_table{
    .name = "block_size",
    .rows = "each element format, scale rule and size of blocks",
    .columns = joined<Column<Measured>>(
        {{"format", "", [](auto& m) { return m.scheme->name; }},
         {"scale_rule", "", [](auto& m) { return fp16::name_of(m.rule); }},
         {"block_size", "values", &Measured::block_size},
         {"block_size_log2", "log2", [](auto& m) { return sim::log2_of(size_of(m)); }},
         {"scale_bits_per_value", "bits", [](auto& m) { return fp16::e8m0.width() / size_of(m); }}},
        loss_columns)};

void write_tables(RunRecord& record, const Findings& found) {
  formats_table.write(record, fp16::formats);
  const auto add_octave = octaves_table.start(record);
  for (const Format& row : fp16::formats) {
    for (int e = row.format.emin_subnormal(); e <= row.format.emax(); ++e) add_octave({row, e});
  }
  const auto add_number = values_table.start(record);
  fp16::for_each_format([&]<const fp16::Format & F>() {
    if constexpr (F.width() <= 8) {
      for (const double value : positive_values<F>()) add_number({fp16::name_of(F), value});
    }
  });
  spread_table.write(record, found.spreads);
  block_size_table.write(record, found.block_sizes);
}

const SummaryOf<Format> ranges_summary{
    {{"<format>.range_octaves", "log2 of its largest number over its smallest positive one",
      [](auto& f) { return range_octaves(f.format); }}}};

const SummaryOf<Loss> losses_summary{
    {{"<scaling>.<format>.relative_error",
      "||rounded - x|| / ||x|| of the tensor; <scaling> is tensor or block: what has a scale of its own",
      &Loss::relative_error},
     {"<scaling>.<format>.row_relative_error", "of each row, mean over the rows", &Loss::row_relative_error},
     {"<scaling>.<format>.fraction_flushed", "values that became zero, over all", &Loss::fraction_flushed},
     {"<scaling>.<format>.fraction_saturated", "values beyond the largest element, over all",
      &Loss::fraction_saturated}}};

void write_summary(RunRecord& record, const Findings& found, int spread) {
  for (const Format& row : fp16::formats) ranges_summary.write(record, row, {row.name});
  for (const Measured& m : found.spreads) {
    if (m.spread == spread) losses_summary.write(record, m.loss, {m.scheme->scaling(), m.scheme->name});
  }
}

std::string format_table() {
  TextTable table{.columns = {"format", "bits", "exponent", "precision", "max", "min normal", "min subnormal",
                              "epsilon", "digits", "octaves", "finite values", "special values"},
                  .rows = {}};
  for (const Format& row : fp16::formats) {
    const fp16::Format& f = row.format;
    table.rows.push_back({std::string(row.name), fmt::format("{}", f.width()),
                          fmt::format("{}", f.exponent_bits), fmt::format("{}", f.precision),
                          fmt::format("{:.5g}", f.max()), fmt::format("{:.4g}", f.min_normal()),
                          fmt::format("{:.4g}", f.min_subnormal()), fmt::format("{:.4g}", f.epsilon()),
                          fmt::format("{}", f.digits10()), fmt::format("{:.1f}", range_octaves(f)),
                          fmt::format("{:.6g}", static_cast<double>(f.finite_values())), special_values(f)});
  }
  return table.text();
}

std::string loss_table(const std::vector<Measured>& spreads, int spread) {
  TextTable table{.columns = {"format", "a scale for", "bits a value", "error of the tensor",
                              "error of a row", "flushed", "saturated"},
                  .rows = {}};
  for (const Measured& m : spreads) {
    if (m.spread != spread) continue;
    table.rows.push_back({std::string(m.scheme->name),
                          m.block_size == 0 ? "the tensor" : fmt::format("each {}", m.block_size),
                          fmt::format("{}", m.scheme->bits_per_value), percent(m.loss.relative_error),
                          percent(m.loss.row_relative_error), percent(m.loss.fraction_flushed),
                          percent(m.loss.fraction_saturated)});
  }
  return table.text();
}

/// Why 8 and 4 bits need block scales, at one spread of the rows.
std::string answer(const std::vector<Measured>& spreads, int spread) {
  const auto loss_of = [&](std::string_view scheme) -> const Loss& {
    return std::ranges::find_if(
               spreads, [&](const Measured& m) { return m.spread == spread && m.scheme->name == scheme; })
        ->loss;
  };
  const Loss &fp4 = loss_of("e2m1"), &fp8 = loss_of("e4m3"), &mxfp8 = loss_of("mxfp8_e4m3"),
             &mxfp4 = loss_of("mxfp4"), &nvfp4 = loss_of("nvfp4");
  if (fp4.row_relative_error < 2 * mxfp4.row_relative_error)
    return fmt::format(
        "One scale for the tensor does nearly as well as block scales where rows differ by 2^{} alone.",
        spread);
  std::string text = fmt::format(
      "8 and 4 bits need block scales as they span few octaves: with one scale for a tensor whose rows "
      "differ by 2^{} "
      "(standard deviation), {} of the values become zero in e4m3 and {} in e2m1; with a scale for each 32 "
      "values, {} "
      "and {}.",
      spread, percent(fp8.fraction_flushed), percent(fp4.fraction_flushed), percent(mxfp8.fraction_flushed),
      percent(mxfp4.fraction_flushed));
  if (fp8.row_relative_error > 2 * fp8.relative_error)
    text += " The error of the whole tensor hides what small rows lose: the largest rows carry its norm.";
  if (nvfp4.fraction_flushed > mxfp4.fraction_flushed) {
    text +=
        " nvfp4 keeps fewer than mxfp4: its block scales are e4m3 numbers under one scale for the tensor, so "
        "they span "
        "the octaves of e4m3 alone.";
  }
  return text;
}

}  // namespace

Outputs outputs() {
  return outputs_of(formats_table, octaves_table, values_table, spread_table, block_size_table,
                    ranges_summary, losses_summary);
}

void report(Run& run, const Findings& found, const Options& options) {
  RunRecord& record = run.record();
  write_tables(record, found);
  write_summary(record, found, options.spread);
  const std::string setting = fmt::format(
      "{} of {} normal random numbers, each row times 2 to a normal random exponent with the spread as "
      "its standard deviation, seed {}; nearest-even; scales by the floor rule of OCP, in nvfp4 by its own.",
      counted(options.rows, "row"), row_length, options.seed);
  draw_figures(run, options, setting);
  record.verdict(answer(found.spreads, options.spread));
  record.verdict(format_table());
  record.verdict(loss_table(found.spreads, options.spread));
  record.verdict(setting);
}

}  // namespace experiments::formats
