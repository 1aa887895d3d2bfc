/// What can each format hold, from FP64 to FP4, and why do 8 and 4 bits need block scales?
///
/// Tabulates the formats and counts their numbers octave by octave. Then measures: a tensor of normal random
/// numbers, each row of it times a magnitude of its own, is rounded to the small formats, with one scale for
/// all of it and with one scale a block, and compared with what it was.

#include "fp16/formats.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "experiments/common/experiment.h"
#include "experiments/common/parallel.h"
#include "experiments/common/text_table.h"
#include "experiments/common/training_setup.h"
#include "fp16/block.h"
#include "fp16/elementary.h"
#include "sim/random.h"
#include "sim/statistics/log2.h"

namespace {

using experiments::percent;
using fp16::BlockFormat;
using fp16::Format;
using fp16::ScaleRule;

struct Options {
  std::uint64_t seed = 0;
  int rows = 1024;
  int spread = 3;
};

constexpr std::size_t row_length = 256;
constexpr int largest_spread = 8;

std::string special_values(const Format& format) {
  switch (format.encoding) {
    case fp16::Encoding::ieee:
      return "infinities, NaNs";
    case fp16::Encoding::finite_nan:
      return "NaN";
    case fp16::Encoding::fnuz:
      return "NaN; no -0";
    case fp16::Encoding::finite:
      return "none";
    case fp16::Encoding::power_of_two:
      return "NaN; no 0, no sign";
  }
  return {};
}

/// log2 of the largest number over the smallest positive one, to four decimals, which log2_of has right.
double range_octaves(const Format& format) {
  return std::round(1e4 * (sim::log2_of(format.max()) - format.emin_subnormal())) / 1e4;
}

/// How many numbers lie in [2^exponent, 2^(exponent + 1)), for exponents within the range.
double values_in_octave(const Format& format, int exponent) {
  const double power = std::ldexp(1.0, exponent);
  if (exponent == format.emax()) return (format.max() / power - 1) / format.epsilon() + 1;
  return std::ldexp(1.0, std::min(exponent, format.emin()) - format.emin_subnormal());
}

/// The finite numbers above zero, ascending.
template <const Format& F>
std::vector<double> positive_values() {
  std::vector<double> values;
  for (std::uint64_t code = F.has_zero(); code <= F.max_finite_code(); ++code)
    values.push_back(fp16::decode<F>(static_cast<fp16::Bits<F>>(code)));
  return values;
}

/// What rounding a tensor to a format lost.
struct Loss {
  double relative_error = 0;      ///< ||rounded - x|| / ||x|| of the whole tensor
  double row_relative_error = 0;  ///< the same of each row, mean over the rows
  double fraction_flushed = 0;    ///< became zero, over the values
  double fraction_saturated = 0;  ///< became the largest element from beyond it, over the values
};

/// Rounds `values` with a scale for every `block_size` of them.
template <const BlockFormat& B>
Loss measure(std::span<const float> values, std::size_t block_size, ScaleRule rule) {
  fp16::BlockOptions options{.scale_rule = rule};
  if constexpr (B.has_tensor_scale)
    options.tensor_scale = fp16::tensor_scale<B>(fp16::absolute_maximum(values));
  auto scale = fp16::block_scale<B>(0);
  std::uint64_t flushed = 0, saturated = 0;
  double square = 0, error_square = 0, row_square = 0, row_error_square = 0, row_errors = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (i % block_size == 0) {
      const std::size_t size = std::min(block_size, values.size() - i);
      scale = fp16::block_scale<B>(fp16::absolute_maximum(values.subspan(i, size)), options);
    }
    const auto element = fp16::encode_element<B>(values[i], scale, options.tensor_scale);
    const double rounded = fp16::decode_element<B>(element.bits, scale, options.tensor_scale);
    const double x = values[i], error = rounded - x;
    flushed += rounded == 0 && x != 0;
    saturated += element.flags.overflow;
    row_square += x * x;
    row_error_square += error * error;
    if ((i + 1) % row_length == 0) {
      row_errors += std::sqrt(row_error_square / row_square);
      square += row_square;
      error_square += row_error_square;
      row_square = row_error_square = 0;
    }
  }
  const double count = static_cast<double>(values.size());
  return {.relative_error = std::sqrt(error_square / square),
          .row_relative_error = row_errors / (count / row_length),
          .fraction_flushed = static_cast<double>(flushed) / count,
          .fraction_saturated = static_cast<double>(saturated) / count};
}

// Formats without a block format of their own, to be scaled by powers of two like the others.
constexpr BlockFormat scaled_binary16{
    .name = "binary16", .element = fp16::binary16, .scale = fp16::e8m0, .block_size = 32};
constexpr BlockFormat scaled_bfloat16{
    .name = "bfloat16", .element = fp16::bfloat16, .scale = fp16::e8m0, .block_size = 32};

/// A way to store a tensor.
struct Scheme {
  std::string_view name;
  double bits_per_value;
  std::size_t block_size;  ///< 0: one scale for the whole tensor
  Loss (*measure)(std::span<const float> values, std::size_t block_size, ScaleRule rule);

  std::string_view scaling() const { return block_size == 0 ? "tensor" : "block"; }
};

template <const BlockFormat& B>
constexpr Scheme one_scale() {
  return {.name = fp16::name_of(B.element),
          .bits_per_value = static_cast<double>(B.element.width()),
          .block_size = 0,
          .measure = measure<B>};
}

template <const BlockFormat& B>
constexpr Scheme block_scales() {
  return {.name = B.name,
          .bits_per_value = B.bits_per_value(),
          .block_size = static_cast<std::size_t>(B.block_size),
          .measure = measure<B>};
}

constexpr std::array schemes{
    one_scale<scaled_binary16>(),     one_scale<scaled_bfloat16>(),     one_scale<fp16::mxfp8_e5m2>(),
    one_scale<fp16::mxfp8_e4m3>(),    one_scale<fp16::mxfp6_e3m2>(),    one_scale<fp16::mxfp6_e2m3>(),
    one_scale<fp16::mxfp4>(),         block_scales<fp16::mxfp8_e5m2>(), block_scales<fp16::mxfp8_e4m3>(),
    block_scales<fp16::mxfp6_e3m2>(), block_scales<fp16::mxfp6_e2m3>(), block_scales<fp16::mxfp4>(),
    block_scales<fp16::nvfp4>(),
};
/// What is measured for blocks of every size.
constexpr std::array block_size_rules{ScaleRule::floor, ScaleRule::rceil};
constexpr std::array resized{one_scale<fp16::mxfp8_e4m3>(), one_scale<fp16::mxfp4>(),
                             one_scale<fp16::mxfp6_e2m3>()};

/// Normal random numbers, row by row times 2^(spread * z) with a normal z for each row.
std::vector<float> make_tensor(const Options& options, int spread) {
  constexpr float ln2 = 0x1.62e43p-1f;
  const sim::RandomStream values(options.seed, "formats.values"), rows(options.seed, "formats.rows");
  std::vector<float> tensor(static_cast<std::size_t>(options.rows) * row_length);
  for (std::size_t i = 0; i < tensor.size(); ++i) {
    const float octaves = static_cast<float>(spread) * rows.normal(i / row_length);
    tensor[i] = values.normal(i) * fp16::exp(octaves * ln2);
  }
  return tensor;
}

struct Measured {
  const Scheme* scheme;
  int spread;
  std::size_t block_size;  ///< 0: one scale for the whole tensor
  ScaleRule rule = ScaleRule::floor;
  Loss loss = {};
};

/// Every scheme at every spread.
std::vector<Measured> spread_points() {
  std::vector<Measured> points;
  for (const Scheme& scheme : schemes) {
    for (int spread = 0; spread <= largest_spread; ++spread)
      points.push_back({.scheme = &scheme, .spread = spread, .block_size = scheme.block_size});
  }
  return points;
}

/// Some elements with blocks of 1, 2, 4 ... values up to the whole tensor, at one spread.
std::vector<Measured> block_size_points(const Options& options) {
  const std::size_t elements = static_cast<std::size_t>(options.rows) * row_length;
  std::vector<Measured> points;
  for (const Scheme& scheme : resized) {
    for (const ScaleRule rule : block_size_rules) {
      for (std::size_t size = 1; size < 2 * elements; size *= 2) {
        points.push_back({.scheme = &scheme,
                          .spread = options.spread,
                          .block_size = std::min(size, elements),
                          .rule = rule});
      }
    }
  }
  return points;
}

void measure_all(std::vector<Measured>& points, const std::vector<std::vector<float>>& tensors, int threads,
                 experiments::Progress& progress) {
  experiments::parallel_for_each(points.size(), threads, [&](std::size_t i) {
    Measured& point = points[i];
    const std::vector<float>& tensor = tensors[static_cast<std::size_t>(point.spread)];
    const std::size_t block_size = point.block_size == 0 ? tensor.size() : point.block_size;
    point.loss = point.scheme->measure(tensor, block_size, point.rule);
    progress.tick();
  });
}

void write_formats(sim::RunRecord& record) {
  sim::Table& table =
      record.table("formats", {"format", "width_bits", "exponent_bits", "precision_bits", "max", "min_normal",
                               "min_subnormal", "epsilon", "unit_roundoff", "digits10", "max_digits10",
                               "range_octaves", "finite_values", "special_values"});
  for (const fp16::NamedFormat& row : fp16::formats) {
    const Format& f = row.format;
    table.row({row.name, f.width(), f.exponent_bits, f.precision, f.max(), f.min_normal(), f.min_subnormal(),
               f.epsilon(), f.unit_roundoff(), f.digits10(), f.max_digits10(), range_octaves(f),
               f.finite_values(), special_values(f)});
  }
}

void write_octaves(sim::RunRecord& record) {
  sim::Table& table = record.table(
      "octaves", {"format", "exponent_log2", "values", "values_log2", "largest_relative_spacing"});
  for (const fp16::NamedFormat& row : fp16::formats) {
    for (int e = row.format.emin_subnormal(); e <= row.format.emax(); ++e) {
      const double values = values_in_octave(row.format, e);
      const int spacing_log2 = std::max(e, row.format.emin()) - row.format.trailing_bits();
      table.row({row.name, e, values, sim::log2_of(values), std::ldexp(1.0, spacing_log2 - e)});
    }
  }
}

/// Writes the numbers of the 8-bit and smaller formats. Returns whether in every format of up to 16 bits the
/// codes, all decoded, are what `Format` computes of them.
bool write_values(sim::RunRecord& record) {
  sim::Table& table = record.table("values", {"format", "value", "value_log2"});
  bool agrees = true;
  fp16::for_each_format([&]<const Format & F>() {
    if constexpr (F.width() <= 16) {
      const std::vector<double> values = positive_values<F>();
      std::vector<double> counts(static_cast<std::size_t>(F.emax() - F.emin_subnormal() + 1));
      for (const double value : values) {
        counts.at(static_cast<std::size_t>(std::ilogb(value) - F.emin_subnormal())) += 1;
        if (F.width() <= 8) table.row({fp16::name_of(F), value, sim::log2_of(value)});
      }
      for (int e = F.emin_subnormal(); e <= F.emax(); ++e)
        agrees &= counts[static_cast<std::size_t>(e - F.emin_subnormal())] == values_in_octave(F, e);
      agrees &= values.front() == F.min_subnormal() && values.back() == F.max() &&
                F.finite_values() == (F.is_signed() ? 2 * values.size() + 1 : values.size());
    }
  });
  return agrees;
}

void write_measured(sim::RunRecord& record, const std::vector<Measured>& spreads,
                    const std::vector<Measured>& block_sizes) {
  sim::Table& spread_table = record.table(
      "spread", {"format", "scaling", "block_size", "bits_per_value", "spread_octaves", "relative_error",
                 "row_relative_error", "fraction_flushed", "fraction_saturated"});
  for (const Measured& m : spreads) {
    spread_table.row({m.scheme->name, m.scheme->scaling(), m.block_size, m.scheme->bits_per_value, m.spread,
                      m.loss.relative_error, m.loss.row_relative_error, m.loss.fraction_flushed,
                      m.loss.fraction_saturated});
  }
  sim::Table& size_table = record.table(
      "block_size", {"format", "scale_rule", "block_size", "block_size_log2", "scale_bits_per_value",
                     "relative_error", "row_relative_error", "fraction_flushed", "fraction_saturated"});
  for (const Measured& m : block_sizes) {
    const double size = static_cast<double>(m.block_size);
    size_table.row({m.scheme->name, fp16::name_of(m.rule), m.block_size, sim::log2_of(size),
                    fp16::e8m0.width() / size, m.loss.relative_error, m.loss.row_relative_error,
                    m.loss.fraction_flushed, m.loss.fraction_saturated});
  }
}

void write_summary(sim::RunRecord& record, const std::vector<Measured>& spreads, const Options& options) {
  for (const fp16::NamedFormat& row : fp16::formats)
    record.summary(fmt::format("{}.range_octaves", row.name), range_octaves(row.format));
  for (const Measured& m : spreads) {
    if (m.spread != options.spread) continue;
    const auto write = [&](std::string_view key, double value) {
      record.summary(fmt::format("{}.{}.{}", m.scheme->scaling(), m.scheme->name, key), value);
    };
    write("relative_error", m.loss.relative_error);
    write("row_relative_error", m.loss.row_relative_error);
    write("fraction_flushed", m.loss.fraction_flushed);
    write("fraction_saturated", m.loss.fraction_saturated);
  }
}

/// What all panels start from; what one of them sets would last into the next drawing.
std::string first_panel() {
  return "set multiplot\nset lmargin at screen 0.11\nset rmargin at screen 0.98\n"
         "set key noenhanced width 1\n" +
         experiments::panel(0, 2);
}

/// Above, how many numbers the wider formats have in each octave; below, every number of the small ones.
std::string values_script() {
  std::string script =
      first_panel() +
      "set xlabel \"binary exponent of the octave\"\nset xrange [-155:135]\nset xtics 20\nset grid ytics\n"
      "set ylabel \"numbers in the octave, log_2\"\nset yrange [0:25]\nset ytics 5\n";
  std::vector<experiments::Curve> curves;
  for (const std::string_view name : {"binary32", "tf32", "bfloat16", "binary16", "e5m2", "e4m3", "e2m1"}) {
    curves.push_back({.table = "octaves",
                      .where = experiments::column_is("format", name),
                      .x = "column('exponent_log2') + 0.5",
                      .y = "column('values_log2')",
                      .style = fmt::format("with histeps linetype {}", curves.size() + 1),
                      .title = std::string(name)});
  }
  script += "set key maxcols 7\n" + experiments::plot(curves) + experiments::panel(1, 2) +
            "set xlabel \"log_2 of the number\"\nset xrange [-17:17]\nset xtics 2\nset ylabel \"\"\n"
            "set grid noytics\n";
  std::string tics, plots;
  int row = 0;
  for (const std::string_view name : {"e8m0", "e2m1", "e2m3", "e3m2", "e4m3", "e5m2"}) {
    const char* separator = row++ == 0 ? "" : ", \\\n  ";
    tics += fmt::format("{}\"{}\" {}", separator, name, row);
    plots += fmt::format(
        "{}\"values.csv\" using ({} ? column('value_log2') : NaN):({} - 0.3):(0):(0.6) with vectors nohead "
        "linewidth 1 linecolor rgb {} notitle",
        separator, experiments::column_is("format", name), row, name == "e8m0" ? "grey" : "blue");
  }
  return script +
         fmt::format("set yrange [0.4:{}.6]\nset ytics ({})\nplot {}\nunset multiplot\n", row, tics, plots);
}

/// The schemes shown over the spread, those of a column of the key together; block scales are drawn solid.
std::vector<experiments::Curve> spread_curves(const std::string& y, bool titles) {
  struct Line {
    std::string_view name;
    bool block;
    int linetype;
  };
  std::vector<experiments::Curve> curves;
  for (const auto& [name, block, linetype] :
       {Line{"binary16", false, 7}, Line{"nvfp4", true, 4}, Line{"e5m2", false, 3},
        Line{"mxfp8_e5m2", true, 3}, Line{"e4m3", false, 1}, Line{"mxfp8_e4m3", true, 1},
        Line{"e2m1", false, 2}, Line{"mxfp4", true, 2}}) {
    curves.push_back({.table = "spread",
                      .where = experiments::column_is("format", name) + " && " +
                               experiments::column_is("scaling", block ? "block" : "tensor"),
                      .x = "column('spread_octaves')",
                      .y = y,
                      .style = fmt::format("with linespoints linetype {} pointtype 7{}", linetype,
                                           block ? "" : " dashtype 2"),
                      .title = titles ? std::string(name) : ""});
  }
  return curves;
}

std::string spread_script() {
  return first_panel() +
         fmt::format(
             "set xrange [0:{}]\nset xtics 1\nset key maxcols 4\n"
             "set xlabel \"spread of the rows' magnitudes, octaves (standard deviation of log_2)\"\n"
             "set ylabel \"relative error of a row, mean\"\nset logscale y\nset yrange [1e-4:2]\n"
             "set format y \"10^{{%T}}\"\n",
             largest_spread) +
         experiments::plot(spread_curves("column('row_relative_error')", true)) + experiments::panel(1, 2) +
         "set ylabel \"values that became zero, %\"\nunset logscale y\nset yrange [0:104]\n"
         "set format y \"%h\"\n" +
         experiments::plot(spread_curves("100 * column('fraction_flushed')", false)) + "unset multiplot\n";
}

std::string block_size_script(std::size_t elements) {
  std::vector<experiments::Curve> curves;
  int linetype = 0;
  for (const Scheme& scheme : resized) {
    ++linetype;
    for (const ScaleRule rule : block_size_rules) {
      const bool floor = rule == ScaleRule::floor;
      curves.push_back(
          {.table = "block_size",
           .where = experiments::column_is("format", scheme.name) + " && " +
                    experiments::column_is("scale_rule", fp16::name_of(rule)),
           .x = "column('block_size_log2')",
           .y = "column('row_relative_error')",
           .style = fmt::format("with linespoints linetype {}{}", linetype, floor ? "" : " dashtype 2"),
           .title = fmt::format("{} {}", scheme.name, fp16::name_of(rule))});
    }
  }
  const double whole = sim::log2_of(static_cast<double>(elements)),
               row = sim::log2_of(static_cast<double>(row_length));
  constexpr double low = 0.06;
  return experiments::marks({{.x = 5, .label = "MX: 32", .label_height = low},
                             {.x = row, .label = "one row", .label_height = low},
                             {.x = whole,
                              .label = "whole tensor",
                              .label_height = low,
                              .side = experiments::Mark::Side::left}}) +
         fmt::format(
             "set key noenhanced width 1 maxcols 3\nset xrange [0:{}]\nset xtics 2\n"
             "set format x \"2^{{%g}}\"\nset xlabel \"values that share a scale\"\n"
             "set ylabel \"relative error of a row, mean\"\nset logscale y\nset format y \"10^{{%T}}\"\n"
             "set yrange [0.01:2]\n",
             whole + 0.2) +
         experiments::plot(curves);
}

void draw_figures(experiments::Run& run, const Options& options, const std::string& setting) {
  run.figure({.name = "values",
              .title = "How the numbers of the formats lie",
              .caption = "Above: in each octave a format has 2^(p-1) numbers, fewer where it is subnormal. "
                         "binary64, with 2^52 an octave from 2^-1022 to 2^1023, is left out. Below: every "
                         "positive number of the small formats, and the scales of a block (e8m0), which go "
                         "on to both sides.",
              .script = values_script(),
              .height = 640});
  run.figure({.name = "spread",
              .title = "One scale for the whole tensor (dashed) and one a block (solid)",
              .caption = setting +
                         " Rows with scales of their own keep their error whatever the others are. With one "
                         "scale for the tensor small rows vanish, the sooner the fewer octaves the format "
                         "has; so do they in nvfp4, whose block scales are e4m3 numbers.",
              .script = spread_script(),
              .height = 640});
  run.figure(
      {.name = "block_size",
       .title = fmt::format("How many values can share a scale, at a spread of {} octaves", options.spread),
       .caption = setting +
                  " An e8m0 scale costs 8 / (block size) bits a value. Under the floor rule (solid) "
                  "the largest value of a block may saturate, under rceil (dashed) none does.",
       .script = block_size_script(static_cast<std::size_t>(options.rows) * row_length)});
}

std::string format_table() {
  experiments::TextTable table{
      .columns = {"format", "bits", "exponent", "precision", "max", "min normal", "min subnormal", "epsilon",
                  "digits", "octaves", "finite values", "special values"},
      .rows = {}};
  for (const fp16::NamedFormat& row : fp16::formats) {
    const Format& f = row.format;
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
  experiments::TextTable table{.columns = {"format", "a scale for", "bits a value", "error of the tensor",
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

void write_verdict(sim::RunRecord& record, const std::vector<Measured>& spreads, const Options& options,
                   const std::string& setting) {
  const auto loss_of = [&](std::string_view name, std::string_view scaling) {
    const auto wanted = [&](const Measured& m) {
      return m.spread == options.spread && m.scheme->name == name && m.scheme->scaling() == scaling;
    };
    return std::ranges::find_if(spreads, wanted)->loss;
  };
  record.verdict(fmt::format(
      "From its smallest to its largest number binary32 spans {:.1f} octaves, binary16 {:.1f}, e4m3 {:.1f} "
      "and e2m1 {:.1f}: the fewer bits, the sooner small rows vanish beside large ones, unless they have a "
      "scale of their own.",
      range_octaves(fp16::binary32), range_octaves(fp16::binary16), range_octaves(fp16::e4m3),
      range_octaves(fp16::e2m1)));
  const Loss fp4 = loss_of("e2m1", "tensor"), fp8 = loss_of("e4m3", "tensor"),
             mxfp4 = loss_of("mxfp4", "block"), mxfp8 = loss_of("mxfp8_e4m3", "block");
  const std::string hidden =
      fp8.row_relative_error > 2 * fp8.relative_error
          ? fmt::format(
                " The error of the whole tensor, {} in e4m3 with one scale, says little of this: the "
                "largest rows carry its norm.",
                percent(fp8.relative_error))
          : "";
  record.verdict(fmt::format(
      "With one scale for a tensor whose rows differ by 2^{} (standard deviation), {} of the "
      "values become zero in e2m1 and {} in e4m3, and a row has an error of {} and {}; with a scale for each "
      "32 values {} and {} become zero, and the error is {} and {}.{}",
      options.spread, percent(fp4.fraction_flushed), percent(fp8.fraction_flushed),
      percent(fp4.row_relative_error), percent(fp8.row_relative_error), percent(mxfp4.fraction_flushed),
      percent(mxfp8.fraction_flushed), percent(mxfp4.row_relative_error), percent(mxfp8.row_relative_error),
      hidden));
  const Loss nvfp4 = loss_of("nvfp4", "block");
  record.verdict(fmt::format(
      "The block scales of nvfp4 are e4m3 numbers under one scale for the tensor, so they span the "
      "octaves of e4m3: {} of its values become zero, and a row has an error of {}.",
      percent(nvfp4.fraction_flushed), percent(nvfp4.row_relative_error)));
  record.verdict(format_table());
  record.verdict(loss_table(spreads, options.spread));
  record.verdict(setting);
}

void run(experiments::Run& run, const Options& options) {
  std::vector<Measured> spreads = spread_points(), block_sizes = block_size_points(options);
  experiments::Progress progress = run.progress("rounding", spreads.size() + block_sizes.size());
  std::vector<std::vector<float>> tensors(largest_spread + 1);
  experiments::parallel_for_each(tensors.size(), run.threads(), [&](std::size_t spread) {
    tensors[spread] = make_tensor(options, static_cast<int>(spread));
  });
  measure_all(spreads, tensors, run.threads(), progress);
  measure_all(block_sizes, tensors, run.threads(), progress);

  write_formats(run.record());
  write_octaves(run.record());
  const bool agrees = write_values(run.record());
  write_measured(run.record(), spreads, block_sizes);
  write_summary(run.record(), spreads, options);
  const std::string setting = fmt::format(
      "{} rows of {} normal random numbers, each row times 2 to a normal random exponent with the spread as "
      "its standard deviation, seed {}; nearest-even; scales by the floor rule of OCP, in nvfp4 by its own.",
      options.rows, row_length, options.seed);
  draw_figures(run, options, setting);
  write_verdict(run.record(), spreads, options, setting);
  if (!agrees) run.fail("the numbers of a format, all decoded, are not what its row computes of them");
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  return experiments::run(
      argc, argv,
      {.program =
           {.name = "formats",
            .question =
                "What can each format hold, from FP64 to FP4, and why do 8 and 4 bits need block scales?",
            .example = "formats --spread 2 --out results/formats",
            .summary_keys = {{"*.range_octaves", "log2 of a format's largest number over its smallest"},
                             {"tensor.*", "with one scale for the tensor"},
                             {"block.*", "with a scale for each block"},
                             {"*.relative_error", "||rounded - x|| / ||x|| of the tensor"},
                             {"*.row_relative_error", "the same of each row, mean over the rows"},
                             {"*.fraction_flushed", "values that became zero, over all"},
                             {"*.fraction_saturated", "values beyond the largest element, over all"}}},
       .options =
           [&](experiments::CommandLine& command_line) {
             command_line.add("--rows", options.rows, fmt::format("rows of {} values each", row_length),
                              {.minimum = 1, .maximum = 16384, .quick = 32});
             command_line.add("--spread", options.spread,
                              "octaves by which rows differ in the verdict and over the block sizes",
                              {.minimum = 0, .maximum = largest_spread});
             command_line.add_seed(options.seed);
           },
       .body = [&](experiments::Run& r) { run(r, options); }});
}
