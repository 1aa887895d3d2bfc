#include "experiments/frame/shard.h"

#include <fmt/format.h>

#include <charconv>
#include <optional>
#include <string_view>

#include "experiments/frame/command_line.h"

namespace experiments {
namespace {

constexpr std::size_t most_parts = std::size_t{1} << 31;

std::optional<std::size_t> number_in(std::string_view text) {
  std::size_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc{} && end == text.data() + text.size() ? std::optional(number) : std::nullopt;
}

}  // namespace

Shard parse_shard(const std::string& text) {
  const std::size_t slash = text.find('/');
  const auto index = number_in(std::string_view(text).substr(0, slash));
  const auto count =
      slash == std::string::npos ? std::nullopt : number_in(std::string_view(text).substr(slash + 1));
  if (!index || !count)
    throw UsageError(fmt::format("--shard: '{}' is given; must be such as 2/4, the second of four", text));
  if (*count > most_parts)
    throw UsageError(fmt::format("--shard: '{}' is given; must be of at most {} parts", text, most_parts));
  if (*count == 0)
    throw UsageError(fmt::format("--shard: '{}' is given; must be of one part or more, such as 2/4", text));
  if (*index < 1 || *index > *count)
    throw UsageError(
        fmt::format("--shard: '{}' is given; must be from 1/{} to {}/{}", text, *count, *count, *count));
  return {.index = *index, .count = *count};
}

}  // namespace experiments
