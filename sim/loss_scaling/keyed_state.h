#pragma once
/// State kept for each layer or tensor, as one list of entries "NAME/entry".

#include <cstddef>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>

#include "fp16/names.h"

namespace sim {

/// Appends `values` under `name`, which may itself contain slashes.
inline void append_keyed(names::NamedValues& state, std::string_view name, const names::NamedValues& values) {
  for (const auto& [entry, value] : values) state.emplace_back(std::string(name) + '/' + entry, value);
}

/// The entries of each name, in their order. Throws std::invalid_argument for an entry without a name.
inline std::map<std::string, names::NamedValues> by_key(std::string_view subject,
                                                        const names::NamedValues& state) {
  std::map<std::string, names::NamedValues> values;
  for (const auto& [key, value] : state) {
    const std::size_t slash = key.rfind('/');
    if (slash == std::string::npos) {
      throw std::invalid_argument(std::string(subject) + ": saved state has '" + key +
                                  "' in place of 'NAME/entry'");
    }
    values[key.substr(0, slash)].emplace_back(key.substr(slash + 1), value);
  }
  return values;
}

/// By name, states that describe themselves by visit().
template <class State>
using KeyedStates = std::map<std::string, State, std::less<>>;

template <class State>
names::NamedValues keyed_values(const KeyedStates<State>& states) {
  names::NamedValues values;
  for (const auto& [name, state] : states) append_keyed(values, name, names::named_values(state));
  return values;
}

/// What keyed_values wrote. Throws std::invalid_argument as state_from does.
template <class State>
KeyedStates<State> keyed_states_from(const names::NamedValues& saved) {
  KeyedStates<State> states;
  for (const auto& [name, values] : by_key(State::subject, saved))
    states[name] = names::state_from<State>(values);
  return states;
}

}  // namespace sim
