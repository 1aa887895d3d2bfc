#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <string_view>

#include "experiments/frame/columns.h"
#include "experiments/frame/text_table.h"
#include "experiments/op_precision/lists.h"
#include "sim/ops/mean.h"

namespace experiments::op_precision {
namespace {

/// An operation's worst evaluation in one step of a model, with sums in one format.
struct EvaluationRow {
  const Row& row;
  Reductions reductions;

  const Measured& worst() const { return row.worst; }
  const Loss& loss() const { return row.worst.loss(reductions); }
};

/// Whether the criterion, its thresholds times `factor`, asks for FP32.
auto needs_fp32(double factor) {
  return [factor](const EvaluationRow& r) { return int{Criterion().times(factor).needs_fp32(r.loss())}; };
}

const TableOf<EvaluationRow> operations_table{
    .name = "operations",
    .rows = "each operation in each step of each model that was looked at, with sums in FP32 and in FP16",
    .columns = {
        {"operation", "", [](auto& r) { return r.row.operation->name; }},
        {"model", "", [](auto& r) { return r.row.model; }},
        {"step", "steps", [](auto& r) { return r.row.step; }},
        {"operands", "", [](auto& r) { return r.row.operands; }},
        {"evaluations", "evaluations", [](auto& r) { return r.row.evaluations; }},
        {"reductions", "", [](auto& r) { return name_of(r.reductions); }},
        {"operand_max_abs", "1", [](auto& r) { return r.worst().ranges.operand; }},
        {"output_max_abs", "1", [](auto& r) { return r.worst().ranges.output; }},
        {"output_gradient_max_abs", "1", [](auto& r) { return r.worst().ranges.output_gradient; }},
        {"input_gradient_max_abs", "1", [](auto& r) { return r.worst().ranges.input_gradient; }},
        {"fraction_overflow", "1", [](auto& r) { return r.loss().fraction_overflow; }},
        {"fraction_flushed", "1", [](auto& r) { return r.loss().fraction_flushed; }},
        {"fraction_incoming_flushed", "1", [](auto& r) { return r.loss().fraction_incoming_flushed; }},
        {"forward_error_u", "2^-11", [](auto& r) { return r.loss().forward_error_u; }},
        {"gradient_error_u", "2^-11", [](auto& r) { return r.loss().gradient_error_u; }},
        {"operand_rounding_u", "2^-11", [](auto& r) { return r.worst().operand_rounding_u; }},
        {"needs_fp32_half_thresholds", "0 or 1", needs_fp32(0.5)},
        {"needs_fp32", "0 or 1", needs_fp32(1)},
        {"needs_fp32_double_thresholds", "0 or 1", needs_fp32(2)}}};

/// An operation's place in the lists.
struct EntryRow {
  const Findings& findings;
  const ListEntry& entry;
  std::size_t rank = 0;
  Measured worst = entry.findings->worst();
  Headroom headroom = entry.findings->headroom.value_or(
      Headroom{.octaves = std::nan(""), .operand = std::nan(""), .failure = Failure::none});

  const Loss& loss() const { return worst.loss(findings.reductions); }
  const Loss& with_fp16() const { return worst.loss(Reductions::fp16); }
  double if_measured(double number) const {
    return entry.ours != Placement::unmeasured ? number : std::nan("");
  }
};

const TableOf<EntryRow> lists_table{
    .name = "lists",
    .rows = "each operation",
    .columns = {
        {"rank", "1", &EntryRow::rank},
        {"operation", "", [](auto& r) { return r.entry.operation().name; }},
        {"ours", "", [](auto& r) { return name_of(r.entry.ours); }},
        {"ours_fp16_reductions", "", [](auto& r) { return name_of(r.entry.with_fp16_reductions); }},
        {"ours_half_thresholds", "", [](auto& r) { return name_of(r.entry.at_half); }},
        {"ours_double_thresholds", "", [](auto& r) { return name_of(r.entry.at_double); }},
        {"torch_autocast", "", [](auto& r) { return name_of(r.entry.operation().casts->torch_autocast); }},
        {"apex_o1", "", [](auto& r) { return name_of(r.entry.operation().casts->apex_o1); }},
        {"torch_agreement", "", [](auto& r) { return name_of(r.entry.torch); }},
        {"apex_agreement", "", [](auto& r) { return name_of(r.entry.apex); }},
        {"fraction_overflow", "1", [](auto& r) { return r.if_measured(r.loss().fraction_overflow); }},
        {"fraction_flushed", "1", [](auto& r) { return r.if_measured(r.loss().fraction_flushed); }},
        {"gradient_error_u", "2^-11", [](auto& r) { return r.if_measured(r.loss().gradient_error_u); }},
        {"gradient_error_fp16_reductions_u", "2^-11",
         [](auto& r) { return r.if_measured(r.with_fp16().gradient_error_u); }},
        {"forward_error_fp16_reductions_u", "2^-11",
         [](auto& r) { return r.if_measured(r.with_fp16().forward_error_u); }},
        {"headroom_octaves", "octaves", [](auto& r) { return r.headroom.octaves; }},
        {"passes_at_operand", "1", [](auto& r) { return r.headroom.passing; }},
        {"fails_at_operand", "1", [](auto& r) { return r.headroom.operand; }},
        {"fails_by", "", [](auto& r) { return name_of(r.headroom.failure); }},
        {"reason", "", [](auto& r) { return r.entry.reason; }}}};

void write_tables(RunRecord& record, const Findings& findings, const std::vector<ListEntry>& lists) {
  const auto add = operations_table.start(record);
  for (const OperationFindings& operation : findings.operations) {
    for (const Row& row : operation.rows) {
      for (const Reductions reductions : all_reductions) add({row, reductions});
    }
  }
  const auto add_entry = lists_table.start(record);
  for (std::size_t rank = 0; rank < lists.size(); ++rank) add_entry({findings, lists[rank], rank});
}

std::size_t count(const std::vector<ListEntry>& lists, auto predicate) {
  return static_cast<std::size_t>(std::ranges::count_if(lists, predicate));
}

/// "exp, log", or "none".
std::string names_where(const std::vector<ListEntry>& lists, auto predicate) {
  std::vector<std::string_view> names;
  for (const ListEntry& entry : lists) {
    if (predicate(entry)) names.push_back(entry.operation().name);
  }
  return names.empty() ? "none" : fmt::format("{}", fmt::join(names, ", "));
}

bool is_fp32(const ListEntry& entry) {
  return entry.ours == Placement::fp32;
}
bool is_fp32_with_fp16_reductions(const ListEntry& entry) {
  return entry.with_fp16_reductions == Placement::fp32;
}
bool is_fp32_under_a_list(const ListEntry& entry) {
  return !allows_fp16(entry.operation().casts->torch_autocast) ||
         !allows_fp16(entry.operation().casts->apex_o1);
}

bool is_measured(const ListEntry& entry) {
  return entry.ours != Placement::unmeasured;
}

using Lists = std::vector<ListEntry>;

const SummaryOf<Lists> lists_summary{
    {{"operations", "in the registry", [](const Lists& lists) { return lists.size(); }},
     {"measured", "that there were operands for",
      [](const Lists& lists) { return count(lists, is_measured); }},
     {"needs_fp32", "how many need FP32 by the criterion",
      [](const Lists& lists) { return count(lists, is_fp32); }},
     {"needs_fp32_fp16_reductions", "how many do with every reduction in FP16",
      [](const Lists& lists) { return count(lists, is_fp32_with_fp16_reductions); }},
     {"hangs_on_thresholds", "whose placement is another with half or double thresholds",
      [](const Lists& lists) { return count(lists, [](auto& e) { return e.hangs_on_thresholds(); }); }},
     {"fp32_list", "names of those that need FP32, or \"none\"",
      [](const Lists& lists) { return names_where(lists, is_fp32); }},
     {"fp32_list_fp16_reductions", "names of those that do with every reduction in FP16, or \"none\"",
      [](const Lists& lists) { return names_where(lists, is_fp32_with_fp16_reductions); }}}};

struct AgreementRow {
  const Lists& lists;
  Agreement agreement;
};

const SummaryOf<AgreementRow> agreements_summary{
    {{"torch.<agreement>",
      "operations that PyTorch's list treats as the criterion does (agrees), in FP32 without need "
      "(stricter), in FP16 "
      "against need (laxer)",
      [](auto& r) { return count(r.lists, [&](const ListEntry& e) { return e.torch == r.agreement; }); }},
     {"apex.<agreement>", "the same numbers for Apex O1's list",
      [](auto& r) { return count(r.lists, [&](const ListEntry& e) { return e.apex == r.agreement; }); }}}};

const SummaryOf<EntryRow> entries_summary{
    {{"<operation>.placement", "FP32, FP16 or input, by the criterion",
      [](auto& r) { return name_of(r.entry.ours); }},
     {"<operation>.fraction_flushed", "the largest of its tensors, in FP16",
      [](auto& r) { return r.loss().fraction_flushed; }},
     {"<operation>.gradient_error_u", "the largest, in unit roundoffs of FP16",
      [](auto& r) { return r.loss().gradient_error_u; }},
     {"<operation>.headroom_octaves",
      "by which the largest operands may grow before the criterion fails; 0 where it fails already",
      [](auto& r) { return r.headroom.octaves; }}}};

void write_summary(RunRecord& record, const Findings& findings, const Lists& lists) {
  lists_summary.write(record, lists);
  for (const Agreement agreement : {Agreement::agrees, Agreement::stricter, Agreement::laxer})
    agreements_summary.write(record, {lists, agreement}, {name_of(agreement)});
  for (const ListEntry& entry : lists) {
    if (is_measured(entry)) entries_summary.write(record, {findings, entry}, {entry.operation().name});
  }
}

TextTable verdict_table(const Findings& findings, const std::vector<ListEntry>& lists) {
  TextTable table{
      .columns = {"operation", "ours", "sums FP16", "PyTorch", "Apex", "flushed", "gradient, u",
                  "sums FP16, u", "headroom", "fails by", "from operand"},
      .rows = {},
      .notes = {
          "headroom: octaves by which the operands may grow before FP16 no longer suffices.",
          "fails by: what no longer suffices then.",
          "from operand: it begins between the two that were tried, a 32nd of an octave apart at most; a "
          "single one is the largest recorded, and fails already."}};
  for (const ListEntry& entry : lists) {
    if (entry.ours == Placement::unmeasured) continue;
    const Measured worst = entry.findings->worst();
    const Loss& loss = worst.loss(findings.reductions);
    const Headroom& headroom = *entry.findings->headroom;
    const bool fails = headroom.failure != Failure::none;
    table.rows.push_back({std::string(entry.operation().name), std::string(name_of(entry.ours)),
                          std::string(name_of(entry.with_fp16_reductions)),
                          std::string(name_of(entry.operation().casts->torch_autocast)),
                          std::string(name_of(entry.operation().casts->apex_o1)),
                          percent(loss.fraction_flushed), fmt::format("{:.2g}", loss.gradient_error_u),
                          fmt::format("{:.2g}", worst.loss(Reductions::fp16).gradient_error_u),
                          fmt::format("{:.1f}", headroom.octaves),
                          fails ? name_of(headroom.failure) : std::string("-"),
                          fails && !headroom.border().empty() ? headroom.border() : std::string("-")});
  }
  return table;
}

std::string disputes(const std::vector<ListEntry>& lists) {
  std::string text;
  for (const ListEntry& entry : lists) {
    if (!entry.is_disputed()) continue;
    text += fmt::format("{}{}: PyTorch {}, Apex {}; ours {}: {}.", text.empty() ? "" : "\n",
                        entry.operation().name, name_of(entry.operation().casts->torch_autocast),
                        name_of(entry.operation().casts->apex_o1), name_of(entry.ours), entry.reason);
  }
  return text;
}

std::string needs_sentence(const Findings& findings, const Lists& lists) {
  std::string text = fmt::format("With sums in {}, {} of {} operations fail the criterion in FP16{}.",
                                 findings.reductions == Reductions::fp32 ? "FP32" : "FP16",
                                 count(lists, is_fp32), count(lists, is_measured),
                                 count(lists, is_fp32) == 0 ? "" : ": " + names_where(lists, is_fp32));
  const auto only_flushes = [&](const ListEntry& entry) {
    const Loss loss = entry.findings->worst().loss(findings.reductions);
    return Criterion().failure_of(loss) == Failure::flushed &&
           loss.gradient_error_u <= Criterion().largest_gradient_error_u;
  };
  const std::size_t needed = count(lists, is_fp32);
  if (needed > 0 && count(lists, [&](const ListEntry& e) { return is_fp32(e) && only_flushes(e); }) == needed)
    text += " What these flush is too small to show in their gradients.";
  if (findings.reductions == Reductions::fp16) return text;
  const auto by_reductions = [](const ListEntry& entry) {
    return is_fp32_with_fp16_reductions(entry) && !is_fp32(entry);
  };
  if (count(lists, by_reductions) == 0) return text + " With every reduction in FP16 no other does.";
  return text + fmt::format(" With every reduction in FP16 so does: {}.", names_where(lists, by_reductions));
}

/// What the lists of others keep in FP32 without need, and how far from need it is.
std::string strictness_sentence(const std::vector<ListEntry>& lists) {
  constexpr int few_octaves = 4;
  const auto denied = [](auto& e) { return is_measured(e) && is_fp32_under_a_list(e); };
  const auto spared = [&](const ListEntry& e) { return denied(e) && !is_fp32(e); };
  const auto is_near = [&](const ListEntry& e) {
    return spared(e) && e.findings->headroom->octaves < few_octaves;
  };
  if (count(lists, denied) == 0) return {};
  std::string text = fmt::format(
      " Of the {} that PyTorch or Apex keep in FP32 or ban in FP16, {} meet the criterion in FP16.",
      count(lists, denied), count(lists, spared));
  if (count(lists, is_near) == 0) return text;
  text += fmt::format(
      " But not if their operands, or the logits that these are made of, grew {}-fold: {}. For these the "
      "lists buy range, not precision.",
      1 << few_octaves, names_where(lists, is_near));
  const auto is_far = [&](const ListEntry& e) { return spared(e) && !is_near(e); };
  if (count(lists, is_far) == 0) return text;
  return text + fmt::format(" The others have more to spare: {}.", names_where(lists, is_far));
}

std::string threshold_sentence(const std::vector<ListEntry>& lists) {
  const std::string earlier = names_where(lists, [](const ListEntry& entry) {
    return entry.ours != Placement::fp32 && entry.at_half == Placement::fp32;
  });
  const std::string later = names_where(lists, [](const ListEntry& entry) {
    return entry.ours == Placement::fp32 && entry.at_double != Placement::fp32;
  });
  return fmt::format(
      "Half the thresholds would move to FP32: {}; twice the thresholds would move from it: {}.", earlier,
      later);
}

std::string unmeasured_sentence(const std::vector<ListEntry>& lists) {
  std::string text;
  for (const ListEntry& entry : lists) {
    if (is_measured(entry)) continue;
    text += fmt::format("{}{} ({})", text.empty() ? "Not measured: " : ", ", entry.operation().name,
                        entry.reason);
  }
  return text + ".";
}

/// The criterion looks at values and gradients, and the gradient of a mean does not depend on its value.
std::string mean_sentence(const Lists& lists) {
  const auto mean =
      std::ranges::find_if(lists, [](const ListEntry& entry) { return &entry.operation() == &sim::mean; });
  if (mean == lists.end() || mean->ours == Placement::unmeasured) return {};
  const Loss fp16 = mean->findings->worst().loss(Reductions::fp16);
  if (fp16.fraction_overflow > 0)
    return "The mean of a mini-batch of residuals, which is L1 loss, overflows where it is summed in FP16.";
  return fmt::format(
      "The mean of a mini-batch of residuals, which is L1 loss, is wrong by {} where it is summed in FP16, "
      "yet its "
      "gradient is not: the loss that is reported goes wrong, not the training, until the sum overflows.",
      percent(fp16.forward_error_u * unit_roundoff));
}

}  // namespace

Outputs outputs() {
  return outputs_of(operations_table, lists_table, lists_summary, agreements_summary, entries_summary);
}

void report(Run& run, const Findings& findings, const std::string& setting) {
  RunRecord& record = run.record();
  const Lists lists = derive_lists(findings);
  write_tables(record, findings, lists);
  write_summary(record, findings, lists);
  draw_figures(run, findings, lists, setting);
  record.verdict(needs_sentence(findings, lists) + strictness_sentence(lists));
  record.verdict(verdict_table(findings, lists).text());
  for (const std::string& text :
       {disputes(lists), threshold_sentence(lists) + " " + unmeasured_sentence(lists), mean_sentence(lists),
        criterion_sentence(), setting}) {
    if (!text.empty()) record.verdict(text);
  }
}

}  // namespace experiments::op_precision
