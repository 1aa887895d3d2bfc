#include "experiments/frame/files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <fstream>
#include <stdexcept>
#include <system_error>

namespace experiments {

namespace fs = std::filesystem;

namespace {

std::string_view kind_of(fs::file_type type) {
  if (type == fs::file_type::directory) return "a directory";
  if (type == fs::file_type::fifo) return "a FIFO";
  if (type == fs::file_type::socket) return "a socket";
  return "a device";
}

}  // namespace

void throw_not_read(const fs::path& file, std::string_view why) {
  throw std::runtime_error(fmt::format("file '{}' cannot be read ({})", file.string(), why));
}

void require_regular(const fs::path& file) {
  std::error_code error;
  const fs::file_status status = fs::status(file, error);
  if (error) throw_not_read(file, error.message());
  if (!fs::is_regular_file(status))
    throw_not_read(file, fmt::format("it is {}, a regular file is needed", kind_of(status.type())));
}

bool is_folder(const fs::path& path) {
  std::error_code error;
  return fs::is_directory(path, error);
}

void throw_not_written(const fs::path& file, int error) {
  throw std::runtime_error(
      fmt::format("file '{}' cannot be written ({})", file.string(), std::generic_category().message(error)));
}

std::string read_file(const fs::path& file, std::uint64_t most_bytes) {
  require_regular(file);
  const auto require_at_most = [&](std::uint64_t bytes) {
    if (bytes > most_bytes)
      throw_not_read(file, fmt::format("it has {} bytes, at most {} are allowed", bytes, most_bytes));
  };
  require_at_most(fs::file_size(file));
  errno = 0;
  std::ifstream stream(file, std::ios::binary);
  std::string contents;
  std::array<char, 1 << 16> chunk;
  while (stream.read(chunk.data(), chunk.size()) || stream.gcount() > 0) {
    contents.append(chunk.data(), static_cast<std::size_t>(stream.gcount()));
    require_at_most(contents.size());  // it may have grown, and files of the kernel tell no size
  }
  if (!stream.eof()) throw_not_read(file, std::generic_category().message(errno));
  return contents;
}

std::optional<std::string> contents_of(const fs::path& file) {
  try {
    return read_file(file);
  } catch (const std::runtime_error&) {
    return std::nullopt;
  }
}

void write_contents(const fs::path& file, std::string_view contents) {
  errno = 0;
  std::ofstream stream(file, std::ios::binary);
  stream.write(contents.data(), static_cast<std::streamsize>(contents.size()));
  stream.close();
  if (!stream) throw_not_written(file, errno);
}

void synchronise(const fs::path& file) {
  const int descriptor = ::open(file.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) throw_not_written(file, errno);
  const int error = ::fsync(descriptor) == 0 ? 0 : errno;
  ::close(descriptor);
  if (error != 0) throw_not_written(file, error);
}

}  // namespace experiments
