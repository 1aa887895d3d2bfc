#include "experiments/op_precision/lists.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "experiments/frame/text_table.h"

namespace experiments::op_precision {
namespace {

Agreement agreement_of(Placement ours, sim::AutocastClass theirs) {
  if (ours == Placement::unmeasured) return Agreement::unmeasured;
  const bool ours_allows = ours != Placement::fp32;
  if (allows_fp16(theirs) == ours_allows) return Agreement::agrees;
  return ours_allows ? Agreement::stricter : Agreement::laxer;
}

/// How far beyond its threshold, or below, a row is; overflow is beyond all else.
double severity(const Row& row, Reductions reductions) {
  const Criterion criterion;
  const Loss& loss = row.worst.loss(reductions);
  if (loss.fraction_overflow > 0) return std::numeric_limits<double>::infinity();
  return std::max(loss.fraction_flushed / criterion.most_flushed,
                  loss.gradient_error_u / criterion.largest_gradient_error_u);
}

std::string what_failed(const Loss& loss) {
  switch (Criterion().failure_of(loss)) {
    case Failure::none:
      break;
    case Failure::overflow:
      return fmt::format("{} of its values overflow", percent(loss.fraction_overflow));
    case Failure::flushed:
      return fmt::format("{} of its values are flushed, with a gradient error of {:.2g} u",
                         percent(loss.fraction_flushed), loss.gradient_error_u);
    case Failure::gradient_error:
      return fmt::format("gradient error {:.2g} u", loss.gradient_error_u);
  }
  return fmt::format("gradient error at most {:.2g} u, {} flushed", loss.gradient_error_u,
                     percent(loss.fraction_flushed));
}

std::string other_reductions_clause(const Measured& worst, Reductions chosen) {
  const Reductions other = chosen == Reductions::fp32 ? Reductions::fp16 : Reductions::fp32;
  const bool differs =
      Criterion().needs_fp32(worst.loss(chosen)) != Criterion().needs_fp32(worst.loss(other));
  if (!differs) return {};
  return fmt::format("; with sums in {}: {}", other == Reductions::fp16 ? "FP16" : "FP32",
                     what_failed(worst.loss(other)));
}

std::string headroom_clause(const Headroom& headroom) {
  if (headroom.octaves == 0) return {};
  if (headroom.failure == Failure::none) return "; holds for operands up to the largest of FP16";
  const std::string border = headroom.border();
  const std::string place =
      border.empty() ? "from larger logits on" : "from operands between " + border + " on";
  return fmt::format("; {} only {}, {:.1f} octaves up", name_of(headroom.failure), place, headroom.octaves);
}

std::string reason_for(const OperationFindings& findings, Reductions reductions) {
  if (const std::string_view reason = reason_to_leave_out(*findings.operation); !reason.empty())
    return std::string(reason);
  if (findings.rows.empty()) return "no model asked for has it";
  const Row& row =
      *std::ranges::max_element(findings.rows, {}, [&](const Row& r) { return severity(r, reductions); });
  const Measured worst = findings.worst();
  const bool fails = Criterion().needs_fp32(row.worst.loss(reductions));
  const std::string where =
      fails ? fmt::format("{}, step {}, operands up to {:.3g}", row.model, row.step, row.worst.ranges.operand)
            : fmt::format("operands up to {:.3g}", worst.ranges.operand);
  return fmt::format("{} ({}){}{}", what_failed(fails ? row.worst.loss(reductions) : worst.loss(reductions)),
                     where, other_reductions_clause(worst, reductions),
                     fails ? "" : headroom_clause(*findings.headroom));
}

}  // namespace

std::string_view name_of(sim::AutocastClass autocast_class) {
  switch (autocast_class) {
    case sim::AutocastClass::lower_precision:
      return "FP16";
    case sim::AutocastClass::full_precision:
      return "FP32";
    case sim::AutocastClass::full_precision_output:
      return "FP32 output";
    case sim::AutocastClass::promote:
      return "widest";
    case sim::AutocastClass::input_type:
      return "input";
    case sim::AutocastClass::banned:
      return "banned";
  }
  return {};
}

bool allows_fp16(sim::AutocastClass autocast_class) {
  using enum sim::AutocastClass;
  return autocast_class == lower_precision || autocast_class == promote || autocast_class == input_type;
}

bool ListEntry::is_disputed() const {
  const auto disputes = [](Agreement a) { return a == Agreement::stricter || a == Agreement::laxer; };
  return disputes(torch) || disputes(apex);
}

Placement placement_of(const OperationFindings& findings, Reductions reductions, const Criterion& criterion) {
  if (findings.rows.empty()) return Placement::unmeasured;
  if (criterion.needs_fp32(findings.worst().loss(reductions))) return Placement::fp32;
  return findings.operation->is_layer ? Placement::fp16 : Placement::input;
}

std::vector<ListEntry> derive_lists(const Findings& findings) {
  std::vector<ListEntry> entries;
  for (const OperationFindings& operation : findings.operations) {
    const Placement ours = placement_of(operation, findings.reductions);
    const sim::CastClasses& casts = operation.operation->casts.value();
    entries.push_back({.findings = &operation,
                       .ours = ours,
                       .with_fp16_reductions = placement_of(operation, Reductions::fp16),
                       .at_half = placement_of(operation, findings.reductions, Criterion().times(0.5)),
                       .at_double = placement_of(operation, findings.reductions, Criterion().times(2)),
                       .torch = agreement_of(ours, casts.torch_autocast),
                       .apex = agreement_of(ours, casts.apex_o1),
                       .reason = reason_for(operation, findings.reductions)});
  }
  std::ranges::stable_sort(entries, {}, &ListEntry::ours);
  return entries;
}

}  // namespace experiments::op_precision
