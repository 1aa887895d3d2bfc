#pragma once
/// Files as wholes, and the errors of those that cannot be written.

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

namespace sim {

/// Throws std::runtime_error "file 'FILE' cannot be written (...)" with the message of that errno.
[[noreturn]] void throw_not_written(const std::filesystem::path& file, int error);

/// The bytes of a file; nothing where it cannot be read.
std::optional<std::string> contents_of(const std::filesystem::path& file);

/// Throws as throw_not_written does.
void write_contents(const std::filesystem::path& file, std::string_view contents);

/// Returns when the disk has all that was written to the file, or of a directory the names in it. Throws as
/// throw_not_written does.
void synchronise(const std::filesystem::path& file);

}  // namespace sim
