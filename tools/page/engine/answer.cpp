#include "tools/page/engine/answer.h"

#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>

#include "tools/page/engine/engine.h"

namespace halflab::page {

const char* answer(const nlohmann::ordered_json& found) {
  static std::string text;
  text = found.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
  return text.c_str();
}

}  // namespace halflab::page

char* engine_allocate(std::size_t bytes) {
  return static_cast<char*>(std::malloc(bytes));
}

void engine_free(char* room) {
  std::free(room);
}
