#include "sim/data/input_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <stdexcept>
#include <system_error>
#include <utility>

namespace sim {

namespace fs = std::filesystem;

namespace {

[[noreturn]] void throw_not_read(const fs::path& file, std::string_view why) {
  throw std::runtime_error(fmt::format("file '{}' cannot be read ({})", file.string(), why));
}

std::string_view kind_of(mode_t mode) {
  if (S_ISDIR(mode)) return "a directory";
  if (S_ISFIFO(mode)) return "a FIFO";
  if (S_ISSOCK(mode)) return "a socket";
  return "a device";
}

}  // namespace

void throw_about(const fs::path& file, std::string_view what) {
  throw std::runtime_error(fmt::format("{}: {}", file.string(), what));
}

InputFile::InputFile(fs::path file) : path_(std::move(file)) {
  // Without O_NONBLOCK opening a FIFO would wait for somebody who writes to it.
  descriptor_ = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor_ < 0) throw_not_read(path_, std::generic_category().message(errno));
  struct stat status {};
  const int error = ::fstat(descriptor_, &status) == 0 ? 0 : errno;
  if (error == 0 && S_ISREG(status.st_mode)) {
    size_ = static_cast<std::uint64_t>(status.st_size);
    return;
  }
  ::close(descriptor_);
  throw_not_read(path_, error != 0
                            ? std::generic_category().message(error)
                            : fmt::format("it is {}, a regular file is needed", kind_of(status.st_mode)));
}

InputFile::~InputFile() {
  ::close(descriptor_);
}

std::size_t InputFile::read(std::span<std::byte> bytes) {
  std::size_t filled = 0;
  while (filled < bytes.size()) {
    const ssize_t count = ::read(descriptor_, bytes.data() + filled, bytes.size() - filled);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) throw_not_read(path_, std::generic_category().message(errno));
    if (count == 0) break;
    filled += static_cast<std::size_t>(count);
  }
  return filled;
}

std::string read_file(const fs::path& file, std::uint64_t most_bytes) {
  InputFile input(file);
  const auto require_at_most = [&](std::uint64_t bytes) {
    if (bytes > most_bytes)
      throw_not_read(file, fmt::format("it has {} bytes, at most {} are allowed", bytes, most_bytes));
  };
  require_at_most(input.size());
  std::string contents;
  std::array<std::byte, 1 << 16> chunk;
  while (const std::size_t count = input.read(chunk)) {
    require_at_most(contents.size() + count);  // it may have grown, and files of the kernel tell no size
    contents.append(reinterpret_cast<const char*>(chunk.data()), count);
  }
  return contents;
}

}  // namespace sim
