#include "sim/tensor.h"

#include <algorithm>
#include <cassert>
#include <cstdlib>
#include <cstring>
#include <new>
#include <stdexcept>

#include "fp16/codec.h"

namespace sim {
namespace {

constexpr std::size_t alignment = 64;

std::byte* allocate(std::size_t bytes) {
  const std::size_t rounded = (bytes + alignment - 1) / alignment * alignment;
  void* memory = std::aligned_alloc(alignment, std::max(rounded, alignment));
  if (memory == nullptr) throw std::bad_alloc();
  return static_cast<std::byte*>(memory);
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
  std::free(bytes);
}

Tensor::Tensor(Shape shape, fp16::Format format)
    : shape_(std::move(shape)), size_(element_count(shape_)), format_(format) {
  if (format != fp16::binary16 && format != fp16::binary32 && format != fp16::binary64) {
    throw std::invalid_argument("tensor: no storage for format " + std::string(fp16::name_of(format)) +
                                "; binary16, binary32 and binary64 have one");
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
  fp16::half_to_float(tensor.elements<std::uint16_t>().subspan(offset, count), buffer.first(count));
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
  Tensor& tensor = *out.tensor;
  if (tensor.format() == fp16::binary16) {
    const std::span<std::uint16_t> bits = tensor.elements<std::uint16_t>().subspan(offset, values.size());
    fp16::float_to_half(values, bits, {}, {.counts = out.counts});
    return;
  }
  if (tensor.format() == fp16::binary64) {
    std::ranges::copy(values, tensor.elements<double>().begin() + offset);
  } else if (values.data() != tensor.elements<float>().data() + offset) {
    std::ranges::copy(values, tensor.elements<float>().begin() + offset);
  }
  if (out.counts) out.counts->exact += values.size();
}

void store(const RoundedOutput& out, std::size_t offset, std::span<const double> values) {
  Tensor& tensor = *out.tensor;
  if (tensor.format() == fp16::binary64) {
    if (values.data() != tensor.elements<double>().data() + offset) {
      std::ranges::copy(values, tensor.elements<double>().begin() + offset);
    }
  } else if (tensor.format() == fp16::binary32) {
    std::ranges::copy(values, tensor.elements<float>().begin() + offset);
  } else {
    assert(out.counts == nullptr && "losses are counted from floats only");
    std::ranges::transform(values, tensor.elements<std::uint16_t>().begin() + offset,
                           fp16::double_to_half_bits);
  }
  if (out.counts) out.counts->exact += values.size();
}

void copy_rounded(const RoundedOutput& out, const Tensor& in) {
  std::size_t offset = 0;
  if (in.format() != fp16::binary64) {
    for_each_piece(in, [&](std::span<const float> values) {
      store(out, offset, values);
      offset += values.size();
    });
  } else {
    store(out, 0, in.elements<double>());
  }
}

}  // namespace sim
