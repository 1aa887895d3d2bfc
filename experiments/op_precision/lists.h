#pragma once
/// The lists that follow from the criterion, beside those of PyTorch's autocast and Apex O1.

#include <string>
#include <string_view>
#include <vector>

#include "experiments/op_precision/findings.h"

namespace experiments::op_precision {

/// Where an operation stands.
enum class Placement {
  fp32,        ///< needs FP32
  fp16,        ///< does without, and has products that tensor cores form: worth a cast to FP16
  input,       ///< does without, and runs in what it is given
  unmeasured,  ///< has no operands
};
constexpr std::string_view name_of(Placement placement) {
  switch (placement) {
    case Placement::fp32:
      return "FP32";
    case Placement::fp16:
      return "FP16";
    case Placement::input:
      return "input";
    case Placement::unmeasured:
      break;
  }
  return "-";
}

/// "FP16", "FP32", "FP32 output", "widest" (promote), "input", "banned".
std::string_view name_of(sim::AutocastClass autocast_class);

/// How a list compares with the criterion.
enum class Agreement {
  agrees,
  stricter,  ///< asks for FP32 where the criterion is met in FP16
  laxer,     ///< lets an operation run in FP16 that needs FP32
  unmeasured,
};
constexpr std::string_view name_of(Agreement agreement) {
  switch (agreement) {
    case Agreement::agrees:
      return "agrees";
    case Agreement::stricter:
      return "stricter";
    case Agreement::laxer:
      return "laxer";
    case Agreement::unmeasured:
      break;
  }
  return "-";
}

/// Whether an operation on FP16 inputs may run in FP16 under the list.
bool allows_fp16(sim::AutocastClass autocast_class);

struct ListEntry {
  const OperationFindings* findings;
  Placement ours, with_fp16_reductions;
  Placement at_half, at_double;  ///< ours, with these thresholds
  Agreement torch, apex;
  std::string reason;  ///< why ours is what it is: one line made of what was measured

  const sim::Operation& operation() const { return *findings->operation; }
  bool hangs_on_thresholds() const { return at_half != ours || at_double != ours; }
  bool is_disputed() const;
};

/// Where the operation stands by the worst of its rows.
Placement placement_of(const OperationFindings& findings, Reductions reductions,
                       const Criterion& criterion = {});

/// Every operation of the registry: those that need FP32, then those for FP16, then those that run in what they
/// are given, then the unmeasured; each in the order of the registry. Refers to the findings.
std::vector<ListEntry> derive_lists(const Findings& findings);

/// For --help.
Outputs outputs();

/// Writes tables, summary, figures and verdict; `setting` is what was trained and computed how.
void report(Run& run, const Findings& findings, const std::string& setting);

/// Each operation's gradient error, flushed share and headroom, in the groups that the criterion makes. Drawn
/// from lists.csv.
void draw_figures(Run& run, const Findings& findings, const std::vector<ListEntry>& lists,
                  const std::string& setting);

}  // namespace experiments::op_precision
