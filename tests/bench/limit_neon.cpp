#include <arm_neon.h>

#include "tests/bench/peers.h"

namespace bench {
namespace {

struct Floats {
  float32x4_t low, high;
};

Floats load(const Half* p) {
  const float16x8_t halves = vreinterpretq_f16_u16(vld1q_u16(p));
  return {vcvt_f32_f16(vget_low_f16(halves)), vcvt_high_f32_f16(halves)};
}
void store(Half* p, Floats x) {
  vst1q_u16(p, vreinterpretq_u16_f16(vcvt_high_f16_f32(vcvt_f16_f32(x.low), x.high)));
}

void float_to_half(const float* in, Half* out, std::size_t count) {
  for (std::size_t i = 0; i < count; i += 8) store(out + i, {vld1q_f32(in + i), vld1q_f32(in + i + 4)});
}
void half_to_float(const Half* in, float* out, std::size_t count) {
  for (std::size_t i = 0; i < count; i += 8) {
    const Floats x = load(in + i);
    vst1q_f32(out + i, x.low);
    vst1q_f32(out + i + 4, x.high);
  }
}

template <typename Operation>
void map(const Half* a, const Half* b, Half* out, std::size_t count, Operation operation) {
  for (std::size_t i = 0; i < count; i += 8) {
    const Floats x = load(a + i), y = load(b + i);
    store(out + i, {operation(x.low, y.low), operation(x.high, y.high)});
  }
}
void add(const Half* a, const Half* b, const Half*, Half* out, std::size_t count) {
  map(a, b, out, count, [](float32x4_t x, float32x4_t y) { return x + y; });
}
void multiply(const Half* a, const Half* b, const Half*, Half* out, std::size_t count) {
  map(a, b, out, count, [](float32x4_t x, float32x4_t y) { return x * y; });
}
void divide(const Half* a, const Half* b, const Half*, Half* out, std::size_t count) {
  map(a, b, out, count, [](float32x4_t x, float32x4_t y) { return x / y; });
}
void sqrt(const Half* a, const Half*, const Half*, Half* out, std::size_t count) {
  for (std::size_t i = 0; i < count; i += 8) {
    const Floats x = load(a + i);
    store(out + i, {vsqrtq_f32(x.low), vsqrtq_f32(x.high)});
  }
}

/// TwoSum, the sign of its error folded into an even last bit.
float32x4_t sum_to_odd(float32x4_t product, float32x4_t addend) {
  const float32x4_t sum = product + addend;
  const float32x4_t part = sum - product;
  const float32x4_t error = (product - (sum - part)) + (addend - part);
  const int32x4_t bits = vreinterpretq_s32_f32(sum);
  const int32x4_t inexact = vreinterpretq_s32_u32(vmvnq_u32(vceqzq_f32(error)));
  const int32x4_t side = vshrq_n_s32(bits ^ vreinterpretq_s32_f32(error), 31);
  const int32x4_t step = vbicq_s32(vdupq_n_s32(1), bits);
  return vreinterpretq_f32_s32(bits + (((step ^ side) - side) & inexact));
}

void fma(const Half* a, const Half* b, const Half* c, Half* out, std::size_t count) {
  for (std::size_t i = 0; i < count; i += 8) {
    const Floats x = load(a + i), y = load(b + i), z = load(c + i);
    store(out + i, {sum_to_odd(x.low * y.low, z.low), sum_to_odd(x.high * y.high, z.high)});
  }
}

}  // namespace

const HalfLoops neon_limit{"neon", float_to_half, half_to_float, {add, multiply, divide, sqrt, fma}};

#ifdef __ARM_FEATURE_FP16_VECTOR_ARITHMETIC
namespace {

template <typename Operation>
void map_halves(const Half* a, const Half* b, const Half* c, Half* out, std::size_t count,
                Operation operation) {
  const auto load_halves = [](const Half* p) { return vreinterpretq_f16_u16(vld1q_u16(p)); };
  for (std::size_t i = 0; i < count; i += 8) {
    const float16x8_t result = operation(load_halves(a + i), load_halves(b + i), load_halves(c + i));
    vst1q_u16(out + i, vreinterpretq_u16_f16(result));
  }
}

template <auto operation>
void map_two(const Half* a, const Half* b, const Half*, Half* out, std::size_t count) {
  map_halves(a, b, b, out, count, [](float16x8_t x, float16x8_t y, float16x8_t) { return operation(x, y); });
}
void sqrt_halves(const Half* a, const Half*, const Half*, Half* out, std::size_t count) {
  map_halves(a, a, a, out, count, [](float16x8_t x, float16x8_t, float16x8_t) { return vsqrtq_f16(x); });
}
void fma_halves(const Half* a, const Half* b, const Half* c, Half* out, std::size_t count) {
  map_halves(a, b, c, out, count,
             [](float16x8_t x, float16x8_t y, float16x8_t z) { return vfmaq_f16(z, x, y); });
}

}  // namespace

const HalfLoops neon_fp16_limit{
    "neon_fp16",
    float_to_half,
    half_to_float,
    {map_two<vaddq_f16>, map_two<vmulq_f16>, map_two<vdivq_f16>, sqrt_halves, fma_halves}};
#endif

}  // namespace bench
