#pragma once

#include <toml++/toml.h>

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace experiments {

/// The longest TOML file that is read, in bytes.
inline constexpr std::size_t most_toml_bytes = std::size_t{4} << 20;

/// The most parts that a key or a table's name may have, as "a.b.c" has three. toml++ bounds how deep arrays
/// and inline tables nest, to 256, but not these; and each part is a table, read and freed by recursion.
inline constexpr int most_key_parts = 16;

/// A line, from 1, and what is wrong with it.
struct TomlFault {
  std::size_t line;
  std::string problem;
};

/// The first thing that toml++ 3.3 must not be given: a key of too many parts, and what makes its parser's behaviour
/// undefined: a letter beyond ASCII where no string or comment is, quotes, brackets and = out of their places, and a table's
/// name that begins as no key does.
std::optional<TomlFault> fault_before_parsing(std::string_view toml);

/// The contents of a TOML text. Throws std::runtime_error, "FILE:LINE: what is wrong", for what is not TOML or has a key
/// of too many parts.
toml::table parse_toml(std::string_view text, const std::string& file);

/// The contents of a TOML file. Throws as parse_toml(), and as read_file() for what is no regular file or too long.
toml::table read_toml_file(const std::string& file);

}  // namespace experiments
