#include "fp16/vector/gemm_lanes.h"
#include "fp16/vector/lanes_neon.h"

namespace fp16::detail {
namespace {

/// Four floats, held as doubles.
struct NeonFloatsAsDoubles {
  using Doubles = NeonDoubles;
  using Scalar = float;
  struct Vector {
    float64x2_t low, high;
  };
  struct Mask {
    uint64x2_t low, high;
  };
  static constexpr std::size_t width = 4;

  static Vector doubles_of(float32x4_t x) { return {vcvt_f64_f32(vget_low_f32(x)), vcvt_high_f64_f32(x)}; }
  static Vector load(const float* p) { return doubles_of(vld1q_f32(p)); }
  static void store(float* p, Vector x) { vst1q_f32(p, vcvt_high_f32_f64(vcvt_f32_f64(x.low), x.high)); }
  static Vector broadcast(double x) { return {Doubles::broadcast(x), Doubles::broadcast(x)}; }
  template <std::size_t count>
  static NeonElements<float64x2_t, count> load_elements(const float* p) {
    return load_neon_elements<float64x2_t, count>(
        p, [](const float* from) { return vcvt_f64_f32(vld1_f32(from)); });
  }
  static Mask unordered(Vector x) { return {Doubles::unordered(x.low), Doubles::unordered(x.high)}; }
  static Vector select(Mask mask, Vector yes, Vector no) {
    return {Doubles::select(mask.low, yes.low, no.low), Doubles::select(mask.high, yes.high, no.high)};
  }
};

/// As NeonFloats::fma_of_halves, but that what it is made of is doubles already.
struct NeonFp16FmaChain {
  using Lanes = NeonFloatsAsDoubles;
  using Vector = Lanes::Vector;
  static constexpr std::size_t rows = 4, vectors = 2;
  struct Environment {};
  static Vector step(Vector a, Vector b, Vector c) {
    const float32x4_t sum =
        NeonFloats::narrow_to_odd(vfmaq_f64(c.low, a.low, b.low), vfmaq_f64(c.high, a.high, b.high));
    return Lanes::doubles_of(NeonFloats::round_to_half(sum));
  }
};

}  // namespace

constinit const TileKernels neon_tile_kernels = tile_kernels<NeonFloats, NeonDoubles, NeonFp16FmaChain>();

}  // namespace fp16::detail
