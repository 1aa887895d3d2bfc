#include "tools/halflab/show/page_fragment.h"

#include <fmt/format.h>

#include <algorithm>

namespace halflab::show {
namespace {

/// As JavaScript's encodeURIComponent.
std::string encoded(std::string_view text) {
  constexpr std::string_view kept = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.!~*'()";
  std::string result;
  for (const char character : text)
    result += kept.find(character) != kept.npos
                  ? std::string(1, character)
                  : fmt::format("%{:02X}", static_cast<unsigned>(static_cast<unsigned char>(character)));
  return result;
}

}  // namespace

std::string page_fragment(std::string_view chapter,
                          std::initializer_list<std::pair<std::string_view, std::string_view>> parameters) {
  std::string fragment = fmt::format("#{}", chapter);
  for (const auto& [name, value] : parameters) fragment += fmt::format("&{}={}", name, encoded(value));
  return fragment;
}

std::string page_fragment(const Findings& found) {
  const bool is_number = found.last.operation == Operator::number || found.last.operation == Operator::code;
  return page_fragment(is_number ? "number" : "operation",
                       {{"format", found.format_name}, {"value", found.input}});
}

}  // namespace halflab::show
