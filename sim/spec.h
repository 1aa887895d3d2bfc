#pragma once
/// A named variant with options in one word, as the command line takes it: "dynamic:growth_interval=20".

#include <map>
#include <string>
#include <string_view>

#include "sim/options.h"

namespace sim {

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

/// The same in one step: name and numbers.
inline std::pair<std::string, GivenOptions> parse_numeric_spec(std::string_view text) {
  Spec spec = parse_spec(text);
  GivenOptions options = numeric_options(spec);
  return {std::move(spec.name), std::move(options)};
}

}  // namespace sim
