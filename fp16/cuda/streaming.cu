#include <cuda_fp16.h>

#include "fp16/cuda/runtime.cuh"
#include "fp16/cuda/streaming.cuh"
#include "fp16/cuda/streaming.h"

namespace fp16::cuda {

namespace {

constexpr unsigned threads = 256;

template <typename In, typename Out>
struct Arrays {
  const In* in;
  Out* out;
  std::size_t count;
};

/// out[i] = map(in[i]) by the threads of one block.
template <typename In, typename Out, typename Map>
__device__ void map_in_block(Arrays<In, Out> arrays, Map& map) {
  constexpr unsigned size = sizeof(In) > sizeof(Out) ? Pack<In>::size : Pack<Out>::size;
  using PackIn = Pack<In, size>;
  using PackOut = Pack<Out, size>;
  const bool aligned = is_pack_aligned(arrays.in) && is_pack_aligned(arrays.out);
  const std::size_t packs = aligned ? arrays.count / size : 0;
  auto* out = reinterpret_cast<PackOut*>(arrays.out);
  for_each_pack(reinterpret_cast<const PackIn*>(arrays.in), packs, {threadIdx.x, threads},
                [&](const PackIn& pack, std::size_t index) {
                  PackOut mapped;
#pragma unroll
                  for (unsigned i = 0; i < size; ++i) mapped.values[i] = map(pack.values[i]);
                  out[index] = mapped;
                });
  for (std::size_t i = packs * size + threadIdx.x; i < arrays.count; i += threads)
    arrays.out[i] = map(arrays.in[i]);
}

struct ToHalf {
  __device__ std::uint16_t operator()(float value) const { return __half_as_ushort(__float2half_rn(value)); }
};

struct ToFloat {
  __device__ float operator()(std::uint16_t code) const { return __half2float(__ushort_as_half(code)); }
};

template <typename Out>
struct Unscale {
  float inverse_scale;
  bool found_nonfinite = false;

  __device__ Out operator()(std::uint16_t code) {
    constexpr std::uint16_t exponent_mask = 0x7c00;
    found_nonfinite |= (code & exponent_mask) == exponent_mask;
    const float unscaled = __fmul_rn(ToFloat{}(code), inverse_scale);
    if constexpr (sizeof(Out) == sizeof unscaled) {
      return unscaled;
    } else {
      return ToHalf{}(unscaled);
    }
  }
};

template <typename In, typename Out, typename Cast>
__global__ void __launch_bounds__(threads) cast_array(Arrays<In, Out> whole, Cast cast) {
  const std::size_t first = std::size_t{blockIdx.x} * chunk_size;
  const std::size_t left = whole.count - first;
  map_in_block(Arrays<In, Out>{whole.in + first, whole.out + first, left < chunk_size ? left : chunk_size},
               cast);
}

template <typename Out>
__global__ void __launch_bounds__(threads)
    unscale_chunks(const GradientTensor<Out>* chunks, float inverse_scale, std::uint32_t* found_nonfinite) {
  const GradientTensor<Out> chunk = chunks[blockIdx.x];
  Unscale<Out> unscale{inverse_scale};
  map_in_block(Arrays<std::uint16_t, Out>{chunk.scaled, chunk.unscaled, chunk.count}, unscale);
  if (unscale.found_nonfinite) atomicExch(found_nonfinite, 1u);
}

template <typename In, typename Out, typename Cast>
void launch_cast(Arrays<In, Out> whole, Cast cast) {
  if (whole.count == 0) return;
  const auto blocks = static_cast<unsigned>((whole.count + chunk_size - 1) / chunk_size);
  launch(reinterpret_cast<const void*>(&cast_array<In, Out, Cast>), blocks, threads, {&whole, &cast});
}

template <typename Out>
void launch_unscale(const GradientList<Out>& gradients, float inverse_scale, std::uint32_t* found_nonfinite) {
  if (gradients.size() == 0) return;
  const GradientTensor<Out>* chunks = gradients.chunks();
  launch(reinterpret_cast<const void*>(&unscale_chunks<Out>), static_cast<unsigned>(gradients.size()),
         threads, {&chunks, &inverse_scale, &found_nonfinite});
}

}  // namespace

void float_to_half(const float* in, std::uint16_t* out, std::size_t count) {
  launch_cast(Arrays<float, std::uint16_t>{in, out, count}, ToHalf{});
}

void half_to_float(const std::uint16_t* in, float* out, std::size_t count) {
  launch_cast(Arrays<std::uint16_t, float>{in, out, count}, ToFloat{});
}

void unscale(const GradientList<std::uint16_t>& gradients, float inverse_scale,
             std::uint32_t* found_nonfinite) {
  launch_unscale(gradients, inverse_scale, found_nonfinite);
}

void unscale(const GradientList<float>& gradients, float inverse_scale, std::uint32_t* found_nonfinite) {
  launch_unscale(gradients, inverse_scale, found_nonfinite);
}

}  // namespace fp16::cuda
