#include "experiments/op_precision/record.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <string_view>

#include "experiments/frame/text_table.h"
#include "sim/ops/mean.h"

namespace experiments::op_precision {
namespace {

/// 1 where the criterion, its thresholds times `factor`, asks for FP32.
int needs_fp32(const Measured& measured, Reductions reductions, double factor) {
  return Criterion().times(factor).needs_fp32(measured.loss(reductions)) ? 1 : 0;
}

void write_operations(RunRecord& record, const Findings& findings) {
  Table& table = record.table(
      "operations",
      {"operation", "model", "step", "operands", "evaluations", "reductions", "operand_max_abs",
       "output_max_abs", "output_gradient_max_abs", "input_gradient_max_abs", "fraction_overflow",
       "fraction_flushed", "fraction_incoming_flushed", "forward_error_u", "gradient_error_u",
       "operand_rounding_u", "needs_fp32_half_thresholds", "needs_fp32", "needs_fp32_double_thresholds"});
  for (const OperationFindings& operation : findings.operations) {
    for (const Row& row : operation.rows) {
      for (const Reductions reductions : all_reductions) {
        const Measured& worst = row.worst;
        const Loss& loss = worst.loss(reductions);
        table.row({row.operation->name, row.model, row.step, row.operands, row.evaluations,
                   name_of(reductions), worst.ranges.operand, worst.ranges.output,
                   worst.ranges.output_gradient, worst.ranges.input_gradient, loss.fraction_overflow,
                   loss.fraction_flushed, loss.fraction_incoming_flushed, loss.forward_error_u,
                   loss.gradient_error_u, worst.operand_rounding_u, needs_fp32(worst, reductions, 0.5),
                   needs_fp32(worst, reductions, 1), needs_fp32(worst, reductions, 2)});
      }
    }
  }
}

void write_lists(RunRecord& record, const Findings& findings, const std::vector<ListEntry>& lists) {
  Table& table =
      record.table("lists", {"rank", "operation", "ours", "ours_fp16_reductions", "ours_half_thresholds",
                             "ours_double_thresholds", "torch_autocast", "apex_o1", "torch_agreement",
                             "apex_agreement", "fraction_overflow", "fraction_flushed", "gradient_error_u",
                             "gradient_error_fp16_reductions_u", "forward_error_fp16_reductions_u",
                             "headroom_octaves", "fails_at_operand", "fails_by", "reason"});
  for (std::size_t rank = 0; rank < lists.size(); ++rank) {
    const ListEntry& entry = lists[rank];
    const Measured worst = entry.findings->worst();
    const Loss &loss = worst.loss(findings.reductions), &fp16 = worst.loss(Reductions::fp16);
    const bool measured = entry.ours != Placement::unmeasured;
    const auto value = [measured](double number) { return measured ? number : std::nan(""); };
    const Headroom headroom = entry.findings->headroom.value_or(
        Headroom{.octaves = std::nan(""), .operand = std::nan(""), .failure = Failure::none});
    table.row({rank, entry.operation().name, name_of(entry.ours), name_of(entry.with_fp16_reductions),
               name_of(entry.at_half), name_of(entry.at_double),
               name_of(entry.operation().casts->torch_autocast), name_of(entry.operation().casts->apex_o1),
               name_of(entry.torch), name_of(entry.apex), value(loss.fraction_overflow),
               value(loss.fraction_flushed), value(loss.gradient_error_u), value(fp16.gradient_error_u),
               value(fp16.forward_error_u), headroom.octaves, headroom.operand, name_of(headroom.failure),
               entry.reason});
  }
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

TextTable verdict_table(const Findings& findings, const std::vector<ListEntry>& lists) {
  TextTable table{
      .columns = {"operation", "ours", "sums FP16", "PyTorch", "Apex", "flushed", "gradient, u",
                  "sums FP16, u", "headroom", "fails by", "at operand"},
      .rows = {},
      .notes = {"headroom: octaves by which the operands may grow before FP16 no longer suffices.",
                "fails by: what no longer suffices then.",
                "at operand: the largest operand at which that happens."}};
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
                          fails && !std::isnan(headroom.operand) ? fmt::format("{:.3g}", headroom.operand)
                                                                 : std::string("-")});
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

bool is_measured(const ListEntry& entry) {
  return entry.ours != Placement::unmeasured;
}

std::string needs_sentence(const Findings& findings, const std::vector<ListEntry>& lists) {
  const std::size_t needed = count(lists, is_fp32);
  std::string text =
      fmt::format("With sums in {}, {} of {} operations need{} FP32: {}.",
                  findings.reductions == Reductions::fp32 ? "FP32" : "FP16", needed,
                  count(lists, is_measured), needed == 1 ? "s" : "", names_where(lists, is_fp32));
  double largest_error_u = 0;
  bool only_flush = needed > 0;
  for (const ListEntry& entry : lists) {
    if (!is_fp32(entry)) continue;
    const Loss loss = entry.findings->worst().loss(findings.reductions);
    largest_error_u = std::max(largest_error_u, loss.gradient_error_u);
    only_flush &= Criterion().failure_of(loss) == Failure::flushed;
  }
  if (only_flush && largest_error_u <= Criterion().largest_gradient_error_u)
    text += fmt::format(
        " What they flush is too small to show in their gradients, whose error is at most {:.2g} u.",
        largest_error_u);
  if (findings.reductions == Reductions::fp16) return text;
  return text + fmt::format(" With every reduction in FP16, so do: {}.",
                            names_where(lists, [](const ListEntry& entry) {
                              return is_fp32_with_fp16_reductions(entry) && !is_fp32(entry);
                            }));
}

/// What the lists of others keep in FP32 without need, and how far from need it is.
std::string strictness_sentence(const std::vector<ListEntry>& lists) {
  constexpr int few_octaves = 4;
  const auto denied = [](const ListEntry& e) { return is_measured(e) && is_fp32_under_a_list(e); };
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
std::string mean_sentence(const std::vector<ListEntry>& lists) {
  const auto mean =
      std::ranges::find_if(lists, [](const ListEntry& entry) { return &entry.operation() == &sim::mean; });
  if (mean == lists.end() || mean->ours == Placement::unmeasured) return {};
  const Loss fp16 = mean->findings->worst().loss(Reductions::fp16);
  if (fp16.fraction_overflow > 0)
    return "The mean of a mini-batch of residuals, which is L1 loss, overflows where it is summed in FP16.";
  return fmt::format(
      "The mean of a mini-batch of residuals, which is L1 loss, summed in FP16 is wrong by {} of its value "
      "while the error of its gradient is {:.2g} u: the loss that is reported goes wrong, not the training, "
      "until the sum overflows. Losses form their sums in FP32 in both columns; mean, sum and variance show "
      "what FP16 does to them.",
      percent(fp16.forward_error_u * unit_roundoff), fp16.gradient_error_u);
}

}  // namespace

void write_tables(RunRecord& record, const Findings& findings, const std::vector<ListEntry>& lists) {
  write_operations(record, findings);
  write_lists(record, findings, lists);
}

std::vector<Program::SummaryKey> summary_keys() {
  return {{"operations", "in the registry"},
          {"measured", "that there were operands for"},
          {"needs_fp32", "how many need FP32 by the criterion"},
          {"needs_fp32_fp16_reductions", "the same with every reduction in FP16"},
          {"hangs_on_thresholds", "whose placement is another with half or double thresholds"},
          {"fp32_list, fp32_list_fp16_reductions", "their names, or \"none\""},
          {"torch.agrees, torch.stricter, torch.laxer",
           "operations that PyTorch's list treats alike, in FP32 without need, in FP16 against need"},
          {"apex.agrees, apex.stricter, apex.laxer", "the same of Apex O1's list"},
          {"OPERATION.placement", "FP32, FP16 or input, by the criterion"},
          {"OPERATION.fraction_flushed", "the largest of its tensors, in FP16"},
          {"OPERATION.gradient_error_u", "the largest, in unit roundoffs of FP16"},
          {"OPERATION.headroom_octaves",
           "by which the largest operands may grow before the criterion fails; 0 where it fails already"}};
}

void write_summary(RunRecord& record, const Findings& findings, const std::vector<ListEntry>& lists) {
  record.summary("operations", lists.size());
  record.summary("measured", count(lists, is_measured));
  record.summary("needs_fp32", count(lists, is_fp32));
  record.summary("needs_fp32_fp16_reductions", count(lists, is_fp32_with_fp16_reductions));
  record.summary("hangs_on_thresholds",
                 count(lists, [](const ListEntry& e) { return e.hangs_on_thresholds(); }));
  record.summary("fp32_list", names_where(lists, is_fp32));
  record.summary("fp32_list_fp16_reductions", names_where(lists, is_fp32_with_fp16_reductions));
  for (const Agreement agreement : {Agreement::agrees, Agreement::stricter, Agreement::laxer}) {
    record.summary(fmt::format("torch.{}", name_of(agreement)),
                   count(lists, [&](const ListEntry& e) { return e.torch == agreement; }));
    record.summary(fmt::format("apex.{}", name_of(agreement)),
                   count(lists, [&](const ListEntry& e) { return e.apex == agreement; }));
  }
  for (const ListEntry& entry : lists) {
    if (entry.ours == Placement::unmeasured) continue;
    const std::string name(entry.operation().name);
    const Measured worst = entry.findings->worst();
    const Loss& loss = worst.loss(findings.reductions);
    record.summary(name + ".placement", name_of(entry.ours));
    record.summary(name + ".fraction_flushed", loss.fraction_flushed);
    record.summary(name + ".gradient_error_u", loss.gradient_error_u);
    record.summary(name + ".headroom_octaves", entry.findings->headroom->octaves);
  }
}

void write_verdict(RunRecord& record, const Findings& findings, const std::vector<ListEntry>& lists,
                   const std::string& setting) {
  record.verdict(fmt::format("{} {}{}", criterion_sentence(), needs_sentence(findings, lists),
                             strictness_sentence(lists)));
  record.verdict(verdict_table(findings, lists).text());
  if (const std::string text = disputes(lists); !text.empty()) record.verdict(text);
  record.verdict(threshold_sentence(lists) + " " + unmeasured_sentence(lists));
  if (const std::string text = mean_sentence(lists); !text.empty()) record.verdict(text);
  record.verdict(setting);
}

}  // namespace experiments::op_precision
