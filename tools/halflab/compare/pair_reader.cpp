#include "tools/halflab/compare/pair_reader.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include "tools/halflab/elements.h"

namespace halflab::compare {
namespace {

namespace files = experiments::tensor_files;

constexpr std::uint64_t elements_of_a_piece = 1 << 22, elements_of_a_block = 1 << 13;

/// Whether elements have to be picked one by one.
bool orders_differ(const files::StoredTensor& a, const files::StoredTensor& b) {
  return a.columns_first != b.columns_first && a.shape.size() > 1;
}

/// Elements in C order of a tensor whose first index runs fastest in the file, a .npy array, whose elements have whole bytes.
class Gatherer {
 public:
  Gatherer(const files::StoredTensor& tensor, std::uint64_t first)
      : tensor_(tensor),
        width_(static_cast<std::size_t>(std::max(tensor.type->bits / 8, 1))),
        indices_(tensor.shape.size()) {
    if (tensor.packing == files::Packing::deflate) {
      unpacked_ = byte_each(files::read_elements(tensor));
      stored_ = unpacked_;
    } else {
      stored_ = tensor.data;
    }
    std::uint64_t stride = 1;
    for (const std::uint64_t size : tensor.shape) {
      strides_.push_back(stride);
      stride *= size;
    }
    for (std::size_t i = indices_.size(); i-- > 0;) {
      indices_[i] = first % tensor.shape[i];
      first /= tensor.shape[i];
      place_ += indices_[i] * strides_[i];
    }
  }

  files::Bytes next(std::uint64_t count) {
    elements_.resize(count * width_);
    for (std::uint64_t i = 0; i < count; ++i) {
      std::byte* const element = elements_.data() + i * width_;
      std::memcpy(element, stored_.data() + place_ * width_, width_);
      if (tensor_.big_endian && unpacked_.empty()) std::reverse(element, element + width_);
      step();
    }
    if (tensor_.type->bits >= 8) return elements_;
    files::pack_codes(elements_, tensor_, packed_);
    return packed_;
  }

 private:
  /// The elements as they are read, those of fewer than 8 bits in a byte each.
  std::vector<std::byte> byte_each(std::vector<std::byte> elements) const {
    if (tensor_.type->bits >= 8) return elements;
    std::vector<std::byte> codes(tensor_.elements);
    for (std::uint64_t i = 0; i < codes.size(); ++i)
      codes[i] = static_cast<std::byte>(code_at(elements, *tensor_.type, i));
    return codes;
  }

  void step() {
    for (std::size_t i = indices_.size(); i-- > 0;) {
      place_ += strides_[i];
      if (++indices_[i] < tensor_.shape[i]) return;
      place_ -= strides_[i] * tensor_.shape[i];
      indices_[i] = 0;
    }
  }

  const files::StoredTensor& tensor_;
  std::size_t width_;
  std::vector<std::byte> unpacked_;
  files::Bytes stored_;
  std::vector<std::uint64_t> strides_, indices_;
  std::uint64_t place_ = 0;
  std::vector<std::byte> elements_, packed_;
};

}  // namespace

std::vector<PairPiece> pieces_of(std::size_t pair, const files::StoredTensor& a,
                                 const files::StoredTensor& b) {
  const bool is_mapped = a.packing == files::Packing::none && b.packing == files::Packing::none;
  const std::uint64_t most = is_mapped ? elements_of_a_piece : a.elements;
  std::vector<PairPiece> pieces;
  for (std::uint64_t first = 0; first < a.elements; first += most)
    pieces.push_back({.pair = pair, .first = first, .count = std::min(most, a.elements - first)});
  return pieces;
}

class PairReader::Side {
 public:
  Side(const files::StoredTensor& tensor, const PairPiece& piece, bool gathers) {
    if (gathers) {
      gatherer_.emplace(tensor, piece.first);
    } else {
      stream_.emplace(files::Piece{.tensor = &tensor, .first = piece.first, .count = piece.count});
    }
  }

  files::Bytes next(std::uint64_t count) { return gatherer_ ? gatherer_->next(count) : stream_->next(count); }

 private:
  std::optional<Gatherer> gatherer_;
  std::optional<files::ElementStream> stream_;
};

PairReader::PairReader(const PairPiece& piece, const files::StoredTensor& a, const files::StoredTensor& b)
    : tensor_(a),
      in_c_order_(orders_differ(a, b) || !a.columns_first),
      a_(std::make_unique<Side>(a, piece, orders_differ(a, b) && a.columns_first)),
      b_(std::make_unique<Side>(b, piece, orders_differ(a, b) && b.columns_first)),
      next_(piece.first),
      end_(piece.first + piece.count) {}

PairReader::~PairReader() = default;

PairReader::Block PairReader::next() {
  const std::uint64_t count = std::min(elements_of_a_block, end_ - next_);
  Block block{.a = {}, .b = {}, .first = next_, .count = count};
  if (count > 0) {
    block.a = a_->next(count);
    block.b = b_->next(count);
  }
  next_ += count;
  return block;
}

std::uint64_t PairReader::index(std::uint64_t place) const {
  return in_c_order_ ? place : files::logical_index(tensor_, place);
}

}  // namespace halflab::compare
