#pragma once
/// Two tensors of one shape side by side, whatever the order and byte order of their elements.

#include <memory>
#include <vector>

#include "experiments/frame/tensor_files/element_reader.h"

namespace halflab::compare {

/// A part of two tensors of one shape that is read apart from others.
struct PairPiece {
  std::size_t pair;     ///< which
  std::uint64_t first;  ///< in the order of both files; where these have different ones, in C order
  std::uint64_t count;
};

/// The pieces of pair number `pair`, of up to 4 Mi elements; all in one where a tensor is deflated.
std::vector<PairPiece> pieces_of(std::size_t pair, const experiments::tensor_files::StoredTensor& a,
                                 const experiments::tensor_files::StoredTensor& b);

class PairReader {
 public:
  PairReader(const PairPiece& piece, const experiments::tensor_files::StoredTensor& a,
             const experiments::tensor_files::StoredTensor& b);
  ~PairReader();

  struct Block {
    experiments::tensor_files::Bytes a, b;  ///< as read_piece() gives them
    std::uint64_t first;                    ///< as in PairPiece
    std::uint64_t count;                    ///< none at the end
  };
  /// The next elements, at most 8 Ki, so that they stay in the cache. What it gives is valid until the next call.
  Block next();

  /// The place in C order of the element at this place.
  std::uint64_t index(std::uint64_t place) const;

 private:
  class Side;

  const experiments::tensor_files::StoredTensor& tensor_;  ///< in whose order elements are read
  const bool in_c_order_;
  std::unique_ptr<Side> a_, b_;
  std::uint64_t next_, end_;
};

}  // namespace halflab::compare
