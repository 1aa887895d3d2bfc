#pragma once
/// The elements of stored tensors, a bounded number of bytes at a time.

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "experiments/frame/tensor_files/stored_tensor.h"

namespace experiments::tensor_files {

class Inflater;

/// Elements that can be read apart from all others.
struct Piece {
  const StoredTensor* tensor;
  std::uint64_t first;
  std::uint64_t count;
};

/// Takes elements in native byte order, aligned as their type; packed ones from the lowest bits of a byte on. `first` is
/// the place of the first one in the order of the file.
using ElementConsumer = std::function<void(Bytes elements, std::uint64_t first)>;

/// The tensor in pieces of about 16 MiB, in the order of the file; a deflated one in one piece.
std::vector<Piece> pieces_of(const StoredTensor& tensor);

/// Calls `consume` with all elements of the piece, in order, at most 16 MiB at a time and a multiple of 8 elements but for
/// the last; without a copy where the file has them as they are needed. The mapping's pages are given back. Different
/// pieces may be read at one time. Throws std::runtime_error where deflated bytes are damaged or too few, or a byte
/// holds no code.
void read_piece(const Piece& piece, const ElementConsumer& consume);

/// The elements of a piece in order, as many at a time as are asked for, so that two tensors can be read side by side.
/// The mapping's pages are given back at its end.
class ElementStream {
 public:
  explicit ElementStream(const Piece& piece);
  ~ElementStream();
  ElementStream(const ElementStream&) = delete;
  ElementStream& operator=(const ElementStream&) = delete;

  /// The next so many, a multiple of 8 but for the last, as read_piece() gives them; valid until the next call. Throws as
  /// read_piece() does.
  Bytes next(std::uint64_t count);

  /// Whether all is given without a copy.
  bool is_ready() const;

 private:
  void fill(std::span<std::byte> part);

  const StoredTensor& tensor_;
  Bytes stored_;  ///< where the piece lies; of a deflated tensor nothing
  Bytes rest_;    ///< of these, what comes next
  std::unique_ptr<Inflater> inflater_;
  std::vector<std::byte> copy_;
  std::vector<std::byte> packed_;  ///< of a copy with a byte for each element
};

/// Packs the codes of fewer than 8 bits that a tensor has in a byte each, as read_piece() gives them. Throws
/// std::runtime_error, naming the tensor, where a byte has more bits.
void pack_codes(Bytes codes, const StoredTensor& tensor, std::vector<std::byte>& packed);

/// The tensor's elements as read_piece() gives them, at one time.
std::vector<std::byte> read_elements(const StoredTensor& tensor);

/// The place in C order of the element that has this place in the file.
std::uint64_t logical_index(const StoredTensor& tensor, std::uint64_t stored);

/// "(1, 2)", the indices of the element of this place in C order.
std::string index_text_of(const Shape& shape, std::uint64_t place);

/// The indices of the element that has this place in the file.
std::string index_text(const StoredTensor& tensor, std::uint64_t stored);

}  // namespace experiments::tensor_files
