#include "experiments/gpu/probes/mma_m16n8.cuh"
#include "experiments/gpu/probes/tensor_core.cuh"

namespace experiments::probes {

namespace {

// A build for older targets still links; require_compiled_for refuses before such code could run.
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
#define FP16_HAS_M16N8K16
#endif

struct mma_m16n8k16_binary32 : MmaM16n8<mma_m16n8k16_binary32, 16, float> {
  __device__ static void multiply_add(const MmaOperands<16>& in, MmaAccumulator<float>& sums) {
#ifdef FP16_HAS_M16N8K16
    float* c = sums.values;
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
        "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(in.a[0]), "r"(in.a[1]), "r"(in.a[2]), "r"(in.a[3]), "r"(in.b[0]), "r"(in.b[1]));
#endif
  }
};

struct mma_m16n8k16_binary16 : MmaM16n8<mma_m16n8k16_binary16, 16, std::uint16_t> {
  __device__ static void multiply_add(const MmaOperands<16>& in, MmaAccumulator<std::uint16_t>& sums) {
#ifdef FP16_HAS_M16N8K16
    std::uint32_t* c = sums.values;
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16 {%0, %1}, {%2, %3, %4, %5}, {%6, %7}, {%0, %1};"
        : "+r"(c[0]), "+r"(c[1])
        : "r"(in.a[0]), "r"(in.a[1]), "r"(in.a[2]), "r"(in.a[3]), "r"(in.b[0]), "r"(in.b[1]));
#endif
  }
};

}  // namespace

FP16_TENSOR_CORE_KERNELS(mma_m16n8k16, [](const void* kernel) { cuda::require_compiled_for(kernel, 80); })

}  // namespace experiments::probes
