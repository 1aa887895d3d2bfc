#pragma once
/// Reading the files that data come from, and errors that name them.

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

namespace sim {

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
std::string read_file(const std::filesystem::path& file, std::uint64_t most_bytes);

}  // namespace sim
