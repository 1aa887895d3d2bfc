#pragma once
/// Lanes of NEON for random numbers and for packed codes, under the names of lanes_avx2.h, and in an anonymous namespace as
/// there.

#include <arm_neon.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace fp16::detail {
namespace {

/// Four integers of 32 bits, as the halves of products of 64.
struct NeonWords32 {
  using Vector = uint32x4_t;
  static constexpr std::size_t width = 4;
  struct Halves {
    Vector low, high;
  };

  static Vector set(std::uint64_t x) { return vdupq_n_u32(static_cast<std::uint32_t>(x)); }
  static Halves numbers_from(std::uint64_t first) {
    const uint64x2_t numbers = vaddq_u64(vdupq_n_u64(first), uint64x2_t{0, 1});
    return halves_of(numbers, vaddq_u64(numbers, vdupq_n_u64(2)));
  }
  static Halves multiply(Vector a, Vector b) {
    return halves_of(vmull_u32(vget_low_u32(a), vget_low_u32(b)), vmull_high_u32(a, b));
  }
  static Vector exclusive_or(Vector a, Vector b, Vector c) { return a ^ b ^ c; }
  static void store_words(std::uint32_t* p, const Vector (&words)[4]) {
    vst4q_u32(p, uint32x4x4_t{words[0], words[1], words[2], words[3]});
  }

 private:
  static Halves halves_of(uint64x2_t first, uint64x2_t second) {
    const Vector a = vreinterpretq_u32_u64(first), b = vreinterpretq_u32_u64(second);
    return {vuzp1q_u32(a, b), vuzp2q_u32(a, b)};
  }
};

/// Sixteen bytes, as integers of 32 bits where nothing else is said.
struct NeonBytes {
  using Vector = uint8x16_t;
  static constexpr std::size_t width = 16;

  static Vector load(const std::uint8_t* p) { return vld1q_u8(p); }
  static void store(std::uint8_t* p, Vector x) { vst1q_u8(p, x); }
  static Vector set(std::uint32_t x) { return bytes_of(vdupq_n_u32(x)); }
  template <int bits>
  static Vector shift_left(Vector x) {
    return bytes_of(vshlq_n_u32(words_of(x), bits));
  }
  template <int bits>
  static Vector shift_right(Vector x) {
    return bytes_of(vshrq_n_u32(words_of(x), bits));
  }

  template <int bits>
  static Vector join_bytes(Vector x) {
    const uint16x8_t pairs = vreinterpretq_u16_u8(x);
    return vreinterpretq_u8_u16(vsliq_n_u16(pairs, vshrq_n_u16(pairs, 8), bits));
  }
  template <int bits>
  static Vector join_words(Vector x) {
    const uint32x4_t pairs = words_of(x);
    return bytes_of(vsliq_n_u32(pairs, vshrq_n_u32(pairs, 16), bits));
  }
  static Vector narrow(Vector first, Vector second) { return vuzp1q_u8(first, second); }
  /// The next eight bytes as words.
  static Vector load_as_words(const std::uint8_t* p) { return vreinterpretq_u8_u16(vmovl_u8(vld1_u8(p))); }
  /// The next twelve bytes: of each three, the first two and the last two.
  static Vector load_triples(const std::uint8_t* p) {
    std::uint32_t last;
    std::memcpy(&last, p + 8, sizeof(last));
    const Vector bytes = vcombine_u8(vld1_u8(p), vreinterpret_u8_u32(vdup_n_u32(last)));
    return vqtbl1q_u8(bytes, Vector{0, 1, 1, 2, 3, 4, 4, 5, 6, 7, 7, 8, 9, 10, 10, 11});
  }
  /// The lower three bytes of each integer: twelve bytes.
  static void store_triples(std::uint8_t* p, Vector x) {
    const Vector together = vqtbl1q_u8(x, Vector{0, 1, 2, 4, 5, 6, 8, 9, 10, 12, 13, 14, 16, 16, 16, 16});
    vst1_u8(p, vget_low_u8(together));
    const std::uint32_t last = vgetq_lane_u32(words_of(together), 2);
    std::memcpy(p + 8, &last, sizeof(last));
  }

 private:
  static uint32x4_t words_of(Vector x) { return vreinterpretq_u32_u8(x); }
  static Vector bytes_of(uint32x4_t x) { return vreinterpretq_u8_u32(x); }
};

}  // namespace
}  // namespace fp16::detail
