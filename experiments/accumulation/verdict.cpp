#include "experiments/accumulation/verdict.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <string_view>
#include <vector>

#include "experiments/frame/text_table.h"

namespace experiments::accumulation {
namespace {

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
  double signed_error(std::string_view accumulator, int length_log2) const {
    return signed_row(accumulator, length_log2).backward.mean.mean;
  }
};

/// A length at which layers are, and the longest.
std::vector<int> shown_lengths(const Options& options) {
  constexpr int layer_length_log2 = 12;
  if (options.max_length_log2 <= layer_length_log2) return {options.max_length_log2};
  return {layer_length_log2, options.max_length_log2};
}

std::string error_text(double error) {
  return fmt::format("{:.1e}", error);
}

/// "2.3e-05 at 2^12 and 6.1e-03 at 2^20"
template <class ErrorAt>
std::string at_lengths(const Options& options, ErrorAt error_at) {
  std::string text;
  for (const int length_log2 : shown_lengths(options))
    text += fmt::format("{}{} at 2^{}", text.empty() ? "" : " and ", error_text(error_at(length_log2)),
                        length_log2);
  return text;
}

/// The shortest length from which on `holds` does up to the longest.
template <class Holds>
std::optional<int> holds_from(const Options& options, Holds holds) {
  int from = options.max_length_log2 + 1;
  while (from > min_length_log2 && holds(from - 1)) --from;
  return from > options.max_length_log2 ? std::nullopt : std::optional(from);
}

std::string chain_sentence(const Dots& dots, const Options& options) {
  const auto error_of = [&](std::string_view name) {
    return at_lengths(options, [&](int length_log2) { return dots.positive_error(name, length_log2); });
  };
  std::string worse;
  for (const std::string_view name : {"fp16_fma", "fp32"}) {
    const std::optional<int> from = holds_from(options, [&](int length_log2) {
      const Measured& row = dots.positive_row(name, length_log2);
      return row.relative.mean.mean > row.bounds().probabilistic;
    });
    if (from) worse += fmt::format("{}2^{} ({})", worse.empty() ? "" : " and ", *from, name);
  }
  const bool fails = dots.positive_error("fp16_fma", options.max_length_log2) > failing_error;
  return fmt::format(
             "{} Positive products, added up one after the other: relative error {} in FP16 (fp16_fma), {} "
             "in "
             "FP32.",
             fails ? "A chain of products whose sum grows cannot be added up in FP16."
                   : "At these lengths products can be added up in FP16.",
             error_of("fp16_fma"), error_of("fp32")) +
         (worse.empty()
              ? ""
              : fmt::format(" Worse than sqrt(n) u from {} on: what is below half an ulp of the sum "
                            "is lost, and such errors have no mean of zero.",
                            worse));
}

std::string order_sentence(const Dots& dots, const Options& options) {
  const auto error_at = [&](int length_log2) { return dots.positive_error("fp16_pairwise", length_log2); };
  const std::optional<int> overflow =
      holds_from(options, [&](int length_log2) { return std::isinf(error_at(length_log2)); });
  const int first = shown_lengths(options).front();
  return fmt::format(
      "Pairwise in FP16 the same products are off by {} at 2^{}{}.", error_text(error_at(first)), first,
      overflow ? fmt::format("; from 2^{} on their sum is beyond 65504, which no order mends", *overflow)
               : "");
}

std::string signed_sentence(const Dots& dots, const Options& options) {
  const auto from_to = [&](std::string_view name) {
    return fmt::format("{} at 2^{} and {} at 2^{}", error_text(dots.signed_error(name, min_length_log2)),
                       min_length_log2, error_text(dots.signed_error(name, options.max_length_log2)),
                       options.max_length_log2);
  };
  return fmt::format(
      "Signed products of mean zero: the error over sum |ab| is {} in FP16 (fp16_fma), {} in FP32; theory "
      "expects no growth of it (Higham and Mary 2020).",
      from_to("fp16_fma"), from_to("fp32"));
}

/// ", 40 times the FP32 chain's"; empty where that has no error.
std::string times(double error, double of_fp32) {
  return of_fp32 == 0 ? "" : fmt::format(", {:.3g} times the FP32 chain's", error / of_fp32);
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
  const std::vector<std::string> names = truncating(dots.found);
  const auto [best, worst] = std::ranges::minmax(
      names, {}, [&](const std::string& name) { return dots.positive_error(name, longest); });
  const auto of = [&](const std::string& name) {
    return fmt::format("{}: {}", name, at_lengths(options, [&](int length_log2) {
                         return dots.positive_error(name, length_log2);
                       }));
  };
  const std::string biased =
      std::ranges::max(names, {}, [&](const std::string& name) { return dots.signed_error(name, longest); });
  const Measured& row = dots.signed_row(biased, longest);
  return fmt::format(
      "FP32 on a tensor core is no FP32 chain: its steps truncate, so that on positive products all errors "
      "have one sign and add up: {}{}; {}{}. Signed products: {} is off by {} of sum |ab| at 2^{}{}; "
      "averaged "
      "with its sign it is {:.1e} {} zero.",
      of(best), times(dots.positive_error(best, longest), dots.positive_error("fp32", longest)), of(worst),
      times(dots.positive_error(worst, longest), dots.positive_error("fp32", longest)), biased,
      error_text(row.backward.mean.mean), longest,
      times(row.backward.mean.mean, dots.signed_error("fp32", longest)), std::fabs(row.backward_bias),
      row.backward_bias < 0 ? "toward" : "away from");
}

/// Of each reduction and normalisation: how its losses fail.
std::string loss_sentence(const Findings& found) {
  std::vector<std::string> ways;
  std::vector<std::string> failures;
  for (const MeasuredMean& mean : found.means) {
    const std::optional<Failure> failure = mean.failure();
    if (!failure) continue;
    const std::string way =
        fmt::format("{} {}", name_of(mean.method.reduction), name_of(mean.method.normalisation));
    const std::string text = fmt::format("{} {} from 2^{}", name_of(mean.method.loss), name_of(failure->kind),
                                         failure->batch_log2);
    const auto known = std::ranges::find(ways, way);
    if (known != ways.end()) {
      failures[static_cast<std::size_t>(known - ways.begin())] += ", " + text;
    } else {
      ways.push_back(way);
      failures.push_back(way + ": " + text);
    }
  }
  return fmt::format("Means of losses over a mini-batch that are wrong by more than 1 %: {}.",
                     failures.empty() ? "none" : fmt::format("{}", fmt::join(failures, "; ")));
}

std::string errors_table(const Dots& dots, const Options& options) {
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
      cells.push_back(error_text(dots.signed_error(accumulator.name, length_log2)));
    cells.push_back(sum.outcome == SumOfOnes::Outcome::stagnates
                        ? fmt::format("stops at {:.0f}", sum.value)
                        : fmt::format("overflows with {} ones", sum.ones));
    table.rows.push_back(cells);
    if (table.rows.size() == dots.found.accumulators.size()) break;
  }
  return table.text();
}

std::string losses_table(const Findings& found) {
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

void write_verdict(RunRecord& record, const Findings& found, const Options& options,
                   const std::string& setting) {
  const Dots dots{found};
  record.verdict(chain_sentence(dots, options) + " " + order_sentence(dots, options));
  record.verdict(tensor_core_sentence(dots, options));
  record.verdict(signed_sentence(dots, options));
  record.verdict(loss_sentence(found));
  record.verdict(errors_table(dots, options));
  record.verdict(losses_table(found));
  record.verdict(setting +
                 " Losses are of predictions and targets that are normal numbers. Their sums or values are "
                 "multiplied by 1/n, since n itself is no number of FP16 from 2^16 on.");
}

}  // namespace experiments::accumulation
