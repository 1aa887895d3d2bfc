#pragma once
/// Lanes of NEON for numbers, as all processors of AArch64 have them, under the names of lanes_avx2.h, and in an anonymous
/// namespace as there.

#include <arm_neon.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "fp16/rounding.h"

namespace fp16::detail {
namespace {

/// While it lives, this thread rounds in one direction. No load from memory is moved before it begins, and no store
/// behind its end.
template <Rounding direction>
class NeonDirection {
 public:
  NeonDirection() { set_control(control() | bits); }
  ~NeonDirection() { set_control(control() & ~directions); }
  NeonDirection(const NeonDirection&) = delete;
  NeonDirection& operator=(const NeonDirection&) = delete;

 private:
  static constexpr std::uint64_t directions = 3 << 22;
  static constexpr std::uint64_t bits = direction == Rounding::toward_positive   ? 1 << 22
                                        : direction == Rounding::toward_negative ? 2 << 22
                                                                                 : directions;
  static std::uint64_t control() {
    std::uint64_t value;
    asm volatile("mrs %0, fpcr" : "=r"(value) : : "memory");
    return value;
  }
  static void set_control(std::uint64_t value) { asm volatile("msr fpcr, %0" : : "r"(value) : "memory"); }
};
template <>
class NeonDirection<Rounding::nearest_even> {};

/// The rows of a tile's operand at one step, from which instructions take what they multiply by.
template <class Vector, std::size_t count>
struct NeonElements {
  static constexpr std::size_t width = sizeof(Vector) / sizeof(Vector{}[0]);
  Vector vectors[(count + width - 1) / width];
  auto operator[](std::size_t i) const { return vectors[i / width][i % width]; }
};

/// `count` elements from p on, and nothing behind them, of which load(p) makes a vector.
template <class Vector, std::size_t count, typename Real, typename Load>
NeonElements<Vector, count> load_neon_elements(const Real* p, Load load) {
  NeonElements<Vector, count> elements;
  constexpr std::size_t width = elements.width, whole = count / width * width;
  for (std::size_t i = 0; i < whole; i += width) elements.vectors[i / width] = load(p + i);
  if constexpr (whole != count) {
    Real rest[width] = {};
    std::memcpy(rest, p + whole, (count - whole) * sizeof(Real));
    elements.vectors[whole / width] = load(rest);
  }
  return elements;
}

/// Four floats, integers of 32 bits under them, and 16 bytes. Comparisons give masks.
struct NeonFloats {
  using Scalar = float;
  using Vector = float32x4_t;
  using Ints = int32x4_t;
  using Bytes = int8x16_t;
  using Mask = uint32x4_t;
  static constexpr std::size_t width = 4, registers = 32;

  static Vector load(const float* p) { return vld1q_f32(p); }
  static void store(float* p, Vector x) { vst1q_f32(p, x); }
  static Vector broadcast(float x) { return vdupq_n_f32(x); }
  template <std::size_t count>
  static NeonElements<Vector, count> load_elements(const float* p) {
    return load_neon_elements<Vector, count>(p, [](const Scalar* from) { return load(from); });
  }
  static Vector floats_of(Ints bits) { return vreinterpretq_f32_s32(bits); }
  static Ints bits_of(Vector x) { return vreinterpretq_s32_f32(x); }
  static Vector fma(Vector a, Vector b, Vector c) { return vfmaq_f32(c, a, b); }

  static Ints set(std::int32_t x) { return vdupq_n_s32(x); }
  static Ints load(const std::uint32_t* p) { return vreinterpretq_s32_u32(vld1q_u32(p)); }
  static Ints add(Ints a, Ints b) { return vaddq_s32(a, b); }
  static Ints subtract(Ints a, Ints b) { return vsubq_s32(a, b); }
  static Ints max(Ints a, Ints b) { return vmaxq_s32(a, b); }
  template <int bits>
  static Ints shift_left(Ints x) {
    return vshlq_n_s32(x, bits);
  }
  template <int bits>
  static Ints shift_right(Ints x) {
    return vreinterpretq_s32_u32(vshrq_n_u32(vreinterpretq_u32_s32(x), bits));
  }

  static Bytes set_bytes(std::int8_t x) { return vdupq_n_s8(x); }
  static Bytes load(const std::int8_t* p) { return vld1q_s8(p); }
  static void store(std::int8_t* p, Bytes x) { vst1q_s8(p, x); }
  static Bytes add_bytes_saturated(Bytes a, Bytes b) { return vqaddq_s8(a, b); }
  static Bytes max_bytes(Bytes a, Bytes b) { return vmaxq_s8(a, b); }
  /// The next four bytes as integers.
  static Ints load_widened(const std::int8_t* p) {
    std::uint32_t bytes;
    std::memcpy(&bytes, p, sizeof(bytes));
    return vmovl_s16(vget_low_s16(vmovl_s8(vreinterpret_s8_u32(vdup_n_u32(bytes)))));
  }

  static Mask greater(Ints a, Ints b) { return vcgtq_s32(a, b); }
  static Mask equal(Ints a, Ints b) { return vceqq_s32(a, b); }
  static Mask unordered(Vector x) { return vmvnq_u32(vceqq_f32(x, x)); }
  static Mask negative(Ints x) { return vcltzq_s32(x); }
  static Mask either(Mask a, Mask b) { return a | b; }
  static bool any(Mask mask) { return vmaxvq_u32(mask) != 0; }
  static std::uint32_t bits_of_mask(Mask mask) { return vaddvq_u32(mask & Mask{1, 2, 4, 8}); }
  static Vector select(Mask mask, Vector yes, Vector no) { return vbslq_f32(mask, yes, no); }
  /// x where a comparison holds, else 0.
  static Ints keep(Mask comparison, Ints x) { return vreinterpretq_s32_u32(comparison) & x; }

  static Ints truncate(Vector x) { return vcvtq_s32_f32(x); }
  /// As that of lanes_avx2.h: without the highest bit to be dropped, conversion to nearest goes down.
  static Vector to_float_toward_zero(Ints x) {
    const uint32x4_t magnitude = vreinterpretq_u32_s32(vabsq_s32(x));
    const Vector below_half = vcvtq_f32_u32(vbicq_u32(magnitude, vshrq_n_u32(magnitude, 24)));
    return vbslq_f32(vdupq_n_u32(0x80000000), floats_of(x), below_half);
  }
  static Vector to_float_odd(Ints x) {
    return narrow_to_odd(vcvtq_f64_s64(vmovl_s32(vget_low_s32(x))), vcvtq_f64_s64(vmovl_high_s32(x)));
  }
  /// Doubles rounded to odd: there is an instruction.
  static Vector narrow_to_odd(float64x2_t low, float64x2_t high) {
    return vcvtx_high_f32_f64(vcvtx_f32_f64(low), high);
  }

  static Vector round_to_half(Vector x) { return vcvt_f32_f16(vcvt_f16_f32(x)); }

  /// While it lives, this thread truncates, and what is named to_odd rounds to odd.
  using ToOdd = NeonDirection<Rounding::toward_zero>;

  // Operations on numbers within binary16's range, as those of lanes_avx2.h.
  static constexpr bool has_full_range_to_odd = false;
  static Vector add_to_odd(Vector a, Vector b) {
    const Vector sum = a + b;
    return odd_unless_equal(sum, sum - a, b);
  }
  static Vector multiply_to_odd(Vector a, Vector b) { return a * b; }
  static Vector divide_to_odd(Vector a, Vector b) {
    const Vector quotient = a / b;
    return odd_unless_zero(quotient, vfmsq_f32(a, quotient, b));
  }
  static Vector sqrt_to_odd(Vector a) {
    const Vector root = vsqrtq_f32(a);
    return odd_unless_zero(root, vfmsq_f32(a, root, root));
  }
  static Vector fma_to_odd(Vector a, Vector b, Vector c) {
    const Vector sum = fma(a, b, c);
    return odd_unless_equal(sum, vfmsq_f32(sum, a, b), c);
  }

  struct FmaEnvironment {};
  /// The sum of an exact product, in binary64 and then rounded to odd. In binary64 it is exact unless its terms are more
  /// than 2^30 apart: the lesser is then too small to move the result, or that is infinite.
  static Vector fma_of_halves(Vector a, Vector b, Vector c) {
    const Vector product = a * b;
    return narrow_to_odd(vcvt_f64_f32(vget_low_f32(product)) + vcvt_f64_f32(vget_low_f32(c)),
                         vcvt_high_f64_f32(product) + vcvt_high_f64_f32(c));
  }

  /// A float that becomes subnormal in binary16, from its magnitude. That is, in units of 2^-24, its significand
  /// shifted right. A shift by a negative number is one in the other direction.
  static Vector round_subnormal_stochastically(Ints magnitude, Ints random) {
    const uint32x4_t significand = vreinterpretq_u32_s32((magnitude & set(0x7fffff)) | set(0x800000));
    const Ints shift = subtract(set(126), shift_right<23>(magnitude));
    const uint32x4_t leading = vshlq_u32(significand, subtract(set(32), shift));
    const Mask up = vcgtq_u32(leading, vreinterpretq_u32_s32(random));
    return vcvtq_f32_u32(vsubq_u32(vshlq_u32(significand, vnegq_s32(shift)), up)) * broadcast(0x1p-24f);
  }

 private:
  /// A truncated number whose last bit is set where a remainder is a number but zero. It is a NaN after an infinity,
  /// which stands as it is.
  static Vector odd_unless_zero(Vector truncated, Vector remainder) {
    const Mask inexact = vcagtq_f32(remainder, broadcast(0));
    return floats_of(bits_of(truncated) | keep(inexact, set(1)));
  }
  static Vector odd_unless_equal(Vector truncated, Vector a, Vector b) {
    return odd_unless_zero(truncated, a - b);
  }
};

/// Two doubles.
struct NeonDoubles {
  using Scalar = double;
  using Vector = float64x2_t;
  static constexpr std::size_t width = 2, registers = 32;

  static Vector load(const double* p) { return vld1q_f64(p); }
  static void store(double* p, Vector x) { vst1q_f64(p, x); }
  static Vector broadcast(double x) { return vdupq_n_f64(x); }
  template <std::size_t count>
  static NeonElements<Vector, count> load_elements(const double* p) {
    return load_neon_elements<Vector, count>(p, [](const Scalar* from) { return load(from); });
  }
  static Vector fma(Vector a, Vector b, Vector c) { return vfmaq_f64(c, a, b); }
  static uint64x2_t unordered(Vector x) { return vceqq_f64(x, x) == 0; }
  static Vector select(uint64x2_t mask, Vector yes, Vector no) { return vbslq_f64(mask, yes, no); }
};

/// Eight integers of 16 bits. Comparisons give masks.
struct NeonWords {
  using Vector = uint16x8_t;

  static Vector set(std::uint16_t x) { return vdupq_n_u16(x); }
  static Vector subtract(Vector a, Vector b) { return vsubq_u16(a, b); }
  static Vector load_widened(const std::uint8_t* p) { return vmovl_u8(vld1_u8(p)); }
  static Vector multiply(Vector a, Vector b) { return vmulq_u16(a, b); }
  static Vector max(Vector a, Vector b) { return vmaxq_u16(a, b); }
  static Vector equal(Vector a, Vector b) { return vceqq_u16(a, b); }
  /// Of signed integers.
  static Vector greater(Vector a, Vector b) {
    return vcgtq_s16(vreinterpretq_s16_u16(a), vreinterpretq_s16_u16(b));
  }
  static bool any(Vector mask) { return vmaxvq_u16(mask) != 0; }
  static std::uint32_t sum(Vector x) { return vaddlvq_u16(x); }
};

/// Finds NaNs that are not as NanPolicy::first_operand wants them: the one for an invalid operation has another sign, and a
/// signalling operand goes before a quiet one. Both raise "invalid" in the status register FPSR. FmaNans finds all NaNs: they
/// are the largest of results, and fma takes the third operand's first.
class NeonNans {
 public:
  NeonNans() : callers_(status()) { set_status(callers_ & ~invalid); }
  ~NeonNans() { set_status(status() | callers_); }
  NeonNans(const NeonNans&) = delete;
  NeonNans& operator=(const NeonNans&) = delete;
  template <class Values>
  void look(const Values&, uint16x8_t) {}
  bool found() const { return (status() & invalid) != 0; }

 private:
  static constexpr std::uint64_t invalid = 1;
  static std::uint64_t status() {
    std::uint64_t value;
    asm volatile("mrs %0, fpsr" : "=r"(value) : : "memory");
    return value;
  }
  static void set_status(std::uint64_t value) { asm volatile("msr fpsr, %0" : : "r"(value) : "memory"); }

  std::uint64_t callers_;
};

/// Eight halves: their codes in one vector, their values in two.
struct NeonHalves {
  using Floats = NeonFloats;
  using Words = NeonWords;
  struct Values {
    float32x4_t low, high;
  };
  using Codes = uint16x8_t;
  static constexpr std::size_t width = 8;
  template <Rounding direction>
  using Direction = NeonDirection<direction>;

  static Values load(const std::uint16_t* p) { return values_of(vld1q_u16(p)); }
  static Values load(const float* p) { return {Floats::load(p), Floats::load(p + 4)}; }
  static Values values_of(Codes x) {
    const float16x8_t halves = vreinterpretq_f16_u16(x);
    return {vcvt_f32_f16(vget_low_f16(halves)), vcvt_high_f32_f16(halves)};
  }
  static void store(float* p, Values x) {
    Floats::store(p, x.low);
    Floats::store(p + 4, x.high);
  }
  static void store(std::uint16_t* p, Codes x) { vst1q_u16(p, x); }
  /// In the direction that is set.
  template <Rounding>
  static Codes round(Values x) {
    return vreinterpretq_u16_f16(vcvt_high_f16_f32(vcvt_f16_f32(x.low), x.high));
  }
  /// While this thread truncates.
  static Codes round_to_odd(Values x) {
    const Codes truncated = round<Rounding::toward_zero>(x);
    const Values kept = values_of(truncated);
    const Codes inexact = narrow(vcagtq_f32(x.low, kept.low), vcagtq_f32(x.high, kept.high));
    return truncated | (inexact & Words::set(1));
  }
  /// operation(vector of floats, vector of random bits) on all.
  template <class Operation>
  static Values map(Values x, const std::uint32_t* random, Operation operation) {
    return {operation(x.low, Floats::load(random)), operation(x.high, Floats::load(random + 4))};
  }
  static Values scale(Values x, float factor) { return {x.low * factor, x.high * factor}; }

  using Nans = NeonNans;
  class FmaNans {
   public:
    void look(const Values& results, Codes) {
      largest_ = vmaxq_f32(vmaxq_f32(largest_, results.low), results.high);
    }
    bool found() const { return Floats::any(Floats::unordered(largest_)); }

   private:
    float32x4_t largest_ = Floats::broadcast(0);
  };
  static Values add(Values a, Values b) { return {add_in_order(a.low, b.low), add_in_order(a.high, b.high)}; }
  static Values subtract(Values a, Values b) { return {a.low - b.low, a.high - b.high}; }
  static Values multiply(Values a, Values b) {
    return {multiply_in_order(a.low, b.low), multiply_in_order(a.high, b.high)};
  }
  static Values divide(Values a, Values b) { return {a.low / b.low, a.high / b.high}; }
  static Values sqrt(Values x) { return {vsqrtq_f32(x.low), vsqrtq_f32(x.high)}; }

  static constexpr bool can_count = false;
  static Values fma(Values a, Values b, Values c) {
    return {Floats::fma_of_halves(a.low, b.low, c.low), Floats::fma_of_halves(a.high, b.high, c.high)};
  }

 private:
  static Codes narrow(uint32x4_t low, uint32x4_t high) {
    return vuzp1q_u16(vreinterpretq_u16_u32(low), vreinterpretq_u16_u32(high));
  }
  // As those of lanes_avx2.h.
  static float32x4_t add_in_order(float32x4_t a, float32x4_t b) {
    float32x4_t sum;
    asm("fadd %0.4s, %1.4s, %2.4s" : "=w"(sum) : "w"(a), "w"(b));
    return sum;
  }
  static float32x4_t multiply_in_order(float32x4_t a, float32x4_t b) {
    float32x4_t product;
    asm("fmul %0.4s, %1.4s, %2.4s" : "=w"(product) : "w"(a), "w"(b));
    return product;
  }
};

}  // namespace
}  // namespace fp16::detail
