#pragma once
/// Names: how every family of variants (formats, policies, operations, models, scalers, optimizers, data sources) is
/// looked up, given options and described in errors. Rows in explicit lists; "dynamic:growth_interval=20" is a name
/// with options. Only the standard library is needed.

#include <algorithm>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <limits>
#include <map>
#include <numeric>
#include <optional>
#include <ranges>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace names {

// Rows. A row is any struct with a member `name`.

/// A list of rows whose `name` reads as text. Borrowed: the rows outlive the look-up, so it may return a
/// reference.
template <class Rows>
concept RegistryRows = std::ranges::forward_range<Rows> && std::ranges::borrowed_range<Rows> &&
    requires(const std::ranges::range_value_t<Rows>& row) {
  std::string_view{row.name};
};

/// True when no two rows share a name; every registry states it as a static_assert.
template <RegistryRows Rows>
constexpr bool has_unique_names(Rows&& rows) {
  for (auto row = std::ranges::begin(rows); row != std::ranges::end(rows); ++row) {
    for (auto other = std::ranges::begin(rows); other != row; ++other) {
      if (std::string_view{row->name} == std::string_view{other->name}) {
        return false;
      }
    }
  }
  return true;
}

/// The names of all rows in their order, as `--list` prints them.
template <RegistryRows Rows>
std::vector<std::string> names_of(Rows&& rows) {
  std::vector<std::string> names;
  for (const auto& row : rows) {
    names.emplace_back(std::string_view{row.name});
  }
  return names;
}

/// The fewest insertions, deletions, replacements and exchanges of neighbours that turn `from` into `to`, none
/// of which touches what another has changed (optimal string alignment).
inline std::size_t edit_distance(std::string_view from, std::string_view to) {
  std::vector<std::size_t> before_last, last, row(to.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= from.size(); ++i) {
    before_last = std::exchange(last, row);
    row[0] = i;
    for (std::size_t j = 1; j <= to.size(); ++j) {
      const bool same = from[i - 1] == to[j - 1];
      row[j] = std::min({last[j - 1] + (same ? 0 : 1), last[j] + 1, row[j - 1] + 1});
      const bool exchanged = i > 1 && j > 1 && from[i - 1] == to[j - 2] && from[i - 2] == to[j - 1];
      if (exchanged) row[j] = std::min(row[j], before_last[j - 2] + 1);
    }
  }
  return row.back();
}

/// The name that is likely meant: the candidate at the smallest edit distance, the first of several, when that
/// is 1 or at most a third of the longer name's length and the two have something in common; else nothing.
inline std::optional<std::string> nearest_name(std::string_view name,
                                               const std::vector<std::string>& candidates) {
  const auto distance = [name](const std::string& candidate) { return edit_distance(name, candidate); };
  const auto nearest = std::ranges::min_element(candidates, {}, distance);
  if (nearest == candidates.end()) return std::nullopt;
  const std::size_t length = std::max(name.size(), nearest->size());
  const bool near = distance(*nearest) < length && distance(*nearest) <= std::max<std::size_t>(1, length / 3);
  return near ? std::optional(*nearest) : std::nullopt;
}

/// One line such as "unknown scaler 'dinamic'; did you mean 'dynamic'? allowed: none, static, dynamic", without
/// the question where no name is near.
inline std::string unknown_name_message(std::string_view family, std::string_view name,
                                        const std::vector<std::string>& allowed) {
  std::string message = "unknown " + std::string(family) + " '" + std::string(name) + "'; ";
  if (allowed.empty()) {
    return message + "none is allowed";
  }
  if (const std::optional<std::string> nearest = nearest_name(name, allowed)) {
    message += "did you mean '" + *nearest + "'? ";
  }
  message += "allowed: ";
  for (const std::string& candidate : allowed) {
    message += (&candidate == &allowed.front() ? "" : ", ") + candidate;
  }
  return message;
}

/// The row called `name`. `family` is the word for the error: "scaler", "optimizer", "model".
/// Throws std::invalid_argument with all allowed names, and the nearest if one is near, when there is no such row.
template <RegistryRows Rows>
const auto& find_by_name(Rows&& rows, std::string_view family, std::string_view name) {
  for (const auto& row : rows) {
    if (std::string_view{row.name} == name) {
      return row;
    }
  }
  throw std::invalid_argument(unknown_name_message(family, name, names_of(rows)));
}

// Options. A struct names itself and its fields once:
//
//     struct StaticOptions {
//       static constexpr std::string_view subject = "scaler 'static'";
//       float scale = 1024;
//       static void visit(auto& self, auto&& field) { field("scale", self.scale, Interval{.lower = 0}); }
//     };
//
// and the functions below read it from names and values, check it and report it. Fields are float, double,
// int, bool or enumerations.

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

/// The interval in mathematical notation: "(0, 1]" excludes 0 and includes 1.
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

// Specs. A variant with options in one word, as the command line takes it: "dynamic:growth_interval=20".

/// "NAME" or "NAME:key=value:key=value".
struct Spec {
  std::string name;
  std::map<std::string, std::string, std::less<>> options;
};

/// "NAME" of either form; the rest is not looked at.
constexpr std::string_view name_in(std::string_view text) {
  return text.substr(0, text.find(':'));
}

/// Throws std::invalid_argument for an option without '=', an empty key or a key given twice.
Spec parse_spec(std::string_view text);

/// The values as numbers; throws std::invalid_argument, naming the option, for one that is none. "true" and
/// "false" are 1 and 0.
GivenOptions numeric_options(const Spec& spec);

/// The name and the numeric options of a spec in one step. Throws as parse_spec and numeric_options do.
inline std::pair<std::string, GivenOptions> parse_numeric_spec(std::string_view text) {
  Spec spec = parse_spec(text);
  GivenOptions options = numeric_options(spec);
  return {std::move(spec.name), std::move(options)};
}

}  // namespace names
