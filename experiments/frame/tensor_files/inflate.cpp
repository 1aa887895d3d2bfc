#include "experiments/frame/tensor_files/inflate.h"

#include <zlib.h>

#include <algorithm>
#include <limits>
#include <new>
#include <utility>

namespace experiments::tensor_files {

struct Inflater::Stream {
  z_stream state{};
  bool ended = false;
};

Inflater::Inflater(Bytes packed, std::filesystem::path file)
    : stream_(std::make_unique<Stream>()), packed_(packed), file_(std::move(file)) {
  if (::inflateInit2(&stream_->state, -MAX_WBITS) != Z_OK) throw std::bad_alloc();
}

Inflater::~Inflater() {
  ::inflateEnd(&stream_->state);
}

std::size_t Inflater::read(std::span<std::byte> bytes) {
  constexpr std::size_t most = std::numeric_limits<uInt>::max();
  z_stream& state = stream_->state;
  std::size_t done = 0;
  while (done < bytes.size() && !stream_->ended) {
    if (state.avail_in == 0) {
      state.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(packed_.data()));
      state.avail_in = static_cast<uInt>(std::min(packed_.size(), most));
      packed_ = packed_.subspan(state.avail_in);
    }
    state.next_out = reinterpret_cast<Bytef*>(bytes.data() + done);
    const auto room = static_cast<uInt>(std::min(bytes.size() - done, most));
    state.avail_out = room;
    const int result = ::inflate(&state, Z_NO_FLUSH);
    done += room - state.avail_out;
    stream_->ended = result == Z_STREAM_END;
    if (result != Z_OK && result != Z_STREAM_END)
      refuse(file_, "is damaged: its deflated bytes cannot be unpacked");
  }
  return done;
}

}  // namespace experiments::tensor_files
