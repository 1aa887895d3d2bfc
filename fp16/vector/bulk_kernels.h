#pragma once
/// Internal to bulk: what an instruction set contributes. The translation units that implement kernels
/// include nothing else that generates code when optimised, so that the linker cannot choose a function
/// compiled for one instruction set for every caller.

#include <cstddef>
#include <cstdint>

#include "../rounding.h"

namespace fp16::detail {

inline constexpr std::size_t deterministic_roundings = 6;  ///< every Rounding before `stochastic`

/// A format, as a conversion from binary32 sees it; codes are whole, signs included.
struct EncodeTarget {
  int width;
  int trailing_bits;
  int emin;                     ///< emin + 127: a binary32 exponent field
  std::uint32_t max_finite;     ///< code of the largest finite number
  std::uint32_t infinite[2];    ///< what +infinity and -infinity become
  std::uint32_t overflowed[2];  ///< what positive and negative numbers beyond the largest become
  std::uint32_t sign_of_zero;   ///< all ones if there is -0, else 0
  std::uint32_t nan;            ///< what every NaN has, and below what it may have
  std::uint32_t nan_sign;
  std::uint32_t nan_payload;  ///< the leading bits of the float's
};

/// out[i] = in[i] rounded to the target; `random` is read by stochastic rounding only. Returns whether there
/// was a NaN: its code is left unspecified.
template <typename Code>
using EncodeKernel = bool (*)(const EncodeTarget& target, const float* in, const std::uint32_t* random,
                              Code* out, std::size_t count);

template <typename Code>
using EncodeKernels = EncodeKernel<Code>[deterministic_roundings + 1];

/// A format, as a conversion to binary32 sees it.
struct DecodeSource {
  int width;
  int trailing_bits;
  std::uint32_t rebias;   ///< what its exponents lack to binary32's, as a binary32 code
  float unit;             ///< the smallest subnormal number
  std::uint32_t special;  ///< from this magnitude on a code is an infinity or a NaN
  std::uint32_t nan;  ///< a code that is one besides: where there is no -0, what would be it; else all ones
};

/// out[i] = the value of in[i]. Returns whether there was an infinity or a NaN, whose values are left unspecified.
template <typename Code>
using DecodeKernel = bool (*)(const DecodeSource& source, const Code* in, float* out, std::size_t count);

/// A format of at most 8 bits whose codes become binary16's when they are shifted, as a conversion by way of binary16
/// sees it.
struct SmallSource {
  std::uint16_t to_magnitude;  ///< a code times this has its magnitude where binary16's is,
  std::uint16_t to_sign;       ///< and times this its sign
  std::uint16_t magnitude_mask;
  std::uint16_t
      special;        ///< from this magnitude of binary16 on, the number it is times `scale` is not the value
  std::uint16_t nan;  ///< nor is it that of this code
  float scale;
};

/// out[i] = the value of in[i]. Returns whether there was a special one, whose values are left unspecified.
using DecodeSmallKernel = bool (*)(const SmallSource& source, const std::uint8_t* in, float* out,
                                   std::size_t count);

/// Packs `count` codes, or unpacks as many; see packed.h.
using PackKernel = void (*)(const std::uint8_t* in, std::uint8_t* out, std::size_t count);

/// out[i] = a[i] op b[i] (op c[i]) on values of formats of at most 11 digits, rounded to odd at 24 bits, which a
/// rounding to such a format in any deterministic direction turns into one rounding of the exact result
/// (24 >= 11 + 2). A sum that is exactly zero has the sign of nearest-even. All three operands must be readable.
using ToOddKernel = void (*)(const float* a, const float* b, const float* c, float* out, std::size_t count);

/// Operations on codes, rounded to nearest-even. NaNs are those of NanPolicy::first_operand, unless
/// it returns true: then the NaNs among the results are left unspecified.
using NearestEvenKernel = bool (*)(const std::uint16_t* a, const std::uint16_t* b, const std::uint16_t* c,
                                   std::uint16_t* out, std::size_t count);

/// What rounding did to results of binary16.
struct RoundedHalves {
  std::uint32_t inexact = 0, subnormal = 0;
  std::uint32_t flushed = 0;  ///< inexact zeros
};

/// A NearestEvenKernel for a multiple of 16 codes, at most block_size, that sets `found`, too, unless it returns true: then a result
/// is infinite or a NaN, and all is left unspecified.
using CountingKernel = bool (*)(const std::uint16_t* a, const std::uint16_t* b, const std::uint16_t* c,
                                std::uint16_t* out, std::size_t count, RoundedHalves& found);

enum class ArrayOperation { add, subtract, multiply, divide, sqrt, fma };
inline constexpr std::size_t operation_count = 6;

struct BulkKernels {
  void (*half_to_float)(const std::uint16_t* in, float* out, std::size_t count);
  /// NaNs are quieted with their sign and payload, infinite results are infinities. Null: by way of
  /// encode_16.
  void (*float_to_half[deterministic_roundings])(const float* in, std::uint16_t* out, std::size_t count);
  /// Away from zero iff floor(fraction * 2^32) > random[i]; NaNs and null as above.
  void (*float_to_half_stochastic)(const float* in, const std::uint32_t* random, std::uint16_t* out,
                                   std::size_t count);
  EncodeKernels<std::uint8_t> encode_8;
  EncodeKernels<std::uint16_t> encode_16;
  EncodeKernels<std::uint32_t> encode_32;
  DecodeSmallKernel decode_8;  ///< null: by a table
  void (*decode_e8m0)(const std::uint8_t* in, float* out, std::size_t count);
  DecodeKernel<std::uint16_t> decode_16;
  DecodeKernel<std::uint32_t> decode_32;
  ToOddKernel to_odd[operation_count];              ///< for formats within binary16's exponents
  ToOddKernel to_odd_wide[operation_count];         ///< for those with binary32's
  NearestEvenKernel nearest_even[operation_count];  ///< of binary16; null: by way of to_odd
  CountingKernel nearest_even_counting[operation_count];
  PackKernel pack_4, pack_6, unpack_4, unpack_6;
};

extern const BulkKernels portable_bulk_kernels;
extern const BulkKernels avx2_bulk_kernels;
extern const BulkKernels avx512_bulk_kernels;
extern const BulkKernels neon_bulk_kernels;
extern const BulkKernels neon_fp16_bulk_kernels;

}  // namespace fp16::detail
