#include "fp16/names.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <numeric>
#include <stdexcept>
#include <utility>

namespace names {
namespace {

[[noreturn]] void reject(std::string_view text, const std::string& what) {
  throw std::invalid_argument("'" + std::string(text) + "': " + what +
                              "; allowed: NAME or NAME:option=value:option=value");
}

[[noreturn]] void reject_state(std::string_view subject, const std::string& what) {
  throw std::invalid_argument(std::string(subject) + ": saved state " + what);
}

double number_of(const Spec& spec, const std::string& key, const std::string& text) {
  if (text == "true") return 1;
  if (text == "false") return 0;
  double value;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) {
    throw std::invalid_argument("'" + spec.name + "': " + key + " = '" + text +
                                "' is not allowed; allowed: a number, true or false");
  }
  return value;
}

/// The part of an interval within `bounds`.
Interval clipped(Interval interval, const Interval& bounds) {
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

}  // namespace

std::size_t edit_distance(std::string_view from, std::string_view to) {
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

std::optional<std::string> nearest_name(std::string_view name, const std::vector<std::string>& candidates) {
  constexpr std::size_t fewest_letters = 3;
  const std::string last_word = std::string("_").append(name);
  const auto is_longer = [&](const std::string& candidate) {
    return candidate.starts_with(name) || candidate.ends_with(last_word);
  };
  const auto longer = std::ranges::find_if(candidates, is_longer);
  if (name.size() >= fewest_letters && longer != candidates.end()) return *longer;
  const auto distance = [name](const std::string& candidate) { return edit_distance(name, candidate); };
  const auto nearest = std::ranges::min_element(candidates, {}, distance);
  if (nearest == candidates.end()) return std::nullopt;
  const std::size_t length = std::max(name.size(), nearest->size());
  const bool near = distance(*nearest) < length && distance(*nearest) <= std::max<std::size_t>(1, length / 3);
  return near ? std::optional(*nearest) : std::nullopt;
}

std::string unknown_name_message(std::string_view family, std::string_view name,
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

void throw_unknown_name(std::string_view family, std::string_view name,
                        const std::vector<std::string>& allowed) {
  throw std::invalid_argument(unknown_name_message(family, name, allowed));
}

std::string number_text(double value) {
  char text[32];
  return {text, std::to_chars(text, text + sizeof text, value).ptr};
}

std::string interval_text(const Interval& interval) {
  std::string text(1, interval.includes_lower ? '[' : '(');
  text += number_text(interval.lower);
  text += ", ";
  text += number_text(interval.upper);
  text += interval.includes_upper ? ']' : ')';
  return text;
}

OptionError::OptionError(std::string_view subject, std::string_view option, double value, std::string allowed)
    : std::invalid_argument(std::string(subject) + ": " + std::string(option) + " = " + number_text(value) +
                            " is not allowed; allowed: " + allowed),
      allowed_(std::move(allowed)) {}

bool keeps_precision_in_binary32(double value) {
  return value == 0 || std::isnormal(static_cast<float>(value));
}

void require_whole_number(std::string_view subject, std::string_view name, double given,
                          const Interval& allowed) {
  constexpr double largest = std::numeric_limits<int>::max();
  const Interval within = clipped(allowed, closed_interval(-largest, largest));
  if (given != std::trunc(given) || !within.contains(given))
    throw OptionError(subject, name, given, "whole numbers in " + interval_text(within));
}

void require_number(std::string_view subject, std::string_view name, double given, double rounded,
                    const Interval& allowed) {
  const double computed_with = allowed.in_binary32 ? static_cast<double>(static_cast<float>(given)) : rounded;
  const bool is_precise = !allowed.in_binary32 || keeps_precision_in_binary32(given);
  if (allowed.contains(given) && allowed.contains(computed_with) && is_precise) return;
  throw OptionError(subject, name, given,
                    "numbers in " + interval_text(allowed) +
                        (allowed.contains(given) ? " after rounding to binary32" : "") +
                        (is_precise                  ? ""
                         : std::isinf(allowed.upper) ? ", 2^-126 to 3.4e38 where not 0"
                                                     : ", at least 2^-126 where not 0"));
}

void append(NamedValues& values, std::string_view name, double value) {
  values.emplace_back(name, value);
}

const double* value_of(const GivenOptions& given, std::string_view name) {
  const auto found = given.find(name);
  return found == given.end() ? nullptr : &found->second;
}

void require_names(std::string_view subject, const GivenOptions& given,
                   const std::vector<std::string>& allowed) {
  for (const auto& [name, value] : given) {
    if (std::ranges::find(allowed, name) == allowed.end())
      throw std::invalid_argument(std::string(subject) + ": " +
                                  unknown_name_message("option", name, allowed));
  }
}

double saved_value(std::string_view subject, const NamedValues& saved, std::size_t entry,
                   std::string_view name) {
  if (entry >= saved.size()) reject_state(subject, "lacks '" + std::string(name) + "'");
  const auto& [saved_name, value] = saved[entry];
  if (saved_name != name)
    reject_state(subject, "has '" + saved_name + "' in place of '" + std::string(name) + "'");
  return value;
}

void require_saved_size(std::string_view subject, const NamedValues& saved, std::size_t size) {
  if (saved.size() > size) reject_state(subject, "has an unknown entry '" + saved[size].first + "'");
}

Spec parse_spec(std::string_view text) {
  const std::size_t end_of_name = text.find(':');
  Spec spec{.name = std::string(text.substr(0, end_of_name)), .options = {}};
  for (std::size_t at = end_of_name; at != std::string_view::npos;) {
    const std::size_t next = text.find(':', at + 1);
    const std::string_view option =
        text.substr(at + 1, next == std::string_view::npos ? next : next - at - 1);
    const std::size_t equals = option.find('=');
    if (equals == std::string_view::npos) reject(text, "option '" + std::string(option) + "' has no value");
    if (equals == 0) reject(text, "an option has no name");
    const std::string key(option.substr(0, equals));
    if (!spec.options.emplace(key, option.substr(equals + 1)).second)
      reject(text, "option '" + key + "' is given twice");
    at = next;
  }
  return spec;
}

GivenOptions numeric_options(const Spec& spec) {
  GivenOptions options;
  for (const auto& [key, text] : spec.options) options[key] = number_of(spec, key, text);
  return options;
}

std::pair<std::string, GivenOptions> parse_numeric_spec(std::string_view text) {
  Spec spec = parse_spec(text);
  GivenOptions options = numeric_options(spec);
  return {std::move(spec.name), std::move(options)};
}

}  // namespace names
