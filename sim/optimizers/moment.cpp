#include "sim/optimizers/moment.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <type_traits>

#include "sim/tensor/tensor_contents.h"

namespace sim {
namespace {

/// Calls visit(first, length) for consecutive blocks of [0, count).
template <class Visit>
void for_each_block(std::size_t count, Visit visit) {
  for (std::size_t first = 0; first < count; first += DynamicMap::block)
    visit(first, std::min(DynamicMap::block, count - first));
}

}  // namespace

Moment::Moment(const MomentStorage& storage, std::size_t size) {
  if (storage.map == nullptr) {
    storage_ = Tensor::zeros({size}, storage.format);
  } else {
    const std::size_t blocks = (size + DynamicMap::block - 1) / DynamicMap::block;
    storage_ = Blocks{.map = storage.map,
                      .codes = std::vector<std::uint8_t>(size, storage.map->code_of_zero()),
                      .maxima = std::vector<float>(blocks),
                      .charge = MemoryCharge(size + blocks * sizeof(float))};
  }
}

template <class Real>
Real* Moment::open(std::size_t offset, std::size_t count, Real* buffer) {
  if (Tensor* tensor = std::get_if<Tensor>(&storage_)) {
    if (tensor->format() == format_of<Real>) return tensor->elements<Real>().data() + offset;
    read(*tensor, offset, count, std::span<Real>(buffer, count));
    return buffer;
  }
  assert(offset % DynamicMap::block == 0);
  const Blocks& blocks = std::get<Blocks>(storage_);
  for_each_block(count, [&](std::size_t first, std::size_t length) {
    const std::span<const std::uint8_t> codes = std::span(blocks.codes).subspan(offset + first, length);
    const float maximum = blocks.maxima[(offset + first) / DynamicMap::block];
    if constexpr (std::is_same_v<Real, float>) {
      blocks.map->dequantise(codes, maximum, std::span(buffer + first, length));
    } else {
      std::array<float, DynamicMap::block> values;
      blocks.map->dequantise(codes, maximum, values);
      std::copy_n(values.begin(), length, buffer + first);
    }
  });
  return buffer;
}

template <class Real>
void Moment::close(std::size_t offset, std::size_t count, const Real* values) {
  if (Tensor* tensor = std::get_if<Tensor>(&storage_))
    return store({tensor}, offset, std::span<const Real>(values, count));
  Blocks& blocks = std::get<Blocks>(storage_);
  for_each_block(count, [&](std::size_t first, std::size_t length) {
    const std::span<std::uint8_t> codes = std::span(blocks.codes).subspan(offset + first, length);
    float& maximum = blocks.maxima[(offset + first) / DynamicMap::block];
    if constexpr (std::is_same_v<Real, float>) {
      maximum = blocks.map->quantise(std::span(values + first, length), codes);
    } else {
      std::array<float, DynamicMap::block> narrowed;
      std::copy_n(values + first, length, narrowed.begin());
      maximum = blocks.map->quantise(std::span(narrowed).first(length), codes);
    }
  });
}

std::size_t Moment::size_bytes() const {
  if (const Tensor* tensor = std::get_if<Tensor>(&storage_)) return tensor->size_bytes();
  const Blocks& blocks = std::get<Blocks>(storage_);
  return blocks.codes.size() + blocks.maxima.size() * sizeof(float);
}

void Moment::visit_bytes(const std::function<void(std::string_view, std::span<std::byte>)>& visit) {
  if (Tensor* tensor = std::get_if<Tensor>(&storage_)) return visit("", bytes_of(*tensor));
  Blocks& blocks = std::get<Blocks>(storage_);
  visit(" codes", std::as_writable_bytes(std::span(blocks.codes)));
  visit(" maxima", std::as_writable_bytes(std::span(blocks.maxima)));
}

template float* Moment::open(std::size_t, std::size_t, float*);
template double* Moment::open(std::size_t, std::size_t, double*);
template void Moment::close(std::size_t, std::size_t, const float*);
template void Moment::close(std::size_t, std::size_t, const double*);

}  // namespace sim
