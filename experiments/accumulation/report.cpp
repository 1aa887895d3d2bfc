#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "experiments/accumulation/findings.h"
#include "experiments/frame/columns.h"
#include "experiments/frame/printable.h"
#include "experiments/frame/text_table.h"

namespace experiments::accumulation {
namespace {

const std::vector<Column<Measured>>& error_columns() {
  static const std::vector<Column<Measured>> columns = [] {
    using Columns = std::vector<Column<Measured>>;
    Columns columns{{"distribution", "", [](auto& m) { return m.distribution->name; }},
                    {"accumulator", "", [](auto& m) { return m.accumulator->name; }},
                    {"length_log2", "log2", &Measured::length_log2}};
    columns = joined(
        columns, interval_columns<Measured>("relative_error", "1", [](auto& m) { return m.relative.mean; }));
    columns.push_back({"relative_error_max", "1", [](auto& m) { return m.relative.largest; }});
    columns = joined(
        columns, interval_columns<Measured>("backward_error", "1", [](auto& m) { return m.backward.mean; }));
    return joined<Column<Measured>>(
        columns, {{"backward_error_max", "1", [](auto& m) { return m.backward.largest; }},
                  {"backward_bias", "1", &Measured::backward_bias},
                  {"vectors_not_finite", "vectors", &Measured::not_finite},
                  {"backward_error_bound", "1", [](auto& m) { return m.bounds().worst_case; }},
                  {"backward_error_probabilistic", "1", [](auto& m) { return m.bounds().probabilistic; }}});
  }();
  return columns;
}

const TableOf<Measured> dots_table{.name = "dots",
                                   .rows = "dot products of each distribution, accumulator and length",
                                   .columns = error_columns()};
const TableOf<Measured> sums_table{
    .name = "sums", .rows = "sums of each distribution, accumulator and length", .columns = error_columns()};

const TableOf<Ones> stagnation_table{
    .name = "stagnation",
    .rows = "each accumulator",
    .columns = {{"accumulator", "", [](auto& o) { return o.accumulator.name; }},
                {"accumulator_bits", "bits", [](auto& o) { return o.accumulator.format.width(); }},
                {"products_per_step", "products", [](auto& o) { return o.accumulator.products_per_step; }},
                {"outcome", "", [](auto& o) { return name_of(o.sum.outcome); }},
                {"value", "1", [](auto& o) { return o.sum.value; }},
                {"ones", "ones", [](auto& o) { return o.sum.ones; }}}};

struct BatchRow {
  const MeanMethod& method;
  const MeanError& error;
};

const TableOf<BatchRow> losses_table{
    .name = "loss_reduction",
    .rows = "each batch of each loss, reduction and normalisation",
    .columns =
        joined(joined<Column<BatchRow>>(
                   {{"loss", "", [](auto& r) { return name_of(r.method.loss); }},
                    {"reduction", "", [](auto& r) { return name_of(r.method.reduction); }},
                    {"normalisation", "", [](auto& r) { return name_of(r.method.normalisation); }},
                    {"batch_log2", "log2", [](auto& r) { return r.error.batch_log2; }},
                    {"mean_over_exact", "1", [](auto& r) { return r.error.ratio; }}},
                   interval_columns<BatchRow>("relative_error", "1", [](auto& r) { return r.error.error; })),
               {{"relative_error_max", "1", [](auto& r) { return r.error.largest; }},
                {"repeats_not_finite", "repeats", [](auto& r) { return r.error.not_finite; }}})};

void write_tables(RunRecord& record, const Findings& found) {
  dots_table.write(record, found.errors.dots);
  sums_table.write(record, found.errors.sums);
  stagnation_table.write(record, found.ones);
  const auto add_batch = losses_table.start(record);
  for (const MeasuredMean& mean : found.means) {
    for (const MeanError& error : mean.errors) add_batch({mean.method, error});
  }
}

/// Dot products as the verdict calls them: of uniform numbers, by their relative error, and of normal ones, by
/// their backward error.
struct Dots {
  const Findings& found;

  const Measured& positive_row(std::string_view accumulator, int length_log2) const {
    return find(found.errors.dots, "uniform", accumulator, length_log2);
  }
  const Measured& signed_row(std::string_view accumulator, int length_log2) const {
    return find(found.errors.dots, "normal", accumulator, length_log2);
  }
  double positive_error(std::string_view accumulator, int length_log2) const {
    return positive_row(accumulator, length_log2).relative.mean.mean;
  }
};

/// The longest dot products of one accumulator.
struct Longest {
  const Dots& dots;
  std::string_view accumulator;
  int length_log2;
};

const SummaryOf<Longest> errors_summary{
    {{"<accumulator>.positive.relative_error",
      "|computed - exact| / |exact| of the longest dot product of uniform numbers, mean",
      [](auto& l) { return l.dots.positive_row(l.accumulator, l.length_log2).relative.mean; }},
     {"<accumulator>.signed.backward_error",
      "|computed - exact| / sum |ab| of the longest dot product of normal numbers, mean",
      [](auto& l) { return l.dots.signed_row(l.accumulator, l.length_log2).backward.mean; }}}};

const SummaryOf<Ones> ones_summary{
    {{"<accumulator>.ones", "where 1 + 1 + ... ends: the value that no 1 changes, or the last finite one",
      [](auto& o) { return o.sum.value; }}}};

const SummaryOf<std::optional<Failure>> failures_summary{
    {{"<loss>.<reduction>.<normalisation>.fails",
      "how the mean of a loss goes wrong by over 1 %: stalls, overflows, no",
      [](const std::optional<Failure>& f) { return f ? name_of(f->kind) : "no"; }},
     {"<loss>.<reduction>.<normalisation>.fails_from_batch_log2",
      "the batch from which on it does, or \"none\"",
      [](const std::optional<Failure>& f) { return f ? Value(f->batch_log2) : Value("none"); }}}};

void write_summary(RunRecord& record, const Findings& found, const Options& options) {
  const Dots dots{found};
  for (const Accumulator& accumulator : found.accumulators)
    errors_summary.write(record, {dots, accumulator.name, options.max_length_log2}, {accumulator.name});
  for (const Ones& ones : found.ones) ones_summary.write(record, ones, {ones.accumulator.name});
  for (const MeasuredMean& mean : found.means) {
    failures_summary.write(
        record, mean.failure(),
        {name_of(mean.method.loss), name_of(mean.method.reduction), name_of(mean.method.normalisation)});
  }
}

/// A length at which layers are, and the longest.
std::vector<int> shown_lengths(const Options& options) {
  constexpr int layer_length_log2 = 12;
  if (options.max_length_log2 <= layer_length_log2) return {options.max_length_log2};
  return {layer_length_log2, options.max_length_log2};
}

std::string error_text(double error) {
  return fmt::format("{:.1e}", error);
}

/// The shortest length from which on `holds` does up to the longest.
template <class Holds>
std::optional<int> holds_from(const Options& options, Holds holds) {
  int from = options.max_length_log2 + 1;
  while (from > min_length_log2 && holds(from - 1)) --from;
  return from > options.max_length_log2 ? std::nullopt : std::optional(from);
}

/// Whether FP16 sums do.
std::string answer(const Dots& dots, const Options& options) {
  const int longest = options.max_length_log2;
  const double error = dots.positive_error("fp16_fma", longest);
  const double largest = dots.positive_row("fp16_fma", longest).relative.largest;
  if (error <= failing_error)
    return fmt::format(
        "Up to 2^{} positive products can be summed in FP16: 2^{} of them are off by {}, at most by {}.",
        longest, longest, percent(error), percent(largest));
  const std::optional<int> from = holds_from(options, [&](int length_log2) {
    const Measured& row = dots.positive_row("fp16_fma", length_log2);
    return row.relative.mean.mean > row.bounds().probabilistic;
  });
  return fmt::format(
      "Long sums need FP32: added up in FP16 one after the other, 2^{} positive products are off by {}, as "
      "what is below "
      "half an ulp of the growing sum is lost.{}",
      longest, percent(error),
      from ? fmt::format(" From 2^{} on that is worse than sqrt(n) u, which errors of mean zero stay near.",
                         *from)
           : "");
}

/// What another order does for FP16.
std::string order_sentence(const Dots& dots, const Options& options) {
  const std::optional<int> overflow = holds_from(options, [&](int length_log2) {
    return std::isinf(dots.positive_error("fp16_pairwise", length_log2));
  });
  return fmt::format(
      "Added up pairwise, FP16 keeps positive products {}.",
      overflow ? fmt::format("until their sum is beyond 65504, from 2^{} on, which no order mends", *overflow)
               : "at all of these lengths");
}

/// The tensor cores with FP32 accumulators.
std::vector<std::string> truncating(const Findings& found) {
  std::vector<std::string> names;
  for (const Accumulator& accumulator : found.accumulators) {
    if (accumulator.truncates) names.push_back(accumulator.name);
  }
  return names;
}

std::string tensor_core_sentence(const Dots& dots, const Options& options) {
  const int longest = options.max_length_log2;
  const std::string worst = std::ranges::max(truncating(dots.found), {}, [&](const std::string& name) {
    return dots.positive_error(name, longest);
  });
  const double of_fp32 = dots.positive_error("fp32", longest);
  const std::string times = of_fp32 == 0 ? ""
                                         : fmt::format(", in {} to {:.3g} times those of a chain in FP32",
                                                       worst, dots.positive_error(worst, longest) / of_fp32);
  return fmt::format(
      "FP32 on a tensor core is no FP32 chain: its steps truncate, so that on positive products all errors "
      "have one sign "
      "and add up{}.",
      times);
}

/// Against sum |ab| errors of mean zero do not grow, and against the sum itself, which cancels, they are large.
std::string signed_sentence(const Dots& dots, const Options& options) {
  const int longest = options.max_length_log2;
  const auto error_at = [&](int length_log2) {
    const Estimate& error = dots.signed_row("fp16_fma", length_log2).backward.mean;
    return std::isfinite(error.half_width) ? fmt::format("{:.2e} ± {:.1e}", error.mean, error.half_width)
                                           : fmt::format("{:.2e}", error.mean);
  };
  const ErrorStatistics& of_sum = dots.signed_row("fp16_fma", longest).relative;
  return fmt::format(
      "Signed products of mean zero cancel: in FP16 2^{} of them are off by {} of their sum, at most by {}. "
      "Over sum |ab| the error is {} at 2^{} and {} at 2^{}; errors of mean zero would not grow (Higham and "
      "Mary 2020).",
      longest, percent(of_sum.mean.mean), percent(of_sum.largest), error_at(min_length_log2), min_length_log2,
      error_at(longest), longest);
}

/// Which ways to a loss's mean go wrong.
std::string loss_sentence(const Findings& found) {
  std::vector<std::string> ways;
  for (const MeasuredMean& mean : found.means) {
    std::string way =
        fmt::format("{} {}", name_of(mean.method.reduction), name_of(mean.method.normalisation));
    if (mean.failure() && std::ranges::find(ways, way) == ways.end()) ways.push_back(std::move(way));
  }
  if (ways.empty()) return "No way to the mean of a loss over a mini-batch is wrong by more than 1 %.";
  return fmt::format("The mean of a loss over a mini-batch is wrong by more than 1 % with {}.",
                     fmt::join(ways, ", "));
}

std::string verdict_errors(const Dots& dots, const Options& options) {
  TextTable table{.columns = {"accumulator"}, .rows = {}};
  for (const std::string_view kind : {"positive", "signed"}) {
    for (const int length_log2 : shown_lengths(options))
      table.columns.push_back(fmt::format("{}, 2^{}", kind, length_log2));
  }
  table.columns.push_back("1 + 1 + ...");
  for (const auto& [accumulator, sum] : dots.found.ones) {
    std::vector<std::string> cells{accumulator.name};
    for (const int length_log2 : shown_lengths(options))
      cells.push_back(error_text(dots.positive_error(accumulator.name, length_log2)));
    for (const int length_log2 : shown_lengths(options))
      cells.push_back(error_text(dots.signed_row(accumulator.name, length_log2).backward.mean.mean));
    cells.push_back(sum.outcome == SumOfOnes::Outcome::stagnates
                        ? fmt::format("stops at {:.0f}", sum.value)
                        : fmt::format("overflows with {} ones", sum.ones));
    table.rows.push_back(cells);
    if (table.rows.size() == dots.found.accumulators.size()) break;
  }
  return table.text();
}

std::string verdict_losses(const Findings& found) {
  TextTable table{.columns = {"loss", "reduction", "normalisation", "wrong by over 1 %",
                              fmt::format("mean / exact, 2^{}", max_batch_log2)},
                  .rows = {}};
  for (const MeasuredMean& mean : found.means) {
    const std::optional<Failure> failure = mean.failure();
    const double ratio = mean.errors.back().ratio;
    table.rows.push_back(
        {std::string(name_of(mean.method.loss)), std::string(name_of(mean.method.reduction)),
         std::string(name_of(mean.method.normalisation)),
         failure ? fmt::format("{} from 2^{}", name_of(failure->kind), failure->batch_log2) : "no",
         std::isfinite(ratio) ? fmt::format("{:.4f}", ratio) : "inf"});
  }
  return table.text();
}

}  // namespace

Outputs outputs() {
  return outputs_of(dots_table, sums_table, stagnation_table, losses_table, errors_summary, ones_summary,
                    failures_summary);
}

void report(Run& run, const Findings& found, const Options& options) {
  RunRecord& record = run.record();
  write_tables(record, found);
  write_summary(record, found, options);
  const std::string setting = fmt::format(
      "Dot products of {} of random vectors of halves, the shorter ones the beginnings of the "
      "longest, "
      "seed {}: positive ones of uniform numbers in [0, 1), signed ones of normal numbers; mean errors of "
      "the "
      "accumulator's last value, not rounded further.",
      counted(options.vectors, "pair"), options.seed);
  draw_figures(run, found.means, options, setting);
  const Dots dots{found};
  record.verdict(answer(dots, options) + " " + order_sentence(dots, options));
  record.verdict(tensor_core_sentence(dots, options));
  record.verdict(signed_sentence(dots, options));
  record.verdict(loss_sentence(found));
  record.verdict(verdict_errors(dots, options));
  record.verdict(verdict_losses(found));
  record.verdict(setting +
                 " Losses are of predictions and targets that are normal numbers. Their sums or values are "
                 "multiplied by 1/n, since n itself is no number of FP16 from 2^16 on.");
}

}  // namespace experiments::accumulation
