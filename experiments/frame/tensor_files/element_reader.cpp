#include "experiments/frame/tensor_files/element_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <stdexcept>

#include "experiments/frame/tensor_files/inflate.h"
#include "experiments/frame/tensor_files/mapped_file.h"

namespace experiments::tensor_files {
namespace {

constexpr std::uint64_t bytes_of_a_piece = 16 << 20;
constexpr std::uint64_t bytes_of_a_copy = 1 << 20;

/// How many elements fill so many bytes; a multiple of 8.
std::uint64_t elements_in(std::uint64_t bytes, const StoredTensor& tensor) {
  return bytes * 8 / static_cast<std::uint64_t>(tensor.type->bits) / 8 * 8;
}

/// Bytes that so many elements take in the file, from a whole byte on.
std::uint64_t bytes_of(std::uint64_t elements, const StoredTensor& tensor) {
  if (tensor.byte_each) return elements;
  return (elements * static_cast<std::uint64_t>(tensor.type->bits) + 7) / 8;
}

std::size_t width_of(const StoredTensor& tensor) {
  return static_cast<std::size_t>(std::max(tensor.type->bits / 8, 1));
}

bool is_aligned(Bytes bytes, std::size_t width) {
  return reinterpret_cast<std::uintptr_t>(bytes.data()) % width == 0;
}

void swap_bytes(std::span<std::byte> bytes, std::size_t width) {
  for (std::size_t i = 0; i < bytes.size(); i += width) std::ranges::reverse(bytes.subspan(i, width));
}

}  // namespace

void pack_codes(Bytes codes, const StoredTensor& tensor, std::vector<std::byte>& packed) {
  const auto width = static_cast<std::size_t>(tensor.type->bits);
  packed.assign((codes.size() * width + 7) / 8, {});
  for (std::size_t i = 0; i < codes.size(); ++i) {
    const auto code = static_cast<unsigned>(codes[i]);
    if (code >> width != 0)
      throw std::runtime_error(fmt::format("{} has the byte {:#04x} where a code of {} bits is needed",
                                           tensor.place(), code, width));
    const std::size_t place = i * width / 8, shift = i * width % 8;
    packed[place] |= static_cast<std::byte>(code << shift);
    if (shift + width > 8) packed[place + 1] |= static_cast<std::byte>(code >> (8 - shift));
  }
}

std::vector<Piece> pieces_of(const StoredTensor& tensor) {
  std::vector<Piece> pieces;
  const std::uint64_t most =
      tensor.packing == Packing::none ? elements_in(bytes_of_a_piece, tensor) : tensor.elements;
  for (std::uint64_t first = 0; first < tensor.elements; first += most)
    pieces.push_back({.tensor = &tensor, .first = first, .count = std::min(most, tensor.elements - first)});
  return pieces;
}

ElementStream::ElementStream(const Piece& piece) : tensor_(*piece.tensor) {
  if (tensor_.packing == Packing::none) {
    rest_ = stored_ = tensor_.data.subspan(bytes_of(piece.first, tensor_), bytes_of(piece.count, tensor_));
  } else {
    inflater_ = std::make_unique<Inflater>(tensor_.data, tensor_.file);
    std::vector<std::byte> header(tensor_.skipped);
    fill(header);
  }
}

ElementStream::~ElementStream() {
  if (tensor_.is_mapped) give_back(stored_);
}

bool ElementStream::is_ready() const {
  return !inflater_ && !tensor_.big_endian && !tensor_.byte_each && is_aligned(rest_, width_of(tensor_));
}

void ElementStream::fill(std::span<std::byte> part) {
  if (inflater_) {
    if (inflater_->read(part) < part.size())
      throw std::runtime_error(
          fmt::format("{} is cut off: its deflated bytes end too early", tensor_.place()));
  } else {
    std::ranges::copy(rest_.first(part.size()), part.begin());
  }
}

Bytes ElementStream::next(std::uint64_t count) {
  const std::uint64_t size = bytes_of(count, tensor_);
  Bytes elements;
  if (is_ready()) {
    elements = rest_.first(size);
  } else {
    copy_.resize(size);
    fill(copy_);
    if (tensor_.big_endian) swap_bytes(copy_, width_of(tensor_));
    if (tensor_.byte_each) pack_codes(copy_, tensor_, packed_);
    elements = tensor_.byte_each ? packed_ : copy_;
  }
  if (!inflater_) rest_ = rest_.subspan(size);
  return elements;
}

void read_piece(const Piece& piece, const ElementConsumer& consume) {
  if (piece.count == 0) return;
  ElementStream stream(piece);
  const std::uint64_t most = stream.is_ready() ? piece.count : elements_in(bytes_of_a_copy, *piece.tensor);
  for (std::uint64_t done = 0; done < piece.count;) {
    const std::uint64_t count = std::min(piece.count - done, most);
    consume(stream.next(count), piece.first + done);
    done += count;
  }
}

std::vector<std::byte> read_elements(const StoredTensor& tensor) {
  std::vector<std::byte> elements;
  elements.reserve(tensor.packing == Packing::none ? tensor.bytes()
                                                   : 0);  // deflated: what its header claims is not yet there
  for (const Piece& piece : pieces_of(tensor))
    read_piece(piece,
               [&](Bytes part, std::uint64_t) { elements.insert(elements.end(), part.begin(), part.end()); });
  return elements;
}

std::uint64_t logical_index(const StoredTensor& tensor, std::uint64_t stored) {
  if (!tensor.columns_first) return stored;
  std::uint64_t stride = tensor.elements, index = 0;
  for (const std::uint64_t size : tensor.shape) {
    stride /= size;
    index += stored % size * stride;
    stored /= size;
  }
  return index;
}

std::string index_text_of(const Shape& shape, std::uint64_t place) {
  Shape indices(shape.size());
  for (std::size_t i = indices.size(); i-- > 0;) {
    indices[i] = place % shape[i];
    place /= shape[i];
  }
  return text_of(indices);
}

std::string index_text(const StoredTensor& tensor, std::uint64_t stored) {
  return index_text_of(tensor.shape, logical_index(tensor, stored));
}

}  // namespace experiments::tensor_files
