#pragma once
/// A dense row-major array that really stores its elements in its format: an FP16 tensor owns two bytes per
/// element.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "fp16/bulk.h"
#include "fp16/formats.h"
#include "fp16/gemm.h"
#include "sim/tensor/memory_account.h"
#include "sim/tensor/random.h"

namespace sim {

using Shape = std::vector<std::size_t>;

std::size_t element_count(const Shape& shape);
std::string to_string(const Shape& shape);

class Tensor {
 public:
  Tensor() = default;
  /// Storage for `shape` in binary16, bfloat16, binary32 or binary64, its contents indeterminate.
  /// Throws std::invalid_argument for any other format.
  Tensor(Shape shape, fp16::Format format);
  static Tensor zeros(Shape shape, fp16::Format format);
  /// A binary32 tensor holding `values`. Throws std::invalid_argument when their number is not the shape's.
  static Tensor from(Shape shape, std::span<const float> values);

  Tensor(const Tensor& other);
  Tensor& operator=(const Tensor& other);
  Tensor(Tensor&&) noexcept = default;
  Tensor& operator=(Tensor&&) noexcept = default;

  const Shape& shape() const { return shape_; }
  std::size_t size() const { return size_; }
  std::size_t size_bytes() const { return size_ * static_cast<std::size_t>(format_.size_bytes()); }
  fp16::Format format() const { return format_; }
  bool empty() const { return size_ == 0; }

  /// Counts its bytes in another role of the account that they were charged to where they were allocated, if
  /// there is one (AllocationScope). A move keeps account and role; a copy is an allocation of its own.
  void charge_to(MemoryRole role);

  /// The stored elements, of the type the format says (binary16: its bits). Another type is a logic error
  /// (assert).
  template <class Stored>
  std::span<const Stored> elements() const {
    check_stored_size(sizeof(Stored));
    return {reinterpret_cast<const Stored*>(bytes_.get()), size_};
  }
  template <class Stored>
  std::span<Stored> elements() {
    check_stored_size(sizeof(Stored));
    return {reinterpret_cast<Stored*>(bytes_.get()), size_};
  }

  /// All elements as float, exactly; std::invalid_argument for a binary64 tensor.
  std::vector<float> to_floats() const;
  double element(std::size_t index) const;

  /// Two dimensions over this storage: the first `rows` of `columns`, starting at element `offset`.
  fp16::MatrixOperand matrix(std::size_t rows, std::size_t columns, std::size_t offset = 0) const;

 private:
  void check_stored_size(std::size_t bytes) const;

  struct Free {
    void operator()(std::byte* bytes) const;
  };
  Shape shape_;
  std::size_t size_ = 0;
  fp16::Format format_ = fp16::binary32;
  std::unique_ptr<std::byte[], Free> bytes_;
};

/// binary32 for float, binary64 for double.
template <class Real>
inline constexpr fp16::Format format_of = std::is_same_v<Real, double> ? fp16::binary64 : fp16::binary32;

inline bool is_binary64(const Tensor& tensor) {
  return tensor.format() == fp16::binary64;
}

/// Elements [offset, offset + count) as Real, exactly: a view of the storage when it holds Real, else widened
/// into `buffer` (at least `count` long). A float view of a binary64 tensor is a logic error.
const float* read(const Tensor& tensor, std::size_t offset, std::size_t count, std::span<float> buffer);
const double* read(const Tensor& tensor, std::size_t offset, std::size_t count, std::span<double> buffer);

/// Another direction than to nearest-even. Random numbers of the stochastic one are keyed by the stream, the
/// use that is made of it (RoundedOutput) and the element's index; of a shard, by the index that the element has
/// in the tensor of the whole batch.
struct ElementRounding {
  fp16::Rounding direction = fp16::Rounding::nearest_even;
  RandomStream random;
  std::size_t shard = 0;  ///< as Shard::index
};

/// Where an operation writes: each value is rounded once to the tensor's format, to nearest-even unless
/// `rounding` says otherwise (binary32 and binary64 are always rounded to nearest). With `counts`, what that
/// rounding did is added up (binary16 and bfloat16 tensors; of wider ones all is counted as exact).
struct RoundedOutput {
  Tensor* tensor = nullptr;
  fp16::RoundingCounts* counts = nullptr;
  const ElementRounding* rounding = nullptr;
  std::uint64_t use = 0;  ///< below 2^24; tensors of different uses share no random number
};
void store(const RoundedOutput& out, std::size_t offset, std::span<const float> values);
void store(const RoundedOutput& out, std::size_t offset, std::span<const double> values);

/// The elements of `in`, each rounded once to out's format; both have the same number of elements. No bit depends on
/// the threads.
void copy_rounded(const RoundedOutput& out, const Tensor& in, int threads = 1);

/// `tensor` rounded once to nearest in `format`.
Tensor rounded(const Tensor& tensor, fp16::Format format);

/// Index of the first element that is infinite or NaN.
std::optional<std::size_t> first_nonfinite(const Tensor& tensor);

/// So many elements are worth a thread of their own.
constexpr std::size_t smallest_part_of_elements = std::size_t{1} << 15;

/// Calls visit(out, first, last) for contiguous parts of 0 .. count, such as the images of a batch, each of
/// at least `smallest_part` and on a thread of its own. What rounding did to the parts is added up.
void for_each_part(const RoundedOutput& out, std::size_t count, int threads, std::size_t smallest_part,
                   const std::function<void(const RoundedOutput&, std::size_t, std::size_t)>& visit);

/// Calls visit(span of floats) for consecutive pieces of a tensor of at most 32 bits an element.
template <class Visit>
void for_each_piece(const Tensor& tensor, Visit visit) {
  constexpr std::size_t piece = 4096;
  float buffer[piece];
  for (std::size_t offset = 0; offset < tensor.size(); offset += piece) {
    const std::size_t n = std::min(piece, tensor.size() - offset);
    visit(std::span<const float>(read(tensor, offset, n, std::span(buffer)), n));
  }
}

}  // namespace sim
