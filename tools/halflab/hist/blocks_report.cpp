#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "experiments/frame/columns.h"
#include "experiments/frame/figure.h"
#include "experiments/frame/text_table.h"
#include "fp16/codec.h"
#include "tools/halflab/formats.h"
#include "tools/halflab/hist/blocks.h"

namespace halflab::hist {
namespace {

using namespace experiments;

const char* const with_blocks = "block formats";

double scale_value(const fp16::BlockFormat& format, std::size_t code) {
  return with_format(format.scale, [&]<const fp16::Format & F>() {
    return double{fp16::decode<F>(static_cast<fp16::Bits<F>>(code))};
  });
}

const TableOf<BlockedTensor> blocks_table{
    .name = "blocks",
    .rows = "each tensor",
    .columns = {{"tensor", "", [](auto& row) { return row.found.name; }},
                {"shape", "", [](auto& row) { return row.found.shape; }},
                {"values", "values", [](auto& row) { return row.found.values; }},
                {"blocks", "blocks", [](auto& row) { return row.blocks; }},
                {"fraction_dead", "1", [](auto& row) { return row.found.share(row.found.flushed); }},
                {"fraction_clipped", "1", [](auto& row) { return row.found.share(row.found.overflowed); }},
                {"relative_error", "1", [](auto& row) { return row.found.relative_error(); }}},
    .when = with_blocks};

struct ScaleRow {
  const BlockedTensor& tensor;
  double scale;
  std::uint64_t blocks;
};

const TableOf<ScaleRow> block_scales_table{
    .name = "block_scales",
    .rows = "each scale that occurs, of each tensor and of all",
    .columns = {{"tensor", "", [](auto& row) { return row.tensor.found.name; }},
                {"scale", "1", [](auto& row) { return row.scale; }},
                {"blocks", "blocks", [](auto& row) { return row.blocks; }},
                {"share_percent", "%",
                 [](auto& row) {
                   return 100 * static_cast<double>(row.blocks) / static_cast<double>(row.tensor.blocks);
                 }}},
    .when = with_blocks};

const TableOf<WorstBlock> worst_table{
    .name = "worst_blocks",
    .rows = "each of the blocks that lose most",
    .columns = {{"tensor", "", [](auto& row) { return row.tensor; }},
                {"first_index", "", [](auto& row) { return row.first_index; }},
                {"relative_error", "1", [](auto& row) { return row.relative_error; }},
                {"largest", "1", [](auto& row) { return row.largest; }}},
    .when = with_blocks};

const SummaryOf<BlockFindings> summary{
    {{"block_format", "what the values were rounded to",
      [](const BlockFindings& found) { return found.recipe.format_name; }, with_blocks},
     {"blocks", "of all tensors", [](const BlockFindings& found) { return found.total.blocks; }, with_blocks},
     {"fraction_dead", "of the non-zero values, those that become zero",
      [](const BlockFindings& found) { return found.total.found.share(found.total.found.flushed); },
      with_blocks},
     {"fraction_clipped", "of the non-zero values, those beyond the largest number of their block",
      [](const BlockFindings& found) { return found.total.found.share(found.total.found.overflowed); },
      with_blocks},
     {"relative_error", "norm of the differences over the norm",
      [](const BlockFindings& found) { return found.total.found.relative_error(); }, with_blocks}}};

void add_scales(RunRecord& record, const BlockFindings& found) {
  const auto add = block_scales_table.start(record);
  const auto add_all = [&](const BlockedTensor& tensor) {
    for (std::size_t code = 0; code < tensor.scales.size(); ++code) {
      if (tensor.scales[code] > 0) add({tensor, scale_value(*found.recipe.block, code), tensor.scales[code]});
    }
  };
  for (const BlockedTensor& tensor : found.tensors) add_all(tensor);
  add_all(found.total);
}

void draw(Run& run, const BlockFindings& found) {
  run.figure(
      {.name = "block_scales",
       .title = fmt::format("Scales of the blocks in {}", found.recipe.format_name),
       .caption = "All tensors together; a scale that is a NaN, of a block with something that is not "
                  "finite, is left out.",
       .script = "unset key\nset logscale x 2\nset xlabel \"scale of a block\"\nset ylabel \"share of "
                 "blocks, %\"\nset yrange [0:*]\nset format x '2^{%L}'\n" +
                 plot({{.table = "block_scales",
                        .where = column_is("tensor", found.total.found.name) + " && column('scale') > 0",
                        .x = "column('scale')",
                        .y = "column('share_percent')",
                        .style = "with impulses linewidth 3 linecolor rgb blue"}})});
}

TextTable verdict_table(const BlockFindings& found) {
  constexpr std::size_t most_rows = 12;
  TextTable table{
      .columns = {"tensor", "values", "dead zone", "clipped", "lost", "relative error"},
      .rows = {},
      .notes = {
          "dead zone, clipped: of the non-zero values; lost: finite values that become NaN or infinite."}};
  std::vector<const quantize::TensorFound*> sorted;
  for (const BlockedTensor& tensor : found.tensors) sorted.push_back(&tensor.found);
  std::ranges::stable_sort(sorted, std::greater(),
                           [](const quantize::TensorFound* tensor) { return tensor->relative_error(); });
  if (sorted.size() > most_rows) {
    table.notes.push_back(fmt::format("The {} tensors with the largest errors of {}; --out writes all.",
                                      most_rows, sorted.size()));
    sorted.resize(most_rows);
  }
  sorted.push_back(&found.total.found);
  for (const quantize::TensorFound* const tensor : sorted)
    table.rows.push_back({tensor->name, fmt::format("{}", tensor->values),
                          percent(tensor->share(tensor->flushed)), percent(tensor->share(tensor->overflowed)),
                          fmt::format("{}", tensor->lost),
                          tensor->has_nothing_left() ? "-" : percent(tensor->relative_error())});
  if (found.total.found.is_rounded_first) table.notes.push_back(quantize::rounded_first_note);
  return table;
}

}  // namespace

Outputs block_outputs() {
  return outputs_of(blocks_table, block_scales_table, worst_table, summary);
}

void report(Run& run, const BlockFindings& found) {
  blocks_table.write(run.record(), found.tensors);
  worst_table.write(run.record(), found.worst);
  summary.write(run.record(), found);
  add_scales(run.record(), found);
  if (run.draws() && found.total.blocks > 0) draw(run, found);
  std::string verdict = quantize::losses_in_words(found.total.found, found.recipe, "");
  if (!found.worst.empty())
    verdict +=
        fmt::format(" The worst block, from {} of {} on, is off by {}.", found.worst.front().first_index,
                    found.worst.front().tensor, percent(found.worst.front().relative_error));
  run.record().verdict(verdict);
  run.record().verdict(verdict_table(found).text());
}

}  // namespace halflab::hist
