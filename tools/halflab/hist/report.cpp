#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "experiments/frame/columns.h"
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
