#pragma once
/// Conversions and operations over arrays. Every vector path gives the bits of codec.h and arithmetic.h,
/// those of NaNs included, whatever the number of threads.
///
/// All arrays of a call must have the same length, else std::invalid_argument is thrown, as it is for a path that this
/// processor lacks. The output may be an input of the same type, and must not overlap one, or random bits, otherwise: that,
/// too, throws before anything is written. Random bits count in stochastic rounding alone. Arrays may be empty and begin at any
/// address that their type allows. Needs halflab::fp16_bulk. The caller's floating-point environment has no say: another
/// rounding direction, FTZ and DAZ are set aside for the call. Afterwards it is as it was, status flags included.

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "arithmetic.h"
#include "codec.h"
#include "philox.h"
#include "vector_path.h"

namespace fp16 {

/// What rounding did to an array. Every element is counted in exactly one of exact, inexact and overflowed;
/// `subnormal` and `flushed` are counted besides. Of an operation, the input is its exact result; a subnormal
/// operand that is read as zero is a zero.
struct RoundingCounts {
  std::uint64_t exact = 0;       ///< not inexact: also NaNs, infinities that stay infinite, invalid operands
  std::uint64_t inexact = 0;     ///< the result differs from the input, and there was no overflow
  std::uint64_t subnormal = 0;   ///< 0 < |result| < 2^emin, exact or not
  std::uint64_t flushed = 0;     ///< the input is not zero and the result is; also inexact
  std::uint64_t overflowed = 0;  ///< raised overflow; binary16 to nearest: 65520 <= |input| < infinity

  RoundingCounts& operator+=(const RoundingCounts& other) {
    exact += other.exact;
    inexact += other.inexact;
    subnormal += other.subnormal;
    flushed += other.flushed;
    overflowed += other.overflowed;
    return *this;
  }
  friend bool operator==(const RoundingCounts&, const RoundingCounts&) = default;
};

/// How an array is worked on. But for the random bits, none of it changes a bit of the results.
struct ArrayOptions {
  VectorPath path = active_vector_path();
  int threads = 1;                   ///< the array is cut into as many contiguous parts
  RoundingCounts* counts = nullptr;  ///< what rounding did is added here
  Flags* flags = nullptr;            ///< the flags that any element raises are set here
  /// For stochastic rounding one of the three, a number for each element, in the place of
  /// Attributes::random_bits. Conversions from at most 32 bits use 32 bits (of 64, the lower ones);
  /// operations and conversions from binary64 use 64 (32 are repeated).
  std::span<const std::uint32_t> random_bits_32 = {};
  std::span<const std::uint64_t> random_bits_64 = {};
  /// 32 bits for each element, drawn as it goes: generator.bits(first + i) for element i.
  std::optional<PhiloxSequence> random = {};
};

/// out[i] = encode<F>(in[i], attributes). Vectorised for formats of up to 19 bits, E8M0 excepted, but for
/// stochastic rounding from random_bits_64.
template <const Format& F>
void encode(std::span<const float> in, std::span<Bits<F>> out, const Attributes& attributes = {},
            const ArrayOptions& options = {});

/// out[i] = the value of in[i], exactly. F must fit into binary32.
template <const Format& F>
void decode(std::span<const Bits<F>> in, std::span<float> out, const ArrayOptions& options = {});

/// out[i] = convert<To, From>(in[i], attributes). Vectorised, by way of floats, which hold From exactly,
/// where `encode` to To is and From has up to 19 bits.
template <const Format& To, const Format& From>
void convert(std::span<const Bits<From>> in, std::span<Bits<To>> out, const Attributes& attributes = {},
             const ArrayOptions& options = {});

/// out[i] = a[i] op b[i] (op c[i]), as the functions of arithmetic.h of the same names. Vectorised for formats of
/// up to 11 digits, under all attributes; else one element at a time.
template <const Format& F>
void add(std::span<const Bits<F>> a, std::span<const Bits<F>> b, std::span<Bits<F>> out,
         const Attributes& attributes = {}, const ArrayOptions& options = {});
template <const Format& F>
void subtract(std::span<const Bits<F>> a, std::span<const Bits<F>> b, std::span<Bits<F>> out,
              const Attributes& attributes = {}, const ArrayOptions& options = {});
template <const Format& F>
void multiply(std::span<const Bits<F>> a, std::span<const Bits<F>> b, std::span<Bits<F>> out,
              const Attributes& attributes = {}, const ArrayOptions& options = {});
template <const Format& F>
void divide(std::span<const Bits<F>> a, std::span<const Bits<F>> b, std::span<Bits<F>> out,
            const Attributes& attributes = {}, const ArrayOptions& options = {});
template <const Format& F>
void sqrt(std::span<const Bits<F>> a, std::span<Bits<F>> out, const Attributes& attributes = {},
          const ArrayOptions& options = {});
template <const Format& F>
void fma(std::span<const Bits<F>> a, std::span<const Bits<F>> b, std::span<const Bits<F>> c,
         std::span<Bits<F>> out, const Attributes& attributes = {}, const ArrayOptions& options = {});

/// out[i] = operation(in[i]..., attributes), for any function that returns a Result<F>; returns the union of
/// the flags: transform<binary16>(remainder<binary16>, out, {}, {}, a, b), all of them spans. One element at
/// a time, on `options.threads` threads; `options.path` has no meaning.
template <const Format& F, typename Operation, typename... In>
Flags transform(const Operation& operation, std::span<Bits<F>> out, const Attributes& attributes,
                const ArrayOptions& options, std::span<In>... in);

/// Applies functions whose result is no code: out[i] = the value of an IntegerResult (to_integer_exact),
/// or whether a Comparison holds (compare_quiet with a predicate bound). Nothing is counted.
template <typename Value, typename Operation, typename... In>
Flags transform_values(const Operation& operation, std::span<Value> out, const Attributes& attributes,
                       const ArrayOptions& options, std::span<In>... in);

/// out[i] = float_to_half_bits(in[i]) with `attributes`
void float_to_half(std::span<const float> in, std::span<std::uint16_t> out, const Attributes& attributes = {},
                   const ArrayOptions& options = {});

/// out[i] = half_bits_to_float(in[i])
void half_to_float(std::span<const std::uint16_t> in, std::span<float> out, const ArrayOptions& options = {});

}  // namespace fp16

#include "vector/bulk_templates.h"
