#pragma once
/// Lanes of NEON with FEAT_FP16, whose instructions round to binary16 themselves, under the names of lanes_avx2.h and in an
/// anonymous namespace as there.

#include "fp16/vector/lanes_neon.h"

namespace fp16::detail {
namespace {

/// Eight halves.
struct NeonFp16Halves {
  using Floats = NeonFloats;
  using Words = NeonWords;
  using Values = float16x8_t;
  using Codes = uint16x8_t;
  static constexpr std::size_t width = 8;

  static Values load(const std::uint16_t* p) { return vreinterpretq_f16_u16(vld1q_u16(p)); }
  static void store(std::uint16_t* p, Codes x) { vst1q_u16(p, x); }
  template <Rounding>
  static Codes round(Values x) {
    return vreinterpretq_u16_f16(x);
  }

  using Nans = NeonNans;
  class FmaNans {
   public:
    void look(Values results, Codes) { largest_ = vmaxq_f16(largest_, results); }
    bool found() const { return Words::any(vmvnq_u16(vceqq_f16(largest_, largest_))); }

   private:
    Values largest_ = vdupq_n_f16(0);
  };
  // The compiler may swap the operands of what it knows to be a sum or a product.
  static Values add(Values a, Values b) {
    Values sum;
    asm("fadd %0.8h, %1.8h, %2.8h" : "=w"(sum) : "w"(a), "w"(b));
    return sum;
  }
  static Values multiply(Values a, Values b) {
    Values product;
    asm("fmul %0.8h, %1.8h, %2.8h" : "=w"(product) : "w"(a), "w"(b));
    return product;
  }
  static Values subtract(Values a, Values b) { return vsubq_f16(a, b); }
  static Values divide(Values a, Values b) { return vdivq_f16(a, b); }
  static Values sqrt(Values x) { return vsqrtq_f16(x); }
  static Values fma(Values a, Values b, Values c) { return vfmaq_f16(c, a, b); }
};

/// Eight halves that are stored as floats.
struct NeonFp16Chains {
  using Scalar = float;
  using Vector = float16x8_t;
  static constexpr std::size_t width = 8;

  static Vector load(const float* p) {
    return vcvt_high_f16_f32(vcvt_f16_f32(vld1q_f32(p)), vld1q_f32(p + 4));
  }
  static void store(float* p, Vector x) {
    vst1q_f32(p, vcvt_f32_f16(vget_low_f16(x)));
    vst1q_f32(p + 4, vcvt_high_f32_f16(x));
  }
  static Vector broadcast(float16_t x) { return vdupq_n_f16(x); }
  template <std::size_t count>
  static NeonElements<Vector, count> load_elements(const float* p) {
    return load_neon_elements<Vector, count>(p, [](const Scalar* from) { return load(from); });
  }
  static uint16x8_t unordered(Vector x) { return vmvnq_u16(vceqq_f16(x, x)); }
  static Vector select(uint16x8_t mask, Vector yes, Vector no) { return vbslq_f16(mask, yes, no); }
};

/// Tiles of such chains: of the registers four remain for what their steps are made from.
struct NeonFp16Tile {
  using Lanes = NeonFp16Chains;
  using Vector = Lanes::Vector;
  static constexpr std::size_t rows = 8, vectors = 3;
  struct Environment {};
};

struct NeonFp16FmaChain : NeonFp16Tile {
  static Vector step(Vector a, Vector b, Vector c) { return vfmaq_f16(c, a, b); }
};

struct NeonFp16MulAddChain : NeonFp16Tile {
  static Vector step(Vector a, Vector b, Vector c) { return vaddq_f16(vmulq_f16(a, b), c); }
};

}  // namespace
}  // namespace fp16::detail
