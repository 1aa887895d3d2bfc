#include "fp16/cuda/mma.cuh"

namespace fp16::cuda {

namespace {

struct M16n8k8Binary32 {
  __device__ void operator()(const MmaOperands<8>& in, MmaAccumulator<float>& sums) const {
    float* c = sums.values;
    asm volatile(
        "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(in.a[0]), "r"(in.a[1]), "r"(in.b[0]));
  }
};

struct M16n8k8Binary16 {
  __device__ void operator()(const MmaOperands<8>& in, MmaAccumulator<std::uint16_t>& sums) const {
    std::uint32_t* c = sums.values;
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f16.f16.f16.f16 {%0, %1}, {%2, %3}, {%4}, {%0, %1};"
                 : "+r"(c[0]), "+r"(c[1])
                 : "r"(in.a[0]), "r"(in.a[1]), "r"(in.b[0]));
  }
};

}  // namespace

void mma_m16n8k8(const MmaTiles<float>& tiles) {
  launch_mma<M16n8k8Binary32, 8>(tiles, 75);
}
void mma_m16n8k8(const MmaTiles<std::uint16_t>& tiles) {
  launch_mma<M16n8k8Binary16, 8>(tiles, 75);
}

}  // namespace fp16::cuda
