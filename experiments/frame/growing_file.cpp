#include "experiments/frame/growing_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <limits>
#include <span>
#include <stdexcept>
#include <system_error>
#include <utility>

#include "experiments/frame/crc32.h"
#include "experiments/frame/files.h"

namespace experiments {

namespace fs = std::filesystem;

FileMark mark_of(const fs::path& file, std::uint64_t bytes) {
  std::ifstream stream(file, std::ios::binary);
  FileMark mark{.name = file.filename().string()};
  std::array<char, 1 << 16> chunk;
  while (stream && mark.bytes < bytes) {
    stream.read(chunk.data(),
                static_cast<std::streamsize>(std::min<std::uint64_t>(chunk.size(), bytes - mark.bytes)));
    const auto count = static_cast<std::size_t>(stream.gcount());
    mark.checksum = crc32(std::as_bytes(std::span(chunk).first(count)), mark.checksum);
    mark.bytes += count;
  }
  return mark;
}

namespace {

/// Where a file system's locks do not reach other hosts, a run that was held up there may wake and write on.
[[noreturn]] void throw_altered(const fs::path& file) {
  throw std::runtime_error(fmt::format(
      "file '{}' is not what this run wrote: another run writes there, too; the same command goes "
      "on from the last checkpoint",
      file.string()));
}

}  // namespace

GrowingFile::GrowingFile(fs::path file) : file_(std::move(file)) {
  written_.name = file_.filename().string();
  open(std::ios::trunc);
  stream_.close();
  open(std::ios::app);  // so that what two runs write is longer than either knows
}

GrowingFile::GrowingFile(fs::path file, const FileMark& mark)
    : file_(std::move(file)), written_(mark), marked_bytes_(mark.bytes) {
  std::error_code error;
  fs::resize_file(file_, mark.bytes, error);
  if (error) throw_not_written(file_, error.value());
  open(std::ios::app);
}

GrowingFile::~GrowingFile() {
  stream_.close();
  std::error_code ignored;
  if (!marked_bytes_) fs::remove(file_, ignored);
}

void GrowingFile::open(std::ios::openmode mode) {
  stream_.open(file_, std::ios::binary | mode);
  if (!stream_) throw_not_written(file_, errno);
}

void GrowingFile::append(std::string_view text) {
  errno = 0;
  if (!stream_.write(text.data(), static_cast<std::streamsize>(text.size()))) throw_not_written(file_, errno);
  written_.bytes += text.size();
  written_.checksum = crc32(std::as_bytes(std::span(text)), written_.checksum);
}

void GrowingFile::flush() {
  errno = 0;
  if (!stream_.flush()) throw_not_written(file_, errno);
}

FileMark GrowingFile::mark() {
  if (marked_bytes_ != written_.bytes) {
    flush();
    synchronise(file_);
    std::error_code error;
    if (fs::file_size(file_, error) != written_.bytes || error) throw_altered(file_);
    marked_bytes_ = written_.bytes;
  }
  return written_;
}

void GrowingFile::copy_to(const fs::path& file) {
  flush();
  if (mark_of(file_, std::numeric_limits<std::uint64_t>::max()) != written_) throw_altered(file_);
  std::error_code error;
  fs::copy_file(file_, file, fs::copy_options::overwrite_existing, error);
  if (error) throw_not_written(file, error.value());
}

}  // namespace experiments
