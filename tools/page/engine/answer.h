#pragma once
/// The text of an answer.

#include <nlohmann/json.hpp>
#include <optional>

namespace halflab::page {

/// The value, null where there is none.
template <class Value>
nlohmann::ordered_json optional(const std::optional<Value>& value) {
  return value ? nlohmann::ordered_json(*value) : nlohmann::ordered_json();
}

/// Stands until the next answer.
const char* answer(const nlohmann::ordered_json& found);

}  // namespace halflab::page
