#pragma once
/// Internal to bulk: loops without branches, one element at a time, that the compiler turns into vector code.
/// One instance per translation unit, compiled for its instruction set.

#include <bit>

#include "fp16/vector/bulk_kernels.h"
#include "fp16/vector/operation_loops.h"

namespace fp16::detail {
namespace {

constexpr std::uint32_t float_infinity = 0x7f800000;
constexpr int float_trailing_bits = 23;

constexpr std::uint32_t bits_of(float value) {
  return std::bit_cast<std::uint32_t>(value);
}
constexpr float float_of(std::uint32_t bits) {
  return std::bit_cast<float>(bits);
}

/// A choice by masks: a branch, or a conditional float operation, would keep the compiler from using vectors.
constexpr std::uint32_t select(bool condition, std::uint32_t yes, std::uint32_t no) {
  const std::uint32_t mask = 0u - condition;
  return (yes & mask) | (no & ~mask);
}

constexpr int at_least(int value, int bound) {
  return value < bound ? bound : value;
}
constexpr int at_most(int value, int bound) {
  return value > bound ? bound : value;
}

/// |x| in the target's code, to nearest-even, with an unbounded exponent range. Adding a power of two whose
/// unit in the last place is the target's smallest subnormal makes the float addition round subnormal results
/// as the target needs it.
template <bool is_binary32s>
constexpr std::uint32_t round_to_nearest_even(const EncodeTarget& target, std::uint32_t magnitude) {
  const int dropped = float_trailing_bits - target.trailing_bits;
  const std::uint32_t min_normal = static_cast<std::uint32_t>(target.emin) << float_trailing_bits;
  const std::uint32_t below_half = (1u << (dropped - 1)) - 1;
  const std::uint32_t rebias = min_normal - (1u << float_trailing_bits);
  const std::uint32_t normal = (magnitude - rebias + below_half + ((magnitude >> dropped) & 1)) >> dropped;
  if constexpr (is_binary32s) return normal;
  const std::uint32_t magic = min_normal + (static_cast<std::uint32_t>(dropped) << float_trailing_bits);
  const std::uint32_t subnormal = bits_of(float_of(magnitude) + float_of(magic)) - magic;
  return select(static_cast<std::int32_t>(magnitude) < static_cast<std::int32_t>(min_normal), subnormal,
                normal);
}

/// A significand, of which `shift` bits are to be dropped, and what is added to the rest to make a code.
struct Shifted {
  std::uint32_t significand;
  int shift;
  std::uint32_t exponent_code;
};

/// A magnitude as the target needs it. Where the target has binary32's exponents, its codes are binary32's, shortened;
/// else the shift differs between elements.
template <bool is_binary32s>
constexpr Shifted shifted(const EncodeTarget& target, std::uint32_t magnitude) {
  const int dropped = float_trailing_bits - target.trailing_bits;
  if constexpr (is_binary32s) return {.significand = magnitude, .shift = dropped, .exponent_code = 0};
  const int field = static_cast<int>(magnitude >> float_trailing_bits);
  const int exponent = at_least(field, 1);
  const int below_normal = at_least(target.emin - exponent, 0);
  const int biased = at_least(exponent - target.emin, 0);
  return {.significand = (magnitude & 0x7fffff) | (field != 0 ? 0x800000u : 0u),
          .shift = dropped + below_normal,
          .exponent_code = static_cast<std::uint32_t>(biased) << target.trailing_bits};
}

/// Rounds in any direction.
template <Rounding rounding, bool is_binary32s>
constexpr std::uint32_t round_by_shift(const EncodeTarget& target, std::uint32_t bits, std::uint32_t random) {
  const bool negative = bits >> 31 != 0;
  const auto [significand, discarded, exponent_code] = shifted<is_binary32s>(target, bits & 0x7fffffff);
  if constexpr (rounding == Rounding::stochastic) {
    const int shift = at_most(discarded, 63);
    const std::uint32_t leading =
        shift < 32 ? significand << ((32 - shift) & 31) : significand >> ((shift - 32) & 31);
    const std::uint32_t kept = shift < 32 ? significand >> (shift & 31) : 0;
    return exponent_code + kept + (leading > random);
  } else {
    // From 25 discarded bits on the fraction is below one half, and zero only for zero.
    const int shift = at_most(discarded, 26);
    const std::uint32_t fraction_mask = (1u << shift) - 1;
    if constexpr (rounding == Rounding::to_odd) {
      return exponent_code + ((significand >> shift) | ((significand & fraction_mask) != 0));
    }
    std::uint32_t addend = 0;
    if constexpr (rounding == Rounding::nearest_even)
      addend = (fraction_mask >> 1) + ((significand >> shift) & 1);
    if constexpr (rounding == Rounding::nearest_away) addend = (fraction_mask >> 1) + 1;
    if constexpr (rounding == Rounding::toward_positive) addend = negative ? 0 : fraction_mask;
    if constexpr (rounding == Rounding::toward_negative) addend = negative ? fraction_mask : 0;
    return exponent_code + ((significand + addend) >> shift);
  }
}

/// Whether numbers of both signs that are too large become what infinities become.
template <Rounding rounding>
inline constexpr bool overflow_is_infinite =
    rounding == Rounding::nearest_even || rounding == Rounding::nearest_away ||
    rounding == Rounding::stochastic;

/// The whole code of one element that is no NaN.
template <Rounding rounding, bool is_binary32s>
constexpr std::uint32_t encode_element(const EncodeTarget& target, std::uint32_t bits, std::uint32_t random) {
  const std::uint32_t magnitude = bits & 0x7fffffff;
  const bool negative = bits >> 31 != 0;
  std::uint32_t code = rounding == Rounding::nearest_even
                           ? round_to_nearest_even<is_binary32s>(target, magnitude)
                           : round_by_shift<rounding, is_binary32s>(target, bits, random);
  const bool overflows = static_cast<std::int32_t>(code) > static_cast<std::int32_t>(target.max_finite);
  const std::uint32_t sign = (bits >> (32 - target.width)) & (1u << (target.width - 1));
  const std::uint32_t sign_of_code = sign & select(code != 0, ~0u, target.sign_of_zero);
  if constexpr (overflow_is_infinite<rounding>) {
    return select(overflows, target.infinite[0], code) | sign_of_code;
  } else {
    const bool infinite = static_cast<std::int32_t>(magnitude) >= static_cast<std::int32_t>(float_infinity);
    const std::uint32_t overflowed = select(negative, target.overflowed[1], target.overflowed[0]);
    code = select(overflows, overflowed, code | sign_of_code);
    return select(infinite, select(negative, target.infinite[1], target.infinite[0]), code);
  }
}

/// Codes are narrowed in a loop of their own: in one the compiler would go over to short integers too early.
template <Rounding rounding, bool is_binary32s, typename Code>
[[gnu::always_inline]] inline bool encode_all(const EncodeTarget& target, const float* in,
                                              const std::uint32_t* random, Code* out, std::size_t count) {
  constexpr std::size_t piece = 512;
  const EncodeTarget constants = target;
  std::uint32_t words[piece];
  int largest = 0;
  for (std::size_t first = 0; first < count; first += piece) {
    const std::size_t last = count - first < piece ? count : first + piece;
    for (std::size_t i = first; i < last; ++i) {
      const std::uint32_t bits = bits_of(in[i]);
      largest = at_least(static_cast<int>(bits & 0x7fffffff), largest);
      const std::uint32_t drawn = rounding == Rounding::stochastic ? random[i] : 0u;
      words[i - first] = encode_element<rounding, is_binary32s>(constants, bits, drawn);
    }
    for (std::size_t i = first; i < last; ++i) out[i] = static_cast<Code>(words[i - first]);
  }
  return largest > static_cast<int>(float_infinity);
}

/// The target as it is if it is bfloat16, with what the compiler can count on then.
constexpr EncodeTarget as_bfloat16(EncodeTarget target) {
  target.width = 16;
  target.trailing_bits = 7;
  target.emin = 1;
  target.max_finite = 0x7f7f;
  target.sign_of_zero = ~0u;
  return target;
}

constexpr bool is_bfloat16(const EncodeTarget& target) {
  const EncodeTarget bfloat16 = as_bfloat16(target);
  return target.width == bfloat16.width && target.trailing_bits == bfloat16.trailing_bits &&
         target.emin == bfloat16.emin && target.max_finite == bfloat16.max_finite &&
         target.sign_of_zero == bfloat16.sign_of_zero;
}

template <Rounding rounding, typename Code>
bool encode(const EncodeTarget& target, const float* in, const std::uint32_t* random, Code* out,
            std::size_t count) {
  constexpr int binary32_emin = 1;
  if (sizeof(Code) == 2 && is_bfloat16(target))
    return encode_all<rounding, true>(as_bfloat16(target), in, random, out, count);
  return target.emin == binary32_emin ? encode_all<rounding, true>(target, in, random, out, count)
                                      : encode_all<rounding, false>(target, in, random, out, count);
}

/// The value of one code that is neither an infinity nor a NaN. All steps are exact.
constexpr std::uint32_t decode_element(const DecodeSource& source, std::uint32_t code) {
  const std::uint32_t magnitude = code & ((1u << (source.width - 1)) - 1);
  const std::uint32_t sign = (code ^ magnitude) << (32 - source.width);
  const std::uint32_t normal = (magnitude << (float_trailing_bits - source.trailing_bits)) + source.rebias;
  const std::uint32_t subnormal =
      bits_of(static_cast<float>(static_cast<std::int32_t>(magnitude)) * source.unit);
  return select(magnitude >> source.trailing_bits == 0, subnormal, normal) | sign;
}

/// A format with binary32's exponents: its codes are binary32's, shortened. NaNs become quiet.
template <typename Code>
void widen(const DecodeSource& source, const Code* in, float* out, std::size_t count) {
  const int shift = 32 - source.width;
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint32_t bits = static_cast<std::uint32_t>(in[i]) << shift;
    const bool is_nan =
        static_cast<std::int32_t>(bits & 0x7fffffff) > static_cast<std::int32_t>(float_infinity);
    out[i] = float_of(bits | select(is_nan, 0x00400000, 0));
  }
}

template <typename Code>
bool decode(const DecodeSource& source, const Code* in, float* out, std::size_t count) {
  if (source.rebias == 0) {
    widen(source, in, out, count);
    return false;
  }
  const DecodeSource constants = source;
  std::uint32_t special = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint32_t code = in[i];
    const std::uint32_t magnitude = code & ((1u << (constants.width - 1)) - 1);
    special |= (magnitude >= constants.special) | (code == constants.nan);
    out[i] = float_of(decode_element(constants, code));
  }
  return special != 0;
}

/// Powers of two from 2^-127, which is subnormal, to 2^127, and the quiet NaN.
inline void decode_e8m0(const std::uint8_t* in, float* out, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint32_t code = in[i];
    const std::uint32_t smallest = select(code == 0, 0x00400000, 0),
                        quiet = select(code == 255, 0x00400000, 0);
    out[i] = float_of(code << float_trailing_bits | smallest | quiet);
  }
}

template <typename Code>
constexpr void add_encoders(EncodeKernels<Code>& kernels) {
  const auto add = [&]<Rounding rounding>() { kernels[static_cast<int>(rounding)] = encode<rounding, Code>; };
  add.template operator()<Rounding::nearest_even>();
  add.template operator()<Rounding::nearest_away>();
  add.template operator()<Rounding::toward_zero>();
  add.template operator()<Rounding::toward_positive>();
  add.template operator()<Rounding::toward_negative>();
  add.template operator()<Rounding::to_odd>();
  add.template operator()<Rounding::stochastic>();
}

/// `kernels` with the loops of this file added.
constexpr BulkKernels with_loops(BulkKernels kernels) {
  add_encoders(kernels.encode_8);
  add_encoders(kernels.encode_16);
  add_encoders(kernels.encode_32);
  kernels.decode_e8m0 = decode_e8m0;
  kernels.decode_16 = decode<std::uint16_t>;
  kernels.decode_32 = decode<std::uint32_t>;
  return with_operations(kernels);
}

}  // namespace
}  // namespace fp16::detail
