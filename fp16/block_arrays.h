#pragma once
/// Block formats over whole arrays, along any axis, at the speed of training. Needs halflab::fp16_bulk.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "block.h"
#include "philox.h"

namespace fp16 {

/// The dimension of a row-major array along which its blocks lie. A shorter block ends every line.
struct BlockAxis {
  std::size_t length;     ///< of a line
  std::size_t inner = 1;  ///< elements from one value of a line to the next: the extents of later dimensions
};

struct BlockArrayOptions {
  ScaleRule scale_rule = ScaleRule::floor;  ///< as in BlockOptions
  float tensor_scale = 1;                   ///< likewise
  /// None of the two: elements round to nearest-even. One for each value: stochastically, away from zero iff
  /// floor(fraction * 2^32) > random_bits[i], or > generator.bits(first + i), drawn as it goes.
  std::span<const std::uint32_t> random_bits = {};
  std::optional<PhiloxSequence> random = {};
  int threads = 1;  ///< the array is cut into as many contiguous parts; no bit depends on it
};

/// Each value becomes element * scale of its block, without the tensor scale: what encode_blocks and
/// decode_blocks with a tensor scale of 1 make of each line. (The 64 random bits of the former are
/// random_bits[i] * 2^32 + 2^32 - 1.) Exact, but for numbers rounded up to 2^128 and beyond, which become
/// infinite. NVFP4's are binary16 numbers, so that a product of two such arrays can be multiplied by both
/// tensor scales when it is finished.
///
/// How it is known: every format, rule and axis, both roundings, against encode_blocks<B> over 20,000
/// boundary-weighted arrays. The bits depend neither on the processor nor on the caller's floating-point
/// environment, which is left as it was.
///
/// Throws std::invalid_argument for a format that is no row of block_formats, when the lines of `axis` do not
/// make up `values`, when there are random bits for another number of values or from both sources, or that overlap
/// the values, and for fewer than one thread.
void round_to_blocks(const BlockFormat& format, std::span<float> values, const BlockAxis& axis,
                     const BlockArrayOptions& options = {});

/// The codes of the same elements, one a byte, in the order of the values; and those of the scales, in the order of
/// an array whose dimension of axis.length is format.block_count(axis.length) instead. Each line becomes what
/// encode_blocks<B> makes of it, by the same random bits. How it is known, and what is thrown: as above, and for
/// scales or elements of another length, or that overlap another array.
void encode_blocks(const BlockFormat& format, std::span<const float> values, const BlockAxis& axis,
                   std::span<std::uint8_t> scales, std::span<std::uint8_t> elements,
                   const BlockArrayOptions& options = {});

/// Each value becomes the number of `format` nearest to value * scale, the product rounded to binary32 first: what a
/// saturating encode<F> to nearest-even and decode<F> make of it, NaNs included. A whole tensor is one block then, whose
/// scale is 1 / scale.
///
/// How it is known: every format and several scales, against encode<F>, over boundary-weighted arrays. The bits depend
/// neither on the processor nor on the caller's floating-point environment, which is left as it was.
///
/// Throws std::invalid_argument for a format of more than 8 bits, or without arithmetic.
void round_scaled(const Format& format, std::span<float> values, float scale);

}  // namespace fp16
