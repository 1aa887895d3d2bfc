#pragma once
/// Files as wholes, and the errors of those that cannot be read or written.

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace sim {

/// Throws std::runtime_error "file 'FILE' cannot be written (...)" with the message of that errno.
[[noreturn]] void throw_not_written(const std::filesystem::path& file, int error);

/// Throws std::runtime_error "FILE: WHAT", for a file whose contents are wrong.
[[noreturn]] void throw_about(const std::filesystem::path& file, std::string_view what);

/// A regular file that is open for reading. Directories, FIFOs and devices are refused, so that nobody waits for
/// one that never speaks or reads one that never ends.
class InputFile {
 public:
  /// Throws std::runtime_error "file 'FILE' cannot be read (...)" with the reason, here and below.
  explicit InputFile(std::filesystem::path file);
  ~InputFile();
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;

  const std::filesystem::path& path() const { return path_; }
  std::uint64_t size() const { return size_; }

  /// Fills `bytes` as far as the file goes and returns how many were read.
  std::size_t read(std::span<std::byte> bytes);

 private:
  std::filesystem::path path_;
  int descriptor_ = -1;
  std::uint64_t size_ = 0;
};

/// The bytes of a regular file. Throws as InputFile does, for a file of more than `most_bytes` too.
std::string read_file(const std::filesystem::path& file,
                      std::uint64_t most_bytes = std::numeric_limits<std::uint64_t>::max());

/// The bytes of a regular file; nothing where there is none that can be read.
std::optional<std::string> contents_of(const std::filesystem::path& file);

/// Throws as throw_not_written does.
void write_contents(const std::filesystem::path& file, std::string_view contents);

/// Returns when the disk has all that was written to the file, or of a directory the names in it. Throws as
/// throw_not_written does.
void synchronise(const std::filesystem::path& file);

}  // namespace sim
