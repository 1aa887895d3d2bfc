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

/// The line, from 1, of the first key with more parts than that. Dots in strings and comments part nothing.
std::optional<std::size_t> line_of_too_long_key(std::string_view toml);

/// The contents of a TOML file. Throws std::runtime_error, "FILE:LINE: what is wrong", for what is not TOML or
/// has a key of too many parts, and as read_file() does for what is no regular file or too long.
toml::table read_toml_file(const std::string& file);

}  // namespace experiments
