/// What can each format hold, from FP64 to FP4, and why do 8 and 4 bits need block scales?
///
/// Tabulates the formats and counts their numbers octave by octave. Then measures: a tensor of normal random
/// numbers, each row of it times a magnitude of its own, is rounded to the small formats, with one scale for
/// all of it and with one scale a block, and compared with what it was.

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "experiments/formats/figures.h"
#include "experiments/formats/measurement.h"
#include "experiments/formats/numbers.h"
#include "experiments/frame/text_table.h"
#include "experiments/training/laboratory.h"
#include "fp16/formats.h"
#include "sim/tensor/log2.h"

namespace experiments::formats {
namespace {

void write_spreads(RunRecord& record, const std::vector<Measured>& spreads) {
  Table& table = record.table(
      "spread", {"format", "scaling", "block_size", "bits_per_value", "spread_octaves", "relative_error",
                 "row_relative_error", "fraction_flushed", "fraction_saturated"});
  for (const Measured& m : spreads) {
    table.row({m.scheme->name, m.scheme->scaling(), m.block_size, m.scheme->bits_per_value, m.spread,
               m.loss.relative_error, m.loss.row_relative_error, m.loss.fraction_flushed,
               m.loss.fraction_saturated});
  }
}

void write_block_sizes(RunRecord& record, const std::vector<Measured>& block_sizes) {
  Table& table = record.table(
      "block_size", {"format", "scale_rule", "block_size", "block_size_log2", "scale_bits_per_value",
                     "relative_error", "row_relative_error", "fraction_flushed", "fraction_saturated"});
  for (const Measured& m : block_sizes) {
    const double size = static_cast<double>(m.block_size);
    table.row({m.scheme->name, fp16::name_of(m.rule), m.block_size, sim::log2_of(size),
               fp16::e8m0.width() / size, m.loss.relative_error, m.loss.row_relative_error,
               m.loss.fraction_flushed, m.loss.fraction_saturated});
  }
}

void write_summary(RunRecord& record, const std::vector<Measured>& spreads, int spread) {
  for (const fp16::NamedFormat& row : fp16::formats)
    record.summary(fmt::format("{}.range_octaves", row.name), range_octaves(row.format));
  for (const Measured& m : spreads) {
    if (m.spread != spread) continue;
    const auto write = [&](std::string_view key, double value) {
      record.summary(fmt::format("{}.{}.{}", m.scheme->scaling(), m.scheme->name, key), value);
    };
    write("relative_error", m.loss.relative_error);
    write("row_relative_error", m.loss.row_relative_error);
    write("fraction_flushed", m.loss.fraction_flushed);
    write("fraction_saturated", m.loss.fraction_saturated);
  }
}

std::string format_table() {
  TextTable table{.columns = {"format", "bits", "exponent", "precision", "max", "min normal", "min subnormal",
                              "epsilon", "digits", "octaves", "finite values", "special values"},
                  .rows = {}};
  for (const fp16::NamedFormat& row : fp16::formats) {
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

/// What binary32, binary16, e4m3 and e2m1 span.
std::string range_sentence() {
  return fmt::format(
      "From its smallest to its largest number binary32 spans {:.1f} octaves, binary16 {:.1f}, e4m3 {:.1f} "
      "and e2m1 {:.1f}: the fewer bits, the sooner small rows vanish beside large ones, unless they have a "
      "scale of their own.",
      range_octaves(fp16::binary32), range_octaves(fp16::binary16), range_octaves(fp16::e4m3),
      range_octaves(fp16::e2m1));
}

const Loss& loss_of(const std::vector<Measured>& spreads, int spread, std::string_view scheme,
                    std::string_view scaling) {
  const auto wanted = [&](const Measured& m) {
    return m.spread == spread && m.scheme->name == scheme && m.scheme->scaling() == scaling;
  };
  return std::ranges::find_if(spreads, wanted)->loss;
}

/// One scale for the tensor against one for each block of MX.
std::string scaling_sentence(const std::vector<Measured>& spreads, int spread) {
  const Loss &fp4 = loss_of(spreads, spread, "e2m1", "tensor"),
             &fp8 = loss_of(spreads, spread, "e4m3", "tensor"),
             &mxfp4 = loss_of(spreads, spread, "mxfp4", "block"),
             &mxfp8 = loss_of(spreads, spread, "mxfp8_e4m3", "block");
  const std::string hidden =
      fp8.row_relative_error > 2 * fp8.relative_error
          ? fmt::format(
                " The error of the whole tensor, {} in e4m3 with one scale, says little of this: the "
                "largest rows carry its norm.",
                percent(fp8.relative_error))
          : "";
  return fmt::format(
      "With one scale for a tensor whose rows differ by 2^{} (standard deviation), {} of the "
      "values become zero in e2m1 and {} in e4m3, and a row has an error of {} and {}; with a scale for each "
      "32 values {} and {} become zero, and the error is {} and {}.{}",
      spread, percent(fp4.fraction_flushed), percent(fp8.fraction_flushed), percent(fp4.row_relative_error),
      percent(fp8.row_relative_error), percent(mxfp4.fraction_flushed), percent(mxfp8.fraction_flushed),
      percent(mxfp4.row_relative_error), percent(mxfp8.row_relative_error), hidden);
}

std::string nvfp4_sentence(const Loss& nvfp4) {
  return fmt::format(
      "The block scales of nvfp4 are e4m3 numbers under one scale for the tensor, so they span the "
      "octaves of e4m3: {} of its values become zero, and a row has an error of {}.",
      percent(nvfp4.fraction_flushed), percent(nvfp4.row_relative_error));
}

void write_verdict(RunRecord& record, const std::vector<Measured>& spreads, int spread,
                   const std::string& setting) {
  record.verdict(range_sentence());
  record.verdict(scaling_sentence(spreads, spread));
  record.verdict(nvfp4_sentence(loss_of(spreads, spread, "nvfp4", "block")));
  record.verdict(format_table());
  record.verdict(loss_table(spreads, spread));
  record.verdict(setting);
}

void run(Run& run, const Options& options) {
  const Findings found = measure(options, run);
  write_formats(run.record());
  write_octaves(run.record());
  write_values(run.record());
  write_spreads(run.record(), found.spreads);
  write_block_sizes(run.record(), found.block_sizes);
  write_summary(run.record(), found.spreads, options.spread);
  const std::string setting = fmt::format(
      "{} row{} of {} normal random numbers, each row times 2 to a normal random exponent with the spread as "
      "its standard deviation, seed {}; nearest-even; scales by the floor rule of OCP, in nvfp4 by its own.",
      options.rows, options.rows == 1 ? "" : "s", row_length, options.seed);
  draw_figures(run, options, setting);
  write_verdict(run.record(), found.spreads, options.spread, setting);
  if (!codes_agree()) run.fail("the numbers of a format, all decoded, are not what its row computes of them");
}

}  // namespace
}  // namespace experiments::formats

int main(int argc, char** argv) {
  using namespace experiments;
  formats::Options options;
  return run(
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
           [&](CommandLine& command_line) {
             command_line.add("--rows", options.rows,
                              fmt::format("rows of {} values each", formats::row_length),
                              {.minimum = 1, .maximum = 16384, .quick = 32});
             command_line.add("--spread", options.spread,
                              "octaves by which rows differ in the verdict and over the block sizes",
                              {.minimum = 0, .maximum = formats::largest_spread});
             command_line.add_seed(options.seed);
           },
       .body = [&](Run& r) { formats::run(r, options); }});
}
