#pragma once
/// Casts and the unscaling of gradients, over arrays that lie on the device (device_memory.h). Each reads
/// every element once and writes it once, so that the memory's bandwidth limits it. The calls return before
/// the device is done, and each begins when those before it have ended.
///
/// Results are those of software, NaNs aside: a NaN becomes 0x7FFF or 0x7FFFFFFF. Arrays that are aligned to 16 bytes
/// go several elements at a time, others one by one; with the same results.
///
/// Errors: std::runtime_error as in device_memory.h.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "fp16/cuda/device_memory.h"

namespace fp16::cuda {

/// Rounded once to nearest-even, as `fp16::float_to_half` (bulk.h). 6 bytes an element.
void float_to_half(const float* in, std::uint16_t* out, std::size_t count);

/// Exact, as `fp16::half_to_float`; what makes binary32 master weights of binary16 ones. 6 bytes an element.
void half_to_float(const std::uint16_t* in, float* out, std::size_t count);

/// A tensor of gradients that carry the loss scale, and where they go without it: elsewhere as binary32, or as
/// binary16, which may be the same place.
template <typename Unscaled>
struct GradientTensor {
  const std::uint16_t* scaled;
  Unscaled* unscaled;
  std::size_t count;
};

/// The elements that one block of threads works on at a time.
inline constexpr std::size_t chunk_size = 16384;

/// The tensors cut into chunks of at most `chunk_size` elements, in order; nothing of empty ones.
template <typename Unscaled>
std::vector<GradientTensor<Unscaled>> chunks_of(std::span<const GradientTensor<Unscaled>> tensors) {
  std::vector<GradientTensor<Unscaled>> chunks;
  for (const GradientTensor<Unscaled>& tensor : tensors) {
    for (std::size_t first = 0; first < tensor.count; first += chunk_size) {
      chunks.push_back({.scaled = tensor.scaled + first,
                        .unscaled = tensor.unscaled + first,
                        .count = std::min(chunk_size, tensor.count - first)});
    }
  }
  return chunks;
}

/// The gradients of a network, to be unscaled by one launch, step after step. The chunks' addresses lie on the
/// device, 24 bytes for each.
template <typename Unscaled>
class GradientList {
 public:
  explicit GradientList(std::span<const GradientTensor<Unscaled>> tensors)
      : GradientList(chunks_of(tensors)) {}

  const GradientTensor<Unscaled>* chunks() const { return chunks_.template as<GradientTensor<Unscaled>>(); }
  std::size_t size() const { return chunks_.bytes() / sizeof(GradientTensor<Unscaled>); }

 private:
  explicit GradientList(const std::vector<GradientTensor<Unscaled>>& chunks) : chunks_(chunks) {}

  DeviceMemory chunks_;
};

/// Every gradient times `inverse_scale`, in binary32, and then rounded to binary16 where that is its format: as
/// unscaling does it on the CPU and in PyTorch. With a power of two the product is exact, so that there is one
/// rounding, and only below 2^-14; other products are rounded to binary32 first. `found_nonfinite`, on the
/// device, becomes 1 if a scaled gradient is infinite or NaN, and else keeps its value: nobody waits for it.
/// 4 bytes an element in place, 6 to binary32.
void unscale(const GradientList<std::uint16_t>& gradients, float inverse_scale,
             std::uint32_t* found_nonfinite);
void unscale(const GradientList<float>& gradients, float inverse_scale, std::uint32_t* found_nonfinite);

}  // namespace fp16::cuda
