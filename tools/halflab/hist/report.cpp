#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "experiments/frame/columns.h"
#include "experiments/frame/text_table.h"
#include "experiments/gradient_histogram/paper3.h"
#include "tools/halflab/hist/findings.h"
#include "tools/halflab/inputs.h"

namespace halflab::hist {
namespace {

using namespace experiments;

/// A tensor with all that was asked about.
struct Row {
  const Findings& found;
  const TensorFound& tensor;

  CastForecast forecast() const { return found.forecast(tensor); }
  double share(std::uint64_t CastCounts::*count, const CastCounts& counts) const {
    return found.share(tensor, counts.*count);
  }
};

template <class T>
Value value_or_none(const std::optional<T>& value) {
  return value ? Value(*value) : Value("none");
}

auto of_exponents(std::uint64_t (Exponents::*count)() const) {
  return [count](const Row& row) { return (row.tensor.exponents.*count)(); };
}

auto share_at_one(std::uint64_t CastCounts::*count) {
  return [count](const Row& row) { return row.share(count, row.tensor.at_one); };
}

auto share_at_shown(std::uint64_t CastCounts::*count) {
  return [count](const Row& row) { return row.share(count, row.tensor.at_shown); };
}

std::vector<Column<Row>> columns_of_losses() {
  return {
      {"fraction_flushed_at_1", "1", share_at_one(&CastCounts::flushed)},
      {"fraction_subnormal_at_1", "1", share_at_one(&CastCounts::subnormal)},
      {"fraction_overflow_at_1", "1", share_at_one(&CastCounts::overflowed)},
      {"norm_share_flushed_at_1_at_most", "1",
       [](auto& row) { return row.forecast().norm_lost_at_most(0, row.tensor.squares); }},
      {"fraction_flushed_at_shown", "1", share_at_shown(&CastCounts::flushed)},
      {"fraction_subnormal_at_shown", "1", share_at_shown(&CastCounts::subnormal)},
      {"fraction_overflow_at_shown", "1", share_at_shown(&CastCounts::overflowed)},
      {"norm_share_flushed_at_shown_at_most", "1",
       [](auto& row) { return row.forecast().norm_lost_at_most(row.found.shown_log2, row.tensor.squares); }},
      {"plateau_lowest_log2", "log2",
       [](auto& row) { return value_or_none(row.forecast().plateau_lowest_log2()); }},
      {"plateau_highest_log2", "log2",
       [](auto& row) { return value_or_none(row.forecast().headroom_log2()); }},
      {"octaves_alive", "octaves", [](auto& row) { return value_or_none(row.forecast().octaves_alive()); }}};
}

const TableOf<Row> tensors_table{
    .name = "tensors",
    .rows = "each tensor",
    .columns = joined<Column<Row>>(
        {{"tensor", "", [](auto& row) { return row.tensor.name; }},
         {"format", "", [](auto& row) { return row.tensor.stored_as; }},
         {"shape", "", [](auto& row) { return row.tensor.shape; }},
         {"values", "values", of_exponents(&Exponents::total)},
         {"zero", "values", of_exponents(&Exponents::zero)},
         {"infinite", "values", of_exponents(&Exponents::infinite)},
         {"nan", "values", of_exponents(&Exponents::nan)},
         {"codes_in_use", "codes",
          [](auto& row) { return row.tensor.codes ? Value(row.tensor.codes->count()) : Value("none"); }},
         {"max_abs", "1", [](auto& row) { return row.tensor.exponents.max_abs(); }}},
        columns_of_losses())};

struct OctaveRow {
  const TensorFound& tensor;
  int exponent;
};

const TableOf<OctaveRow> histogram_table{
    .name = "histogram",
    .rows = "each binary exponent of each tensor and of all, as the files hold the values",
    .columns = {
        {"tensor", "", [](auto& row) { return row.tensor.name; }},
        {"exponent_log2", "log2", [](auto& row) { return row.exponent; }},
        {"values", "values", [](auto& row) { return row.tensor.exponents.octave(row.exponent).total; }},
        {"share_percent", "%", [](auto& row) {
           return 100 * static_cast<double>(row.tensor.exponents.octave(row.exponent).total) /
                  static_cast<double>(row.tensor.exponents.total());
         }}}};

struct ScaleRow {
  const Findings& found;
  const TensorFound& tensor;
  int scale_log2;
};

const TableOf<ScaleRow> scales_table{
    .name = "scales",
    .rows = "each scale up to the headroom of each tensor and of all",
    .columns = {
        {"tensor", "", [](auto& row) { return row.tensor.name; }},
        {"scale_log2", "log2", [](auto& row) { return row.scale_log2; }},
        {"fraction_flushed", "1",
         [](auto& row) { return row.found.forecast(row.tensor).flushed_share(row.scale_log2); }},
        {"norm_share_flushed_at_most", "1", [](auto& row) {
           return row.found.forecast(row.tensor).norm_lost_at_most(row.scale_log2, row.tensor.squares);
         }}}};

SummaryOf<Row> summary() {
  std::vector<SummaryRow<Row>> rows{
      {"format", "what was cast to", [](const Row& row) { return row.found.format.name; }},
      {"tensors", "tensors read", [](const Row& row) { return row.found.tensors.size(); }},
      {"values", "of all tensors", of_exponents(&Exponents::total)},
      {"zero", "exact zeros", of_exponents(&Exponents::zero)},
      {"nonfinite", "NaNs and infinities", [](const Row& row) { return row.tensor.nonfinite(); }},
      {"max_abs", "largest finite magnitude, as the files hold it",
       [](const Row& row) { return row.tensor.exponents.max_abs(); }},
      {"recommended_scale_log2", "an octave below plateau_highest_log2, or \"none\"",
       [](const Row& row) { return value_or_none(row.found.recommended_log2); }},
      {"shown_scale_log2", "the scale that \"shown\" stands for",
       [](const Row& row) { return row.found.shown_log2; }}};
  for (const Column<Row>& column : columns_of_losses())
    rows.push_back({column.name, "of all tensors, as the table has it", column.value});
  return {rows};
}

void write_tables(RunRecord& record, const Findings& found) {
  const auto add_tensor = tensors_table.start(record);
  const auto add_octave = histogram_table.start(record);
  const auto add_scale = scales_table.start(record);
  const auto add = [&](const TensorFound& tensor) {
    add_tensor({found, tensor});
    const auto lowest = tensor.exponents.lowest_exponent(), highest = tensor.exponents.highest_exponent();
    if (!lowest) return;
    for (int e = *lowest; e <= *highest; ++e) add_octave({tensor, e});
    for (int scale = first_scale_log2(found); scale <= *found.forecast(tensor).headroom_log2(); ++scale)
      add_scale({found, tensor, scale});
  };
  for (const TensorFound& tensor : found.tensors) add(tensor);
  add(found.total);
}

std::string power(int exponent) {
  return exponent == 0 ? "1" : fmt::format("2^{}", exponent);
}

std::string at_most(double share) {
  return share == 0 ? "0 %" : fmt::format("at most {}", percent(share));
}

/// Whether a loss is too small to be worth a scale.
bool is_small(double share) {
  return share < 0.001;
}

std::string plateau_clause(const Findings& found) {
  const CastForecast total = found.forecast(found.total);
  const int lowest = *total.plateau_lowest_log2(), highest = *total.headroom_log2();
  if (const double left = total.flushed_share(highest); !is_small(left))
    return fmt::format("even the largest S without overflow, {}, leaves {} zero", power(highest),
                       percent(left));
  if (lowest == highest) return fmt::format("S = {} alone keeps as much", power(highest));
  return fmt::format("every S from {} to {} keeps as much, to 0.1 % of the values", power(lowest),
                     power(highest));
}

/// Whether a smaller loss than at S = 1 is to be had at the shown scale.
bool shown_scale_helps(const Findings& found) {
  const CastCounts &one = found.total.at_one, &shown = found.total.at_shown;
  return one.overflowed > shown.overflowed || one.flushed > shown.flushed ||
         (one.flushed == shown.flushed && one.subnormal > shown.subnormal);
}

/// A format that keeps nearly all at S = 1 has nothing to recommend, unless its digits become fewer.
bool shows_scale(const Findings& found) {
  if (found.shown_log2 != found.recommended_log2) return true;
  const Row all{found, found.total};
  return shown_scale_helps(found) && (found.total.at_one.overflowed > 0 ||
                                      !is_small(all.share(&CastCounts::flushed, found.total.at_one)) ||
                                      !is_small(all.share(&CastCounts::subnormal, found.total.at_one)));
}

/// What the format keeps without a scale, and which would help.
std::string answer(const Findings& found) {
  const Row all{found, found.total};
  if (found.total.exponents.total() == 0) return "There is nothing to lose: the tensors are empty.";
  if (found.total.exponents.nonzero_finite() == 0)
    return found.total.nonfinite() > 0 ? "No value is finite and other than zero."
                                       : "There is nothing to lose: no value is other than zero.";
  const double flushed = all.share(&CastCounts::flushed, found.total.at_one),
               subnormal = all.share(&CastCounts::subnormal, found.total.at_one);
  const double norm = all.forecast().norm_lost_at_most(0, found.total.squares);
  const std::string plateau = plateau_clause(found);
  if (found.total.at_one.overflowed > 0)
    return fmt::format("Without a scale {} of the values overflow {}; S must be {} or less.",
                       percent(all.share(&CastCounts::overflowed, found.total.at_one)), found.format.name,
                       power(*all.forecast().headroom_log2()));
  if (!is_small(flushed))
    return fmt::format("Without a scale {} makes {} of the non-zero values zero, {} of the norm; {}.",
                       found.format.name, percent(flushed), at_most(norm), plateau);
  if (!is_small(subnormal) && shown_scale_helps(found))
    return fmt::format(
        "Without a scale {} makes {} of the non-zero values zero, but {} subnormal, which takes digits from "
        "them; {}.",
        found.format.name, percent(flushed), percent(subnormal), plateau);
  return fmt::format(
      "{} needs no loss scale to keep these tensors: at S = 1 it makes {} of the non-zero values zero, {} of "
      "the norm{}; {}.",
      found.format.name, percent(flushed), at_most(norm),
      is_small(subnormal)
          ? ""
          : fmt::format(", and {} subnormal, with fewer digits, as any S does", percent(subnormal)),
      plateau);
}

std::string shown_sentence(const Findings& found) {
  const Row all{found, found.total};
  const bool is_recommended = found.shown_log2 == found.recommended_log2;
  const double flushed = all.share(&CastCounts::flushed, found.total.at_shown),
               subnormal = all.share(&CastCounts::subnormal, found.total.at_shown),
               overflow = all.share(&CastCounts::overflowed, found.total.at_shown);
  std::string sentence =
      fmt::format("At {}S = {}, {} become zero and {} subnormal", is_recommended ? "the recommended " : "",
                  power(found.shown_log2), percent(flushed), percent(subnormal));
  if (overflow > 0) sentence += fmt::format(", and {} overflow", percent(overflow));
  return sentence + ".";
}

std::string nonfinite_sentence(const Findings& found) {
  const auto is_bad = [](const TensorFound& tensor) { return tensor.nonfinite() > 0; };
  const auto first = std::ranges::find_if(found.tensors, is_bad);
  if (first == found.tensors.end()) return {};
  const std::uint64_t values = found.total.nonfinite();
  return fmt::format(
      "{} value{} NaN or infinite already, which no scale cures, in {} of {} tensors, first in {}.", values,
      values == 1 ? " is" : "s are", std::ranges::count_if(found.tensors, is_bad), found.tensors.size(),
      first->name);
}

constexpr std::ptrdiff_t shown_column = 6;  ///< where the scale is told, after the overflow

std::vector<std::string> cells(const Findings& found, const TensorFound& tensor) {
  const Row row{found, tensor};
  const CastForecast forecast = row.forecast();
  const auto lowest = forecast.plateau_lowest_log2();
  std::vector<std::string> texts{
      tensor.name,
      fmt::format("{}", tensor.exponents.total()),
      percent(tensor.exponents.total() == 0 ? 0
                                            : static_cast<double>(tensor.exponents.zero()) /
                                                  static_cast<double>(tensor.exponents.total())),
      percent(row.share(&CastCounts::flushed, tensor.at_one)),
      percent(row.share(&CastCounts::subnormal, tensor.at_one)),
      percent(row.share(&CastCounts::overflowed, tensor.at_one)),
      percent(forecast.norm_lost_at_most(0, tensor.squares)),
      fmt::format("{:.3g}", tensor.exponents.max_abs()),
      lowest ? fmt::format("2^{} to 2^{}", *lowest, *forecast.headroom_log2()) : "-"};
  if (shows_scale(found))
    texts.insert(texts.begin() + shown_column, percent(row.share(&CastCounts::flushed, tensor.at_shown)));
  return texts;
}

TextTable verdict_table(const Findings& found) {
  constexpr std::size_t most_rows = 12;
  TextTable table{.columns = {"tensor", "values", "exact zero", "becomes zero", "subnormal", "overflow",
                              "of the norm", "largest", "S that keeps it"},
                  .rows = {},
                  .notes = {"becomes zero, subnormal, overflow: of the non-zero values, at S = 1.",
                            "of the norm: of the values that become zero at S = 1, at most."}};
  if (shows_scale(found))
    table.columns.insert(table.columns.begin() + shown_column,
                         fmt::format("zero at {}", power(found.shown_log2)));
  const std::vector<const TensorFound*> sorted = found.by_loss();
  for (const TensorFound* const tensor : sorted) {
    if (table.rows.size() == most_rows) {
      table.notes.push_back(fmt::format("The {} tensors that lose most of {}; --out writes all.", most_rows,
                                        found.tensors.size()));
      break;
    }
    table.rows.push_back(cells(found, *tensor));
  }
  if (found.tensors.size() > 1) table.rows.push_back(cells(found, found.total));
  return table;
}

void write_verdict(RunRecord& record, const Findings& found) {
  std::vector<std::string> sentences{nonfinite_sentence(found), answer(found)};
  if (found.total.exponents.nonzero_finite() > 0 && shows_scale(found))
    sentences.push_back(shown_sentence(found));
  sentences.push_back(found.remark);
  std::erase(sentences, "");
  record.verdict(fmt::format("{}", fmt::join(sentences, " ")));
  if (found.total.exponents.nonzero_finite() > 0) record.verdict(verdict_table(found).text());
}

}  // namespace

int first_scale_log2(const Findings& found) {
  return std::min(0, found.forecast(found.total).headroom_log2().value_or(0) - 4);
}

Outputs outputs() {
  return outputs_of(tensors_table, histogram_table, scales_table, summary(),
                    gradient_histogram::paper3_outputs());
}

void report(Run& run, const Findings& found, std::string_view figure) {
  write_tables(run.record(), found);
  summary().write(run.record(), {found, found.total});
  if (run.draws()) draw_figures(run, found, figure);
  write_verdict(run.record(), found);
}

}  // namespace halflab::hist
