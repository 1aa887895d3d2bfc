#include "sim/data/gzip_file.h"

#include <zlib.h>

#include <algorithm>
#include <cstring>
#include <new>
#include <string_view>

namespace sim {
namespace {

constexpr std::array<std::uint8_t, 2> gzip_magic{0x1f, 0x8b};
constexpr int gzip_only = 16;  // added to the bits of the window

bool begins_a_member(const z_stream& stream) {
  return stream.avail_in >= gzip_magic.size() &&
         std::equal(gzip_magic.begin(), gzip_magic.end(), stream.next_in);
}

}  // namespace

GzipFile::GzipFile(const std::filesystem::path& path) : file_(path), stream_(std::make_unique<z_stream>()) {
  *stream_ = {};
  refill();
  is_compressed_ = begins_a_member(*stream_);
  if (is_compressed_ && inflateInit2(stream_.get(), MAX_WBITS + gzip_only) != Z_OK) throw std::bad_alloc();
}

GzipFile::~GzipFile() {
  if (is_compressed_) inflateEnd(stream_.get());
}

/// Puts more input behind what is not read yet; false at the end of the file.
bool GzipFile::refill() {
  const std::size_t left = stream_->avail_in;
  if (left > 0) std::memmove(input_.data(), stream_->next_in, left);
  const std::size_t count = file_.read(std::span(input_).subspan(left));
  stream_->next_in = reinterpret_cast<Bytef*>(input_.data());
  stream_->avail_in = static_cast<uInt>(left + count);
  return count > 0;
}

std::size_t GzipFile::read(std::span<std::uint8_t> bytes) {
  if (is_compressed_) return inflate(bytes);
  std::size_t filled = 0;
  while (filled < bytes.size() && (stream_->avail_in > 0 || refill())) {
    const std::size_t count = std::min<std::size_t>(bytes.size() - filled, stream_->avail_in);
    std::copy_n(stream_->next_in, count, bytes.data() + filled);
    stream_->next_in += count;
    stream_->avail_in -= static_cast<uInt>(count);
    filled += count;
  }
  return filled;
}

std::size_t GzipFile::inflate(std::span<std::uint8_t> bytes) {
  stream_->next_out = bytes.data();
  stream_->avail_out = static_cast<uInt>(bytes.size());
  while (stream_->avail_out > 0 && !is_at_end_) {
    if (stream_->avail_in == 0 && !refill())
      throw_about(path(), "truncated: the compressed data end early, a whole gzip file is needed");
    const int status = ::inflate(stream_.get(), Z_NO_FLUSH);
    if (status == Z_MEM_ERROR) throw std::bad_alloc();
    if (status == Z_STREAM_END) {
      end_member();
    } else if (status != Z_OK && status != Z_BUF_ERROR) {
      throw_about(path(), "damaged: the compressed data do not fit their checksum or are not gzip's");
    }
  }
  return bytes.size() - stream_->avail_out;
}

void GzipFile::end_member() {
  if (stream_->avail_in < gzip_magic.size()) refill();
  is_at_end_ = stream_->avail_in == 0;
  if (is_at_end_) return;
  if (!begins_a_member(*stream_))
    throw_about(path(), "trailing bytes after the gzip data; nothing may follow them");
  inflateReset(stream_.get());
}

}  // namespace sim
