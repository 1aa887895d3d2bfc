#pragma once
/// Schedulers that share a rule: a row of data each, with its own defaults and its own choice of options.

#include <algorithm>
#include <array>
#include <string>
#include <string_view>

#include "fp16/names.h"

namespace sim {

/// One scheduler: the rule with this scheduler's defaults, and the names of those fields that a user may set.
/// Rule::visit must name every field that can be an option.
template <class Rule>
struct Scheduler {
  std::string_view name;
  std::string_view description;
  std::array<std::string_view, 10> options;  ///< unused places are empty
  Rule rule;

  constexpr bool offers(std::string_view option) const {
    return std::ranges::find(options, option) != options.end();
  }

  std::string subject() const { return "scaler '" + std::string(name) + "'"; }
};

/// The options of one scheduler, for options_from.
template <const auto& scheduler>
struct SchedulerOptions {
  decltype(scheduler.rule) rule = scheduler.rule;

  static inline const std::string subject = scheduler.subject();
  static void visit(auto& self, auto&& field) {
    self.rule.visit(self.rule, [&field](std::string_view name, auto& value, const names::Interval& allowed) {
      if (scheduler.offers(name)) field(name, value, allowed);
    });
  }
};

/// Names and values of the fields of `rule` that the scheduler offers.
template <class Rule>
names::NamedValues offered_values(const Scheduler<Rule>& scheduler, const Rule& rule) {
  names::NamedValues values = names::named_values(rule);
  std::erase_if(values, [&scheduler](const auto& entry) { return !scheduler.offers(entry.first); });
  return values;
}

/// Throws OptionError unless min_scale <= max_scale (0: no limit) and init_scale lies between them.
void check_scale_limits(std::string_view subject, double init_scale, double min_scale, double max_scale);

}  // namespace sim
