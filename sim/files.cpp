#include "sim/files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <fstream>
#include <stdexcept>
#include <system_error>
#include <utility>

namespace sim {

namespace fs = std::filesystem;

void throw_not_written(const fs::path& file, int error) {
  throw std::runtime_error(
      fmt::format("file '{}' cannot be written ({})", file.string(), std::generic_category().message(error)));
}

std::optional<std::string> contents_of(const fs::path& file) {
  std::ifstream stream(file, std::ios::binary);
  std::string contents;
  std::array<char, 1 << 16> chunk;
  while (stream) {
    stream.read(chunk.data(), chunk.size());
    contents.append(chunk.data(), static_cast<std::size_t>(stream.gcount()));
  }
  return stream.eof() ? std::optional(std::move(contents)) : std::nullopt;
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

}  // namespace sim
