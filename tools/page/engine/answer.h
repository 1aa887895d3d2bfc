#pragma once
/// The text of an answer.

#include <nlohmann/json_fwd.hpp>

namespace halflab::page {

/// Stands until the next answer.
const char* answer(const nlohmann::ordered_json& found);

}  // namespace halflab::page
