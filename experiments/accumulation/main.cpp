/// What do the accumulator's format and the order of summation do to long sums and dot products, and so, must
/// products of FP16 numbers be summed in FP32?
///
/// Adds up keyed random vectors of halves in every way that the library knows, tensor cores among them, and
/// compares with the exact sums, with what theory says of their errors, and with sums of ones. Then averages
/// losses over mini-batches, where FP16 sums stall or overflow.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "experiments/accumulation/accumulators.h"
#include "experiments/accumulation/figures.h"
#include "experiments/accumulation/measurement.h"
#include "experiments/accumulation/verdict.h"
#include "experiments/training/laboratory.h"

namespace experiments::accumulation {
namespace {

void write_errors(Table& table, const std::vector<Measured>& rows) {
  for (const Measured& row : rows) {
    const ErrorBounds bounds = row.bounds();
    table.row({row.distribution->name, row.accumulator->name, row.length_log2, row.relative.mean.mean,
               row.relative.mean.lower(), row.relative.mean.upper(), row.relative.largest,
               row.backward.mean.mean, row.backward.mean.lower(), row.backward.mean.upper(),
               row.backward.largest, row.backward_bias, row.not_finite, bounds.worst_case,
               bounds.probabilistic});
  }
}

void write_tables(RunRecord& record, const Findings& found) {
  const std::vector<std::string> columns{
      "distribution",         "accumulator",          "length_log2",
      "relative_error",       "relative_error_lower", "relative_error_upper",
      "relative_error_max",   "backward_error",       "backward_error_lower",
      "backward_error_upper", "backward_error_max",   "backward_bias",
      "vectors_not_finite",   "backward_error_bound", "backward_error_probabilistic"};
  write_errors(record.table("dots", columns), found.errors.dots);
  write_errors(record.table("sums", columns), found.errors.sums);

  Table& stagnation = record.table(
      "stagnation", {"accumulator", "accumulator_bits", "products_per_step", "outcome", "value", "ones"});
  for (const auto& [accumulator, sum] : found.ones)
    stagnation.row({accumulator.name, accumulator.format.width(), accumulator.products_per_step,
                    name_of(sum.outcome), sum.value, sum.ones});

  Table& losses =
      record.table("loss_reduction", {"loss", "reduction", "normalisation", "batch_log2", "mean_over_exact",
                                      "relative_error", "relative_error_lower", "relative_error_upper",
                                      "relative_error_max", "repeats_not_finite"});
  for (const MeasuredMean& mean : found.means) {
    const auto& [loss, reduction, normalisation] = mean.method;
    for (const MeanError& at : mean.errors)
      losses.row({name_of(loss), name_of(reduction), name_of(normalisation), at.batch_log2, at.ratio,
                  at.error.mean, at.error.lower(), at.error.upper(), at.largest, at.not_finite});
  }
}

void write_summary(RunRecord& record, const Findings& found, const Options& options) {
  for (const Accumulator& accumulator : found.accumulators) {
    const auto at_end = [&](std::string_view distribution) -> const Measured& {
      return find(found.errors.dots, distribution, accumulator.name, options.max_length_log2);
    };
    record.summary(accumulator.name + ".positive.relative_error", at_end("uniform").relative.mean.mean);
    record.summary(accumulator.name + ".signed.backward_error", at_end("normal").backward.mean.mean);
  }
  for (const auto& [accumulator, sum] : found.ones) record.summary(accumulator.name + ".ones", sum.value);
  for (const MeasuredMean& mean : found.means) {
    const std::string method =
        fmt::format("{}.{}.{}", name_of(mean.method.loss), name_of(mean.method.reduction),
                    name_of(mean.method.normalisation));
    const std::optional<Failure> failure = mean.failure();
    record.summary(method + ".fails", failure ? name_of(failure->kind) : "no");
    record.summary(method + ".fails_from_batch_log2", failure ? Value(failure->batch_log2) : Value("none"));
  }
}

void run(Run& run, const Options& options) {
  const Findings found = measure(options, run);
  write_tables(run.record(), found);
  write_summary(run.record(), found, options);
  const std::string setting = fmt::format(
      "Dot products of {} pair{} of random vectors of halves, the shorter ones the beginnings of the "
      "longest, "
      "seed {}: positive ones of uniform numbers in [0, 1), signed ones of normal numbers; mean errors of "
      "the "
      "accumulator's last value, not rounded further.",
      options.vectors, options.vectors == 1 ? "" : "s", options.seed);
  draw_figures(run, found.means, options, setting);
  write_verdict(run.record(), found, options, setting);
}

}  // namespace
}  // namespace experiments::accumulation

int main(int argc, char** argv) {
  using namespace experiments;
  accumulation::Options options;
  return run(
      argc, argv,
      {.program =
           {.name = "accumulation",
            .question =
                "Must products of FP16 numbers be summed in FP32? What the accumulator's format and the "
                "order of summation do to long sums",
            .example = "accumulation --lengths-log2 16 --vectors 4 --out results/accumulation",
            .summary_keys =
                {{"*.positive.relative_error",
                  "|computed - exact| / |exact| of the longest dot product of uniform numbers, mean"},
                 {"*.signed.backward_error", "|computed - exact| / sum |ab| of that of normal numbers, mean"},
                 {"*.ones", "where 1 + 1 + ... ends: the value that no 1 changes, or the last finite one"},
                 {"*.fails", "how the mean of a loss goes wrong by over 1 %: stalls, overflows, no"},
                 {"*.fails_from_batch_log2", "the batch from which on it does, or \"none\""}}},
       .options =
           [&](CommandLine& command_line) {
             command_line.add("--lengths-log2", options.max_length_log2, "lengths run from 2^4 to 2^this",
                              {.minimum = accumulation::min_length_log2 + 1, .maximum = 24, .quick = 12});
             command_line.add("--vectors", options.vectors,
                              "pairs of random vectors, each measured at every length",
                              {.minimum = 1, .maximum = 1000, .quick = 3});
             command_line.add_seed(options.seed);
           },
       .body = [&](Run& r) { accumulation::run(r, options); }});
}
