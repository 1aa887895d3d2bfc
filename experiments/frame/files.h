#pragma once
/// Files as wholes, and the errors of those that cannot be read or written.

#include <cstdint>
#include <filesystem>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

namespace experiments {

/// Throws std::runtime_error "file 'FILE' cannot be read (WHY)".
[[noreturn]] void throw_not_read(const std::filesystem::path& file, std::string_view why);

/// Throws as throw_not_read does where it is no regular file: nobody waits for a FIFO that never speaks.
void require_regular(const std::filesystem::path& file);

/// Throws std::runtime_error "file 'FILE' cannot be written (...)" with the message of that errno.
[[noreturn]] void throw_not_written(const std::filesystem::path& file, int error);

/// Whatever cannot be read is no folder: reading it as a file says why.
bool is_folder(const std::filesystem::path& path);

/// The bytes of a regular file. Throws std::runtime_error "file 'FILE' cannot be read (...)" with the reason: it is no
/// regular file (nobody waits for a FIFO that never speaks), has more than `most_bytes`, or the system refuses.
std::string read_file(const std::filesystem::path& file,
                      std::uint64_t most_bytes = std::numeric_limits<std::uint64_t>::max());

/// The bytes of a regular file; nothing where there is none that can be read.
std::optional<std::string> contents_of(const std::filesystem::path& file);

/// Throws as throw_not_written does.
void write_contents(const std::filesystem::path& file, std::string_view contents);

/// Returns when the disk has all that was written to the file, or of a directory the names in it. Throws as
/// throw_not_written does.
void synchronise(const std::filesystem::path& file);

}  // namespace experiments
