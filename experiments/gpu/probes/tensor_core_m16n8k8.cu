#include "experiments/gpu/probes/mma_m16n8.cuh"
#include "experiments/gpu/probes/tensor_core.cuh"

namespace experiments::probes {

namespace {

struct mma_m16n8k8_binary32 : MmaM16n8<mma_m16n8k8_binary32, 8, float> {
  __device__ static void multiply_add(const MmaOperands<8>& in, MmaAccumulator<float>& sums) {
    float* c = sums.values;
    asm volatile(
        "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(in.a[0]), "r"(in.a[1]), "r"(in.b[0]));
  }
};

struct mma_m16n8k8_binary16 : MmaM16n8<mma_m16n8k8_binary16, 8, std::uint16_t> {
  __device__ static void multiply_add(const MmaOperands<8>& in, MmaAccumulator<std::uint16_t>& sums) {
    std::uint32_t* c = sums.values;
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f16.f16.f16.f16 {%0, %1}, {%2, %3}, {%4}, {%0, %1};"
                 : "+r"(c[0]), "+r"(c[1])
                 : "r"(in.a[0]), "r"(in.a[1]), "r"(in.b[0]));
  }
};

}  // namespace

FP16_TENSOR_CORE_KERNELS(mma_m16n8k8, [](const void* kernel) { cuda::require_compiled_for(kernel, 75); })

}  // namespace experiments::probes
