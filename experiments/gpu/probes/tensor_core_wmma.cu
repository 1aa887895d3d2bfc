#include <cuda_fp16.h>
#include <mma.h>

#include "experiments/gpu/probes/tensor_core.cuh"
#include "fp16/cuda/mma.cuh"

namespace experiments::probes {

namespace {

/// nvcuda::wmma on tiles of 16 x 16, whose addresses are multiples of 32 bytes.
template <typename Value, typename Element>
struct WmmaM16n16k16 {
  static constexpr int rows = 16, columns = 16, depth = 16, threads = 32;
  using Accumulator = Value;

  __device__ static void step(const std::uint16_t* a, const std::uint16_t* b, const Accumulator* c,
                              Accumulator* d) {
    namespace wmma = nvcuda::wmma;
    wmma::fragment<wmma::matrix_a, rows, columns, depth, __half, wmma::row_major> a_fragment;
    wmma::fragment<wmma::matrix_b, rows, columns, depth, __half, wmma::row_major> b_fragment;
    wmma::fragment<wmma::accumulator, rows, columns, depth, Element> sums;
    wmma::load_matrix_sync(a_fragment, reinterpret_cast<const __half*>(a), depth);
    wmma::load_matrix_sync(b_fragment, reinterpret_cast<const __half*>(b), columns);
    wmma::load_matrix_sync(sums, reinterpret_cast<const Element*>(c), columns, wmma::mem_row_major);
    wmma::mma_sync(sums, a_fragment, b_fragment, sums);
    wmma::store_matrix_sync(reinterpret_cast<Element*>(d), sums, columns, wmma::mem_row_major);
  }
};

struct wmma_m16n16k16_binary32 : WmmaM16n16k16<float, float> {};
struct wmma_m16n16k16_binary16 : WmmaM16n16k16<std::uint16_t, __half> {};

}  // namespace

FP16_TENSOR_CORE_KERNELS(wmma_m16n16k16, [](const void* kernel) { cuda::require_compiled_for(kernel, 75); })

}  // namespace experiments::probes
