/// The matrix product by wgmma.mma_async.m64n256k16: a block of two warpgroups makes a tile of 128 x 256,
/// each of them 64 x 256 of it. The operands of 64 of k are a stage; cp.async fills two stages ahead of the
/// one that is multiplied, while the stage before may still be read: wgmma runs on behind the barrier.
///
/// A stage costs 48 KiB of loads for 2^22 floating-point operations, 85 a byte.
///
/// In a stage A is 128 rows of 64 of k and k-major: 128 bytes a row, swizzled. B as it is stored is n-major:
/// four panels of 64 columns, each 64 rows (of k) of 128 bytes, swizzled. An instruction takes 16 of k: 32
/// bytes of the rows of A, and 16 rows of every panel of B.

#include "fp16/cuda/gemm_tile.cuh"
#include "fp16/cuda/wgmma.cuh"

namespace fp16::cuda {

namespace {

constexpr unsigned tile_m = 128, tile_n = 256, tile_k = 64;
constexpr unsigned stages = 4;
constexpr unsigned warpgroups = 2;
constexpr unsigned threads = 128 * warpgroups;
constexpr unsigned step_k = 16;  // of an instruction
constexpr unsigned steps_per_stage = tile_k / step_k;
constexpr unsigned warpgroup_m = tile_m / warpgroups;
constexpr unsigned fragments_n = tile_n / 8;
constexpr unsigned row_codes = 64;  // of the 128 bytes that are swizzled
constexpr unsigned row_chunks = row_codes / chunk_codes;
constexpr unsigned panels = tile_n / row_codes;
constexpr unsigned pattern_bytes = 8 * 128;  // eight rows

static_assert(tile_k == row_codes && warpgroup_m == 64);

/// Every array begins at a multiple of 1024 bytes if the stage does.
struct Stage {
  std::uint16_t a[tile_m * row_codes];
  std::uint16_t b[panels][tile_k * row_codes];

  /// Rows `row` ... `row` + 63 of A in the given 16 of k.
  __device__ std::uint64_t a_descriptor(unsigned row, unsigned step) const {
    return WgmmaOperand{.start = a + row * row_codes + step * step_k,
                        .leading = 16,
                        .stride = pattern_bytes,
                        .swizzle = WgmmaSwizzle::bytes_128}
        .descriptor();
  }
  /// All columns of B in the given 16 of k.
  __device__ std::uint64_t b_descriptor(unsigned step) const {
    return WgmmaOperand{.start = b[0] + step * step_k * row_codes,
                        .leading = sizeof(b[0]),
                        .stride = pattern_bytes,
                        .swizzle = WgmmaSwizzle::bytes_128}
        .descriptor();
  }
};
constexpr unsigned stage_alignment = 1024;
static_assert(sizeof(Stage) % stage_alignment == 0 && tile_m * row_codes * 2 % stage_alignment == 0);
constexpr unsigned shared_bytes = stages * sizeof(Stage) + stage_alignment;

// A build for other targets still links; gemm refuses before such code could run.
#define FP16_READ_WRITE_4(kind, i) kind(d[i]), kind(d[i + 1]), kind(d[i + 2]), kind(d[i + 3])
#define FP16_READ_WRITE_16(kind, i)                                                           \
  FP16_READ_WRITE_4(kind, i), FP16_READ_WRITE_4(kind, i + 4), FP16_READ_WRITE_4(kind, i + 8), \
      FP16_READ_WRITE_4(kind, i + 12)

/// d += a * b; A k-major, B n-major.
__device__ void multiply_add(float (&d)[128], std::uint64_t a, std::uint64_t b) {
#ifdef FP16_HAS_WGMMA
  asm volatile(
      "wgmma.mma_async.sync.aligned.m64n256k16.f32.f16.f16 "
      "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
      "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
      "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
      "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63, "
      "%64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, "
      "%80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95, "
      "%96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111, "
      "%112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127}, "
      "%128, %129, 1, 1, 1, 0, 1;"
      : FP16_READ_WRITE_16("+f", 0), FP16_READ_WRITE_16("+f", 16), FP16_READ_WRITE_16("+f", 32),
        FP16_READ_WRITE_16("+f", 48), FP16_READ_WRITE_16("+f", 64), FP16_READ_WRITE_16("+f", 80),
        FP16_READ_WRITE_16("+f", 96), FP16_READ_WRITE_16("+f", 112)
      : "l"(a), "l"(b)
      : "memory");
#endif
}
__device__ void multiply_add(std::uint32_t (&d)[64], std::uint64_t a, std::uint64_t b) {
#ifdef FP16_HAS_WGMMA
  asm volatile(
      "wgmma.mma_async.sync.aligned.m64n256k16.f16.f16.f16 "
      "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
      "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
      "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
      "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}, "
      "%64, %65, 1, 1, 1, 0, 1;"
      : FP16_READ_WRITE_16("+r", 0), FP16_READ_WRITE_16("+r", 16), FP16_READ_WRITE_16("+r", 32),
        FP16_READ_WRITE_16("+r", 48)
      : "l"(a), "l"(b)
      : "memory");
#endif
}

#undef FP16_READ_WRITE_16
#undef FP16_READ_WRITE_4

template <bool whole_chunks>
__device__ void fill_stage(Stage& stage, const GemmMatrix<const std::uint16_t>& a,
                           const GemmMatrix<const std::uint16_t>& b, const GemmTileOrigin& origin,
                           unsigned k) {
  copy_tile<tile_m, row_chunks, threads, whole_chunks>(stage.a, a, origin.row, k);
#pragma unroll
  for (unsigned panel = 0; panel < panels; ++panel)
    copy_tile<tile_k, row_chunks, threads, whole_chunks>(stage.b[panel], b, k,
                                                         origin.column + panel * row_codes);
}

template <typename Result, bool whole_chunks>
__global__ void __launch_bounds__(threads, 1)
    gemm_wgmma(GemmShape shape, const std::uint16_t* a_codes, const std::uint16_t* b_codes,
               typename Result::Output* outputs) {
  using Fragment = GemmFragment<typename Result::Accumulator>;
  extern __shared__ uint4 dynamic_shared[];
  const auto shared = reinterpret_cast<Stage*>(reinterpret_cast<char*>(dynamic_shared) +
                                               -__cvta_generic_to_shared(dynamic_shared) % stage_alignment);
  const GemmMatrix<const std::uint16_t> a{a_codes, shape.m, shape.k}, b{b_codes, shape.k, shape.n};
  const GemmTileOrigin origin = tile_of_block<tile_m, tile_n>(shape);
  const unsigned warpgroup_row = threadIdx.x / 128 * warpgroup_m;

  const unsigned steps = divide_up(shape.k, step_k);
  const unsigned count = divide_up(steps, steps_per_stage);  // of stages
  const auto fill = [&](unsigned number) {
    if (number < count) fill_stage<whole_chunks>(shared[number % stages], a, b, origin, number * tile_k);
    commit_copies();  // also an empty group, so that a number of groups is one of stages
  };
  // Behind the barrier this stage has arrived for all threads, and the wait for all but one group of wgmma
  // before it says that no warpgroup reads the stage before the last any more: its place may be filled.
  const auto next_stage = [&](unsigned number) -> const Stage& {
    wait_for_copies<stages - 3>();
    fence_shared_for_wgmma();
    __syncthreads();
    return shared[number % stages];
  };

  for (unsigned number = 0; number < stages - 2; ++number) fill(number);
  typename Fragment::Register sums[fragments_n * Fragment::registers] = {};
  hold_registers(sums);
  const unsigned whole_stages = steps / steps_per_stage;
  for (unsigned number = 0; number < whole_stages; ++number) {
    const Stage& stage = next_stage(number);
    wgmma_fence();
#pragma unroll
    for (unsigned step = 0; step < steps_per_stage; ++step)
      multiply_add(sums, stage.a_descriptor(warpgroup_row, step), stage.b_descriptor(step));
    wgmma_commit();
    fill(number + stages - 2);
    wgmma_wait<1>();
  }
  wgmma_wait<0>();
  hold_registers(sums);
  // Not a step more than k needs: one of zeros changes nothing and takes its time.
  if (whole_stages < count) {
    const Stage& stage = next_stage(whole_stages);
    for (unsigned step = 0; step < steps % steps_per_stage; ++step) {
      wgmma_fence();
      multiply_add(sums, stage.a_descriptor(warpgroup_row, step), stage.b_descriptor(step));
      wgmma_commit();
      wgmma_wait<0>();
      hold_registers(sums);
    }
  }

  const GemmMatrix<typename Result::Output> d{outputs, shape.m, shape.n};
  const unsigned row = origin.row + threadIdx.x / 32 * 16;
#pragma unroll
  for (unsigned j = 0; j < fragments_n; ++j)
    store_fragment<Result>(d, row, origin.column + 8 * j, sums + j * Fragment::registers);
}

struct Kernels {
  template <typename Result, bool whole_chunks>
  static const void* kernel() {
    return reinterpret_cast<const void*>(&gemm_wgmma<Result, whole_chunks>);
  }
};

}  // namespace

GemmLaunch gemm_wgmma_launch(const GemmKernel& kernel, const GemmArguments& arguments) {
  return {.kernel = choose_gemm_kernel<Kernels>(kernel, arguments),
          .tile_m = tile_m,
          .tile_n = tile_n,
          .threads = threads,
          .dynamic_shared_bytes = shared_bytes,
          .target = 90};
}

}  // namespace fp16::cuda
