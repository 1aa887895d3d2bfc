#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>

#include "sim/data/input_file.h"

struct z_stream_s;

namespace sim {

/// A file's bytes, decompressed where they are gzip's (RFC 1952): one member or several, each of which must be
/// whole, with its trailer, and fit the length and CRC-32 in that; nothing may come after the last. (zlib's own
/// gzread takes a file without its trailer for a whole one, and is silent about what follows.)
class GzipFile {
 public:
  /// Throws as InputFile does.
  explicit GzipFile(const std::filesystem::path& path);
  ~GzipFile();

  const std::filesystem::path& path() const { return file_.path(); }

  /// Fills `bytes` as far as the contents go and returns how many were read; fewer only after everything was
  /// checked. Throws std::runtime_error, naming the file, when it cannot be read or its compressed data are
  /// truncated, damaged or followed by others.
  std::size_t read(std::span<std::uint8_t> bytes);

 private:
  bool refill();
  std::size_t inflate(std::span<std::uint8_t> bytes);
  /// After the end of a member: begins the next one, if there is one.
  void end_member();

  InputFile file_;
  std::array<std::byte, 1 << 16> input_;
  std::unique_ptr<z_stream_s> stream_;  ///< `next_in` is what of the input is not read yet
  bool is_compressed_ = false;
  bool is_at_end_ = false;
};

}  // namespace sim
