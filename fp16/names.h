#pragma once
/// Names: how every family of variants (formats, policies, operations, models, scalers, optimizers, data sources) is
/// looked up, given options and described in errors. Rows in explicit lists; "dynamic:growth_interval=20" is a name
/// with options. Only the standard library is needed.

#include <concepts>
#include <cstddef>
#include <limits>
#include <map>
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
std::size_t edit_distance(std::string_view from, std::string_view to);

/// The name that is likely meant: of three letters or more the first candidate that begins with them, or ends with them after
/// a _ (min is minimum, not sin); else the candidate at the smallest edit distance, the first of several, when that is 1 or at
/// most a third of the longer name's length and the two have something in common; else nothing.
std::optional<std::string> nearest_name(std::string_view name, const std::vector<std::string>& candidates);

/// One line such as "unknown scaler 'dinamic'; did you mean 'dynamic'? allowed: none, static, dynamic", without
/// the question where no name is near.
std::string unknown_name_message(std::string_view family, std::string_view name,
                                 const std::vector<std::string>& allowed);

/// Throws std::invalid_argument with the text of unknown_name_message.
[[noreturn]] void throw_unknown_name(std::string_view family, std::string_view name,
                                     const std::vector<std::string>& allowed);

/// The row called `name`. `family` is the word for the error: "scaler", "optimizer", "model".
/// Throws std::invalid_argument with all allowed names, and the nearest if one is near, when there is no such row.
template <RegistryRows Rows>
const auto& find_by_name(Rows&& rows, std::string_view family, std::string_view name) {
  for (const auto& row : rows) {
    if (std::string_view{row.name} == name) {
      return row;
    }
  }
  throw_unknown_name(family, name, names_of(rows));
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
bool keeps_precision_in_binary32(double value);

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

/// Throws OptionError unless the value is a whole number in the interval and within +-(2^31 - 1).
void require_whole_number(std::string_view subject, std::string_view name, double given,
                          const Interval& allowed);

/// Throws OptionError unless the value lies in the interval, as given, as rounded to its type, and, where the
/// interval asks for that, as rounded to binary32.
void require_number(std::string_view subject, std::string_view name, double given, double rounded,
                    const Interval& allowed);

/// The value as a Number. Throws OptionError unless it lies in the interval, before and after rounding to
/// Number and, where the interval asks for that, to binary32; where Number is an integer type, unless it is a
/// whole number within +-(2^31 - 1).
template <class Number>
Number checked_option(std::string_view subject, std::string_view name, double given,
                      const Interval& allowed) {
  constexpr bool is_integer = std::integral<Number> || std::is_enum_v<Number>;
  if constexpr (is_integer) {
    require_whole_number(subject, name, given, allowed);
  } else {
    require_number(subject, name, given, static_cast<double>(static_cast<Number>(given)), allowed);
  }
  return static_cast<Number>(given);
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

/// Adds an option at the end. Not inline: where it is, GCC 14 warns of a write past the end.
void append(NamedValues& values, std::string_view name, double value);

/// Names and values of all options, in declaration order.
template <class Options>
NamedValues named_values(const Options& options) {
  NamedValues values;
  Options::visit(options, [&values](std::string_view name, const auto& field, const Interval&) {
    append(values, name, static_cast<double>(field));
  });
  return values;
}

/// The value that is given for an option; null without.
const double* value_of(const GivenOptions& given, std::string_view name);

/// Throws std::invalid_argument for an option that is none of `allowed`.
void require_names(std::string_view subject, const GivenOptions& given,
                   const std::vector<std::string>& allowed);

/// Defaults overridden by what is given. Throws std::invalid_argument for an unknown name (with the nearest
/// one and all allowed ones) and OptionError for a value outside its interval.
template <class Options>
Options options_from(const GivenOptions& given) {
  Options options;
  std::vector<std::string> allowed_names;
  Options::visit(options, [&](std::string_view name, auto& field, const Interval& allowed) {
    using Number = std::remove_reference_t<decltype(field)>;
    allowed_names.emplace_back(name);
    if (const double* value = value_of(given, name))
      field = checked_option<Number>(Options::subject, name, *value, allowed);
  });
  require_names(Options::subject, given, allowed_names);
  return options;
}

/// The value of an entry. Throws std::invalid_argument unless there is one and it has this name.
double saved_value(std::string_view subject, const NamedValues& saved, std::size_t entry,
                   std::string_view name);

/// Throws std::invalid_argument where there are more entries.
void require_saved_size(std::string_view subject, const NamedValues& saved, std::size_t size);

/// The state that named_values wrote. Throws std::invalid_argument unless the entries are exactly the
/// struct's fields, in order, each within its interval.
template <class State>
State state_from(const NamedValues& saved) {
  State state;
  std::size_t next = 0;
  State::visit(state, [&](std::string_view name, auto& field, const Interval& allowed) {
    using Number = std::remove_reference_t<decltype(field)>;
    field = checked_option<Number>(State::subject, name, saved_value(State::subject, saved, next++, name),
                                   allowed);
  });
  require_saved_size(State::subject, saved, next);
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
std::pair<std::string, GivenOptions> parse_numeric_spec(std::string_view text);

}  // namespace names
