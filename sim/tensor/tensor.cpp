#include "sim/tensor/tensor.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cassert>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <new>
#include <stdexcept>
#include <vector>

#include "fp16/bits.h"
#include "fp16/codec.h"
#include "fp16/config.h"
#include "fp16/vector/threads.h"

namespace sim {
namespace {

// A training step frees what the next one asks for again, and a fresh page from the system costs more than
// most operations spend on what lies in it: freed blocks are kept, as much as was ever in use at one time.

constexpr std::size_t alignment = 64;

/// Before each block, one alignment long.
struct Header {
  std::size_t size;  ///< of the whole, header included
  MemoryCharge charge;
};
static_assert(sizeof(Header) <= alignment);

Header& header_of(std::byte* block) {
  return *reinterpret_cast<Header*>(block - alignment);
}

/// Eight sizes to an octave: at most an eighth is wasted, and tensors that differ a little share blocks.
std::size_t block_size(std::size_t bytes) {
  const std::size_t wanted = std::max(bytes + alignment, 8 * alignment);
  const std::size_t granule = std::bit_floor(wanted) / 8;
  return (wanted + granule - 1) / granule * granule;
}

class FreeBlocks {
 public:
  /// Null if there is none.
  void* take(std::size_t size) {
    const std::scoped_lock lock(mutex_);
    in_use_ += size;
    std::vector<void*>& blocks = blocks_[size];
    if (blocks.empty()) return nullptr;
    void* block = blocks.back();
    blocks.pop_back();
    kept_ -= size;
    return block;
  }

  /// The block that take() had none of was not to be had from the system either.
  void take_back(std::size_t size) {
    const std::scoped_lock lock(mutex_);
    in_use_ -= size;
  }

  /// False if enough is kept already.
  bool keep(void* block, std::size_t size) {
    const std::scoped_lock lock(mutex_);
    most_in_use_ = std::max(most_in_use_, in_use_);
    in_use_ -= size;
    if (kept_ + size > most_in_use_) return false;
    blocks_[size].push_back(block);
    kept_ += size;
    return true;
  }

  /// Gives all that is kept back to the system.
  void clear() {
    const std::scoped_lock lock(mutex_);
    for (const auto& [size, blocks] : blocks_) std::ranges::for_each(blocks, std::free);
    blocks_.clear();
    kept_ = 0;
  }

 private:
  std::mutex mutex_;
  std::map<std::size_t, std::vector<void*>> blocks_;
  std::size_t in_use_ = 0, most_in_use_ = 0, kept_ = 0;  ///< bytes
};

/// Never destroyed: tensors may outlive every static object.
FreeBlocks& free_blocks() {
  static FreeBlocks& blocks = *new FreeBlocks;
  return blocks;
}

std::byte* allocate(std::size_t bytes) {
  const std::size_t size = block_size(bytes);
  void* memory = free_blocks().take(size);
  if (memory == nullptr) memory = std::aligned_alloc(alignment, size);
  if (memory == nullptr) {  // what is kept in other sizes may be what is lacking
    free_blocks().clear();
    memory = std::aligned_alloc(alignment, size);
  }
  if (memory == nullptr) {
    free_blocks().take_back(size);
    throw std::bad_alloc();
  }
  new (memory) Header{.size = size, .charge = MemoryCharge(bytes)};
  return static_cast<std::byte*>(memory) + alignment;
}

void release(std::byte* block) {
  Header& header = header_of(block);
  const std::size_t size = header.size;
  header.~Header();
  if (!free_blocks().keep(&header, size)) std::free(&header);
}

FP16_VECTOR_CLONES void widen_bfloat16(std::span<const std::uint16_t> codes, float* out) {
  for (std::size_t i = 0; i < codes.size(); ++i) {
    out[i] = std::bit_cast<float>(static_cast<std::uint32_t>(codes[i]) << 16);
  }
}

template <const fp16::Format& F, class Stored>
FP16_VECTOR_CLONES bool contains_nonfinite(std::span<const Stored> values) {
  fp16::Bits<F> found = 0;
  for (const Stored value : values) {
    const auto magnitude = fp16::magnitude<F>(std::bit_cast<fp16::Bits<F>>(value));
    found |= static_cast<fp16::Bits<F>>(magnitude >= fp16::infinity_bits<F>);
  }
  return found != 0;
}

template <const fp16::Format& F, class Stored>
std::optional<std::size_t> first_nonfinite_in(std::span<const Stored> values) {
  constexpr std::size_t piece = 4096;
  for (std::size_t offset = 0; offset < values.size(); offset += piece) {
    const std::span<const Stored> part = values.subspan(offset, std::min(piece, values.size() - offset));
    if (!contains_nonfinite<F>(part)) continue;
    return offset + static_cast<std::size_t>(std::ranges::find_if(part,
                                                                  [](Stored value) {
                                                                    return contains_nonfinite<F>(
                                                                        std::span<const Stored>(&value, 1));
                                                                  }) -
                                             part.begin());
  }
  return std::nullopt;
}

template <const fp16::Format& F, class Value>
void round_into(const RoundedOutput& out, std::size_t offset, std::span<const Value> values) {
  const std::span<std::uint16_t> codes = out.tensor->elements<std::uint16_t>().subspan(offset, values.size());
  fp16::Attributes attributes;
  fp16::ArrayOptions options{.counts = out.counts};
  if (out.rounding) {
    attributes.rounding = out.rounding->direction;
    const std::uint64_t before = out.rounding->shard * out.tensor->size();
    options.random = out.rounding->random.from((out.use << 40) + before + offset);
  }
  if constexpr (std::is_same_v<Value, float>) {
    fp16::encode<F>(values, codes, attributes, options);
  } else {
    std::vector<std::uint64_t> wide(values.size());
    std::ranges::transform(values, wide.begin(), [](double v) { return std::bit_cast<std::uint64_t>(v); });
    fp16::convert<F, fp16::binary64>(wide, codes, attributes, options);
  }
}

template <class Stored, class Value>
void store_wide(const RoundedOutput& out, std::size_t offset, std::span<const Value> values) {
  Stored* const to = out.tensor->elements<Stored>().data() + offset;
  if (static_cast<const void*>(to) != values.data()) std::ranges::copy(values, to);
  if (out.counts) out.counts->exact += values.size();
}

template <class Value>
void store_values(const RoundedOutput& out, std::size_t offset, std::span<const Value> values) {
  const fp16::Format format = out.tensor->format();
  if (format == fp16::binary16) return round_into<fp16::binary16>(out, offset, values);
  if (format == fp16::bfloat16) return round_into<fp16::bfloat16>(out, offset, values);
  if (format == fp16::binary32) return store_wide<float>(out, offset, values);
  store_wide<double>(out, offset, values);
}

}  // namespace

std::size_t element_count(const Shape& shape) {
  std::size_t count = 1;
  for (const std::size_t extent : shape) count *= extent;
  return count;
}

std::string to_string(const Shape& shape) {
  std::string text;
  for (const std::size_t extent : shape) {
    if (!text.empty()) text += 'x';
    text += std::to_string(extent);
  }
  return text.empty() ? "scalar" : text;
}

void Tensor::Free::operator()(std::byte* bytes) const {
  release(bytes);
}

Tensor::Tensor(Shape shape, fp16::Format format)
    : shape_(std::move(shape)), size_(element_count(shape_)), format_(format) {
  if (format != fp16::binary16 && format != fp16::bfloat16 && format != fp16::binary32 &&
      format != fp16::binary64) {
    throw std::invalid_argument("tensor: no storage for format " + std::string(fp16::name_of(format)) +
                                "; binary16, bfloat16, binary32 and binary64 have one");
  }
  bytes_.reset(allocate(size_bytes()));
}

Tensor Tensor::zeros(Shape shape, fp16::Format format) {
  Tensor tensor(std::move(shape), format);
  std::memset(tensor.bytes_.get(), 0, tensor.size_bytes());
  return tensor;
}

Tensor Tensor::from(Shape shape, std::span<const float> values) {
  Tensor tensor(std::move(shape), fp16::binary32);
  if (values.size() != tensor.size()) {
    throw std::invalid_argument("tensor: " + std::to_string(values.size()) + " values for shape " +
                                to_string(tensor.shape()));
  }
  std::ranges::copy(values, tensor.elements<float>().begin());
  return tensor;
}

Tensor::Tensor(const Tensor& other) : shape_(other.shape_), size_(other.size_), format_(other.format_) {
  if (other.bytes_ == nullptr) return;
  bytes_.reset(allocate(size_bytes()));
  std::memcpy(bytes_.get(), other.bytes_.get(), size_bytes());
}

Tensor& Tensor::operator=(const Tensor& other) {
  if (this != &other) *this = Tensor(other);
  return *this;
}

void Tensor::charge_to(MemoryRole role) {
  if (bytes_ != nullptr) header_of(bytes_.get()).charge.move_to(role);
}

void Tensor::check_stored_size([[maybe_unused]] std::size_t bytes) const {
  assert(static_cast<std::size_t>(format_.size_bytes()) == bytes);
}

std::vector<float> Tensor::to_floats() const {
  if (format_ == fp16::binary64)
    throw std::invalid_argument("tensor: a binary64 tensor does not fit into floats");
  std::vector<float> values;
  values.reserve(size_);
  for_each_piece(
      *this, [&](std::span<const float> piece) { values.insert(values.end(), piece.begin(), piece.end()); });
  return values;
}

double Tensor::element(std::size_t index) const {
  double value;
  return *read(*this, index, 1, std::span(&value, 1));
}

fp16::MatrixOperand Tensor::matrix(std::size_t rows, std::size_t columns, std::size_t offset) const {
  assert(offset + rows * columns <= size_);
  return {.data = bytes_.get() + offset * static_cast<std::size_t>(format_.size_bytes()),
          .storage = format_,
          .rows = rows,
          .columns = columns,
          .row_stride = columns};
}

const float* read(const Tensor& tensor, std::size_t offset, std::size_t count, std::span<float> buffer) {
  if (tensor.format() == fp16::binary32) return tensor.elements<float>().data() + offset;
  const std::span<const std::uint16_t> codes = tensor.elements<std::uint16_t>().subspan(offset, count);
  if (tensor.format() == fp16::bfloat16) {
    widen_bfloat16(codes, buffer.data());
  } else {
    fp16::half_to_float(codes, buffer.first(count));
  }
  return buffer.data();
}

const double* read(const Tensor& tensor, std::size_t offset, std::size_t count, std::span<double> buffer) {
  if (tensor.format() == fp16::binary64) return tensor.elements<double>().data() + offset;
  constexpr std::size_t piece = 1024;
  float narrow[piece];
  for (std::size_t done = 0; done < count; done += piece) {
    const std::size_t n = std::min(piece, count - done);
    std::copy_n(read(tensor, offset + done, n, std::span(narrow)), n, buffer.begin() + done);
  }
  return buffer.data();
}

void store(const RoundedOutput& out, std::size_t offset, std::span<const float> values) {
  store_values(out, offset, values);
}

void store(const RoundedOutput& out, std::size_t offset, std::span<const double> values) {
  store_values(out, offset, values);
}

std::optional<std::size_t> first_nonfinite(const Tensor& tensor) {
  if (tensor.empty()) return std::nullopt;
  if (tensor.format() == fp16::binary16)
    return first_nonfinite_in<fp16::binary16>(tensor.elements<std::uint16_t>());
  if (tensor.format() == fp16::bfloat16)
    return first_nonfinite_in<fp16::bfloat16>(tensor.elements<std::uint16_t>());
  if (tensor.format() == fp16::binary32) return first_nonfinite_in<fp16::binary32>(tensor.elements<float>());
  return first_nonfinite_in<fp16::binary64>(tensor.elements<double>());
}

void for_each_part(const RoundedOutput& out, std::size_t count, int threads, std::size_t smallest_part,
                   const std::function<void(const RoundedOutput&, std::size_t, std::size_t)>& visit) {
  if (threads == 1 || count < 2 * smallest_part) return visit(out, 0, count);
  std::mutex mutex;
  fp16::detail::for_each_part(count, threads, smallest_part, [&](std::size_t first, std::size_t last) {
    fp16::RoundingCounts counts;
    visit({out.tensor, out.counts ? &counts : nullptr, out.rounding, out.use}, first, last);
    const std::scoped_lock lock(mutex);
    if (out.counts) *out.counts += counts;
  });
}

namespace {

/// Elements [first, last) without a copy on the way where they, or their roundings, are stored as numbers.
void copy_part(const RoundedOutput& out, const Tensor& in, std::size_t first, std::size_t last) {
  const std::size_t count = last - first;
  if (is_binary64(in)) return store(out, first, in.elements<double>().subspan(first, count));
  if (in.format() == fp16::binary32) return store(out, first, in.elements<float>().subspan(first, count));
  if (out.tensor->format() == fp16::binary32) {
    const std::span<float> values = out.tensor->elements<float>().subspan(first, count);
    return store(out, first, std::span<const float>(read(in, first, count, values), count));
  }
  std::array<float, 4096> buffer;
  for (; first < last; first += buffer.size()) {
    const std::size_t n = std::min(buffer.size(), last - first);
    store(out, first, std::span<const float>(read(in, first, n, buffer), n));
  }
}

}  // namespace

void copy_rounded(const RoundedOutput& out, const Tensor& in, int threads) {
  for_each_part(out, in.size(), threads, smallest_part_of_elements,
                [&](const RoundedOutput& part, std::size_t first, std::size_t last) {
                  copy_part(part, in, first, last);
                });
}

Tensor rounded(const Tensor& tensor, fp16::Format format) {
  Tensor result(tensor.shape(), format);
  copy_rounded({&result}, tensor);
  return result;
}

}  // namespace sim
