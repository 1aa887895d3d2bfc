#pragma once
/// Numeric options and state of scalers and optimizers. A struct names itself and its fields once:
///
///     struct StaticOptions {
///       static constexpr std::string_view subject = "scaler 'static'";
///       float scale = 1024;
///       static void visit(auto& self, auto&& field) { field("scale", self.scale, Interval{.lower = 0}); }
///     };
///
/// and the functions below read it from names and values, check it and report it. Fields are float, double,
/// int, bool or enumerations.

#include <algorithm>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <limits>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "sim/registry.h"

namespace sim {

/// Options in force or serialised state, in a fixed order.
using NamedValues = std::vector<std::pair<std::string, double>>;

/// Options as a user gives them; whatever is absent keeps its default.
using GivenOptions = std::map<std::string, double, std::less<>>;

/// Allowed values of an option. NaN lies in no interval.
struct Interval {
  double lower = -std::numeric_limits<double>::infinity();
  double upper = std::numeric_limits<double>::infinity();
  bool includes_lower = false;
  bool includes_upper = false;
  /// Whether a double is rounded to binary32 where it is computed with: it must stay in the interval there, and
  /// keep its precision (keeps_precision_in_binary32).
  bool in_binary32 = false;

  constexpr bool contains(double value) const {
    return (includes_lower ? value >= lower : value > lower) &&
           (includes_upper ? value <= upper : value < upper);
  }
};

/// [lower, upper].
constexpr Interval closed_interval(double lower, double upper) {
  return {.lower = lower, .upper = upper, .includes_lower = true, .includes_upper = true};
}

constexpr Interval computed_in_binary32(Interval interval) {
  interval.in_binary32 = true;
  return interval;
}

/// Shortest decimal text that reads back as the same double.
std::string number_text(double value);

/// Whether it is 0 or a normal number after rounding to binary32: a rate that became 0, subnormal or infinite there
/// would be another one.
inline bool keeps_precision_in_binary32(double value) {
  return value == 0 || std::isnormal(static_cast<float>(value));
}

/// As in mathematics: "(0, 1]" excludes 0 and includes 1.
std::string interval_text(const Interval& interval);

/// An option has a value that is not allowed. what() is one line:
/// "scaler 'static': scale = 0 is not allowed; allowed: numbers in (0, inf)".
class OptionError : public std::invalid_argument {
 public:
  OptionError(std::string_view subject, std::string_view option, double value, std::string allowed);

  /// "numbers in (0, inf)".
  const std::string& allowed() const { return allowed_; }

 private:
  std::string allowed_;
};

/// The part of an interval within `bounds`.
constexpr Interval clipped(Interval interval, const Interval& bounds) {
  if (!bounds.contains(interval.lower)) {
    interval.lower = bounds.lower;
    interval.includes_lower = bounds.includes_lower;
  }
  if (!bounds.contains(interval.upper)) {
    interval.upper = bounds.upper;
    interval.includes_upper = bounds.includes_upper;
  }
  return interval;
}

/// The value as a Number. Throws OptionError unless it lies in the interval, before and after rounding to
/// Number and, where the interval asks for that, to binary32; where Number is an integer type, unless it is a
/// whole number within +-(2^31 - 1).
template <class Number>
Number checked_option(std::string_view subject, std::string_view name, double given,
                      const Interval& allowed) {
  if constexpr (std::integral<Number> || std::is_enum_v<Number>) {
    constexpr double largest = std::numeric_limits<int>::max();
    const Interval within = clipped(allowed, closed_interval(-largest, largest));
    if (given == std::trunc(given) && within.contains(given)) return static_cast<Number>(given);
    throw OptionError(subject, name, given, "whole numbers in " + interval_text(within));
  } else {
    const auto rounded = static_cast<Number>(given);
    const double computed_with =
        allowed.in_binary32 ? static_cast<double>(static_cast<float>(given)) : static_cast<double>(rounded);
    const bool is_precise = !allowed.in_binary32 || keeps_precision_in_binary32(given);
    if (allowed.contains(given) && allowed.contains(computed_with) && is_precise) return rounded;
    throw OptionError(subject, name, given,
                      "numbers in " + interval_text(allowed) +
                          (allowed.contains(given) ? " after rounding to binary32" : "") +
                          (is_precise                  ? ""
                           : std::isinf(allowed.upper) ? ", 2^-126 to 3.4e38 where not 0"
                                                       : ", at least 2^-126 where not 0"));
  }
}

/// The options themselves when all lie in their intervals; throws OptionError if not.
template <class Options>
Options checked(Options options) {
  Options::visit(options, [](std::string_view name, auto& field, const Interval& allowed) {
    using Number = std::remove_reference_t<decltype(field)>;
    checked_option<Number>(Options::subject, name, static_cast<double>(field), allowed);
  });
  return options;
}

/// Names and values of all options, in declaration order.
template <class Options>
NamedValues named_values(const Options& options) {
  NamedValues values;
  Options::visit(options, [&values](std::string_view name, const auto& field, const Interval&) {
    values.emplace_back(name, static_cast<double>(field));
  });
  return values;
}

/// Defaults overridden by what is given. Throws std::invalid_argument for an unknown name (with the nearest
/// one and all allowed ones) and OptionError for a value outside its interval.
template <class Options>
Options options_from(const GivenOptions& given) {
  Options options;
  std::vector<std::string> allowed_names;
  Options::visit(options, [&](std::string_view name, auto& field, const Interval& allowed) {
    using Number = std::remove_reference_t<decltype(field)>;
    allowed_names.emplace_back(name);
    const auto found = given.find(name);
    if (found != given.end()) {
      field = checked_option<Number>(Options::subject, name, found->second, allowed);
    }
  });
  for (const auto& [name, value] : given) {
    if (std::ranges::find(allowed_names, name) == allowed_names.end()) {
      throw std::invalid_argument(std::string(Options::subject) + ": " +
                                  unknown_name_message("option", name, allowed_names));
    }
  }
  return options;
}

/// The state that named_values wrote. Throws std::invalid_argument unless the entries are exactly the
/// struct's fields, in order, each within its interval.
template <class State>
State state_from(const NamedValues& saved) {
  State state;
  std::size_t next = 0;
  const auto reject = [](const std::string& what) {
    throw std::invalid_argument(std::string(State::subject) + ": saved state " + what);
  };
  State::visit(state, [&](std::string_view name, auto& field, const Interval& allowed) {
    using Number = std::remove_reference_t<decltype(field)>;
    if (next >= saved.size()) reject("lacks '" + std::string(name) + "'");
    const auto& [saved_name, value] = saved[next++];
    if (saved_name != name) reject("has '" + saved_name + "' in place of '" + std::string(name) + "'");
    field = checked_option<Number>(State::subject, name, value, allowed);
  });
  if (next != saved.size()) reject("has an unknown entry '" + saved[next].first + "'");
  return state;
}

}  // namespace sim
