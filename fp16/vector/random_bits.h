#pragma once
/// The random bits of stochastic rounding over arrays: given in an array, or drawn block by block. Internal.

#include <optional>
#include <span>

#include "fp16/vector/philox_kernels.h"

namespace fp16::detail {

/// One number of 32 bits for each element of an array. Both sources empty: there are none.
class RandomBits {
 public:
  RandomBits(std::span<const std::uint32_t> given, const std::optional<PhiloxSequence>& drawn,
             VectorPath path = active_vector_path())
      : given_(given), drawn_(drawn), kernel_(drawn ? philox_kernel(path) : nullptr) {}

  explicit operator bool() const { return drawn_ || !given_.empty(); }

  /// The numbers of the elements begin .. begin + count - 1; `buffer`, of philox_buffer_size(count), may hold them.
  const std::uint32_t* from(std::size_t begin, std::size_t count, std::uint32_t* buffer) const {
    if (!drawn_) return given_.data() + begin;
    return fill_buffer(kernel_, drawn_->generator, drawn_->first + begin, count, buffer);
  }

 private:
  std::span<const std::uint32_t> given_;
  std::optional<PhiloxSequence> drawn_;
  PhiloxKernel kernel_;
};

}  // namespace fp16::detail
