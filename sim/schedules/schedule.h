#pragma once

#include <cstdint>
#include <limits>
#include <string_view>

#include "fp16/names.h"

namespace sim {

/// How far a run has come. Steps that a loss scaler skipped are counted apart.
struct StepCounts {
  std::uint64_t applied = 0;  ///< before the coming one
  std::uint64_t skipped = 0;
  std::uint64_t total = 0;  ///< that the run is to have
};

/// What every schedule has besides options of its own.
struct ScheduleOptions {
  int warmup_steps = 0;
  /// 1: skipped steps count as applied ones, as in a training loop that calls its schedule whether or not the
  /// optimizer stepped: warm-up is cut short and the rate falls before the weights have moved.
  int counts_skipped_steps = 0;

  static void visit(auto& self, auto&& field) {
    field("warmup_steps", self.warmup_steps, names::closed_interval(0, std::numeric_limits<int>::max()));
    field("counts_skipped_steps", self.counts_skipped_steps, names::closed_interval(0, 1));
  }
};

/// The learning rate over a run, as a factor of the optimizer's own: a pure function of the step. With t
/// applied steps behind it, the coming step has the factor
///   (t + 1) / warmup_steps  while t < warmup_steps, so that the first step moves and the last has factor 1
///   the rule's at s of n    from there on: s = t - warmup_steps, n = total - warmup_steps, but not below 0
/// Every operation is one of binary64 and rounds once.
class Schedule {
 public:
  virtual ~Schedule() = default;

  virtual std::string_view name() const = 0;
  virtual double factor(const StepCounts& counts) const = 0;

  /// Options in force, for the manifest.
  virtual names::NamedValues options() const = 0;
};

/// `Rule` is a struct of options with the rule after warm-up: factor(s, n).
template <class Rule>
class ScheduleByRule final : public Schedule {
 public:
  /// Throws std::invalid_argument unless the options lie in their intervals.
  explicit ScheduleByRule(const Rule& rule) : rule_(names::checked(rule)) {}

  std::string_view name() const override { return Rule::name; }
  names::NamedValues options() const override { return names::named_values(rule_); }

  double factor(const StepCounts& counts) const override {
    const std::uint64_t step = counts.applied + (rule_.counts_skipped_steps == 1 ? counts.skipped : 0);
    const auto warmup = static_cast<std::uint64_t>(rule_.warmup_steps);
    if (step < warmup) return static_cast<double>(step + 1) / static_cast<double>(warmup);
    return rule_.factor(step - warmup, counts.total > warmup ? counts.total - warmup : 0);
  }

 private:
  Rule rule_;
};

}  // namespace sim
