#pragma once
/// Block formats: arrays of small numbers that share a scale every 16 or 32 elements. The OCP Microscaling
/// formats (MX Specification version 1.0, sections 5 and 6) and NVIDIA's NVFP4.
///
/// An array of n values becomes n element codes, one a byte, and a scale code for each block of consecutive
/// values; a shorter last block is encoded as if filled up with zeros. The values are floats, which halves
/// and bfloat16 numbers are exactly. A number is element * scale, in NVFP4 element * scale * tensor scale.
/// Elements are x / scale, or x / (scale * tensor scale) with the exact product, rounded ONCE from the exact
/// quotient; beyond the largest element they saturate.
///
/// A block with a NaN or an infinity gets the scale NaN, which makes every number of the block a NaN, and
/// elements +0 (torchao does so for both; Transformer Engine gives a block with an infinity its largest
/// scale). A block of zeros has the smallest scale and keeps its signs.

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <utility>

#include "arithmetic.h"
#include "codec.h"
#include "config.h"
#include "unpacked.h"

namespace fp16 {

/// A block format as data. A run-time value, or a template argument by reference to a row below.
struct BlockFormat {
  std::string_view name;
  const Format& element;
  const Format& scale;
  int block_size;
  /// Whether scales are relative to one binary32 number for the whole tensor.
  bool has_tensor_scale = false;

  /// How many blocks, the last one perhaps shorter, hold `values` values.
  constexpr std::size_t block_count(std::size_t values) const {
    const auto size = static_cast<std::size_t>(block_size);
    return values / size + (values % size != 0);
  }
  /// Bits a value takes in whole blocks, elements packed without gaps, the tensor scale not counted.
  constexpr double bits_per_value() const {
    return element.width() + static_cast<double>(scale.width()) / block_size;
  }
};

inline constexpr BlockFormat mxfp8_e4m3{
    .name = "mxfp8_e4m3", .element = e4m3, .scale = e8m0, .block_size = 32};
inline constexpr BlockFormat mxfp8_e5m2{
    .name = "mxfp8_e5m2", .element = e5m2, .scale = e8m0, .block_size = 32};
inline constexpr BlockFormat mxfp6_e2m3{
    .name = "mxfp6_e2m3", .element = e2m3, .scale = e8m0, .block_size = 32};
inline constexpr BlockFormat mxfp6_e3m2{
    .name = "mxfp6_e3m2", .element = e3m2, .scale = e8m0, .block_size = 32};
inline constexpr BlockFormat mxfp4{.name = "mxfp4", .element = e2m1, .scale = e8m0, .block_size = 32};
/// NVIDIA, "Pretraining Large Language Models with NVFP4", arXiv:2509.25149, 2025.
inline constexpr BlockFormat nvfp4{
    .name = "nvfp4", .element = e2m1, .scale = e4m3, .block_size = 16, .has_tensor_scale = true};

/// A new block format is one row.
inline constexpr std::array block_formats{&mxfp8_e4m3, &mxfp8_e5m2, &mxfp6_e2m3, &mxfp6_e3m2, &mxfp4, &nvfp4};

/// Calls visit.template operator()<B>() for every row B of the table, in its order.
template <typename Visit>
constexpr void for_each_block_format(Visit&& visit) {
  [&]<std::size_t... row>(std::index_sequence<row...>) {
    (visit.template operator()<*block_formats[row]>(), ...);
  }
  (std::make_index_sequence<block_formats.size()>());
}

namespace detail {

/// nvcc 13 takes a template argument such as B.element in a class, but not in the type of a function.
template <const BlockFormat& B>
struct BlockCodes {
  using Element = Bits<B.element>;
  using Scale = Bits<B.scale>;
  using ElementCode = Code<B.element>;
  using ScaleCode = Code<B.scale>;
  using ElementResult = Result<B.element>;
};

}  // namespace detail

template <const BlockFormat& B>
using ElementBits = typename detail::BlockCodes<B>::Element;
template <const BlockFormat& B>
using ScaleBits = typename detail::BlockCodes<B>::Scale;
template <const BlockFormat& B>
using ElementCode = typename detail::BlockCodes<B>::ElementCode;
template <const BlockFormat& B>
using ScaleCode = typename detail::BlockCodes<B>::ScaleCode;
template <const BlockFormat& B>
using ElementResult = typename detail::BlockCodes<B>::ElementResult;

/// How the power-of-two scale of a block follows from its largest magnitude amax, by the names of torchao's
/// ScaleCalculationMode. max and emax are those of the element format. Below 2^-127 the scale is 2^-127; a
/// float's never exceeds 2^127.
enum class ScaleRule {
  floor,  ///< 2^(floor(log2(amax)) - emax), the specification's (section 6.3); amax may saturate
  ceil,   ///< 2^(ceil(log2(amax)) - emax); nothing saturates
  /// The smallest power of two >= amax / max, 2^ceil(log2(amax / max)); nothing saturates. NVIDIA's (cuBLAS,
  /// "1D Block Quantization"; Transformer Engine), whose rounding of the quotient to binary32 makes no
  /// difference while the quotient is a normal number.
  rceil,
  even,  ///< floor, of amax rounded to the precision of an element, ties away from zero; amax may saturate
};
inline constexpr std::array scale_rules{ScaleRule::floor, ScaleRule::ceil, ScaleRule::rceil, ScaleRule::even};

constexpr std::string_view name_of(ScaleRule rule) {
  constexpr std::array<std::string_view, scale_rules.size()> names{"floor", "ceil", "rceil", "even"};
  return names[static_cast<std::size_t>(rule)];
}

struct BlockOptions {
  /// For scales that are powers of two; others have one rule only.
  ScaleRule scale_rule = ScaleRule::floor;
  /// For formats that have one: positive and finite. `tensor_scale<B>` gives the usual one.
  float tensor_scale = 1;
  /// How elements round; `saturate` is always on.
  Attributes element = {};
  /// If not empty, one for each value, in place of element.random_bits.
  std::span<const std::uint64_t> random_bits = {};
};

/// The largest magnitude; a NaN if any value is one; 0 of nothing.
FP16_HD constexpr float absolute_maximum(std::span<const float> values) {
  std::uint32_t maximum = 0;
  for (const float value : values) {
    const std::uint32_t candidate = magnitude<binary32>(std::bit_cast<std::uint32_t>(value));
    maximum = candidate > maximum ? candidate : maximum;
  }
  return std::bit_cast<float>(maximum);
}

/// amax / (largest element * largest scale), rounded to nearest-even in binary32; 1 for amax = 0. What would
/// round to zero is 2^-149 instead. A NaN or an infinity stays what it is, and every block's scale is then a
/// NaN. `amax` is that of the whole tensor.
template <const BlockFormat& B>
requires(B.has_tensor_scale) FP16_HD constexpr float tensor_scale(float amax) {
  constexpr std::uint32_t largest = encode<binary32>(B.element.max() * B.scale.max()).bits;
  constexpr std::uint32_t smallest = min_subnormal_bits<binary32>;
  const std::uint32_t bits = magnitude<binary32>(std::bit_cast<std::uint32_t>(amax));
  if (is_zero<binary32>(bits)) return 1;
  const std::uint32_t quotient = divide<binary32>(bits, largest).bits;
  return std::bit_cast<float>(is_zero<binary32>(quotient) ? smallest : quotient);
}

namespace detail {

/// a / b, sticky; b is not zero. With two bits clear above its significand a leaves the quotient at least
/// 8 * sizeof(UInt) - 2 - bit_width(b) bits.
template <typename UInt>
FP16_HD constexpr Unpacked<UInt> wide_quotient(const Unpacked<UInt>& a, const Unpacked<UInt>& b) {
  const Unpacked<UInt> dividend = normalized(a);
  const UInt quotient = dividend.significand / b.significand;
  return {.negative = a.negative != b.negative,
          .exponent = dividend.exponent - b.exponent,
          .significand = quotient | (quotient * b.significand != dividend.significand)};
}

/// Whether a scale by `rule` is twice as large as one by `floor`, for an amax of this 24-bit significand.
template <const Format& Element>
FP16_HD constexpr bool rounds_scale_up(std::uint32_t significand, ScaleRule rule) {
  constexpr std::uint32_t one = min_normal_bits<binary32>;
  constexpr int excess_bits = binary32.precision - Element.precision;
  constexpr auto largest =
      static_cast<std::uint32_t>(unpack<Element>(max_finite_bits<Element>).significand << excess_bits);
  constexpr std::uint32_t half_ulp = std::uint32_t{1} << (excess_bits - 1);
  switch (rule) {
    case ScaleRule::floor:
      return false;
    case ScaleRule::ceil:
      return significand > one;
    case ScaleRule::rceil:
      return significand > largest;
    case ScaleRule::even:
      return significand >= 2 * one - half_ulp;
  }
  return false;
}

template <const BlockFormat& B>
FP16_HD constexpr ScaleBits<B> power_of_two_scale(std::uint32_t amax, ScaleRule rule) {
  // The exponents of floats end at 127, so that neither does the scale's exceed it.
  static_assert(B.element.emax() >= 1 && B.scale.emax() >= binary32.emax());
  if (is_zero<binary32>(amax)) return min_subnormal_bits<B.scale>;
  const Unpacked<std::uint32_t> value = unpack<binary32, std::uint32_t>(amax);
  const int width = bit_width(value.significand);
  const bool up = rounds_scale_up<B.element>(value.significand << (binary32.precision - width), rule);
  const int exponent = value.exponent + width - 1 - B.element.emax() + up;
  return static_cast<ScaleBits<B>>(exponent < B.scale.emin() ? 0 : exponent + B.scale.bias());
}

/// amax / (largest element * tensor_scale).
template <const BlockFormat& B>
FP16_HD constexpr ScaleBits<B> relative_scale(std::uint32_t amax, std::uint32_t tensor_scale) {
  using UInt = std::uint64_t;
  const bool usable = is_finite<binary32>(tensor_scale) && !is_negative<binary32>(tensor_scale) &&
                      !is_zero<binary32>(tensor_scale);
  if (!usable) return quiet_nan_bits<B.scale>;
  if (is_zero<binary32>(amax)) return 0;
  const Unpacked<UInt> divisor =
      product(unpack<B.element, UInt>(max_finite_bits<B.element>), unpack<binary32, UInt>(tensor_scale));
  return round_pack<B.scale>(wide_quotient(unpack<binary32, UInt>(amax), divisor), {.saturate = true}).bits;
}

}  // namespace detail

/// The scale of a block whose largest magnitude is `amax`: by options.scale_rule where scales are powers of
/// two; in NVFP4 (amax / 6) / tensor_scale, rounded once from the exact quotient to nearest-even, saturating,
/// which may be zero. A NaN for a NaN or infinite amax, and for a tensor scale that is not positive and
/// finite.
template <const BlockFormat& B>
FP16_HD constexpr ScaleBits<B> block_scale(float amax, const BlockOptions& options = {}) {
  const std::uint32_t bits = magnitude<binary32>(std::bit_cast<std::uint32_t>(amax));
  if (!is_finite<binary32>(bits)) return quiet_nan_bits<B.scale>;
  if constexpr (B.has_tensor_scale) {
    return detail::relative_scale<B>(bits, std::bit_cast<std::uint32_t>(options.tensor_scale));
  } else {
    return detail::power_of_two_scale<B>(bits, options.scale_rule);
  }
}

/// x / (scale * tensor_scale) rounded once and saturating, with the flags of that rounding; `tensor_scale` is
/// 1 in formats that have none. A scale that is not finite gives +0; a scale of zero gives a zero with the
/// sign of x, since whatever the element it decodes to zero, and counts as underflow where x is not zero. Of
/// a finite scale and a NaN or infinite x the element is what `convert` makes of x.
template <const BlockFormat& B>
FP16_HD constexpr ElementResult<B> encode_element(float x, ScaleCode<B> scale, float tensor_scale = 1,
                                                  Attributes attributes = {}) {
  attributes.saturate = true;
  const auto tensor_bits = std::bit_cast<std::uint32_t>(tensor_scale);
  if (is_nan<B.scale>(scale) || !is_finite<binary32>(tensor_bits)) return {.bits = 0, .flags = {}};
  const auto bits = read_operand<binary32>(std::bit_cast<std::uint32_t>(x), attributes);
  if (!is_finite<binary32>(bits)) return convert<B.element, binary32>(bits, attributes);
  if (is_zero<B.scale>(scale) || is_zero<binary32>(tensor_bits)) {
    const bool lost = !is_zero<binary32>(bits);
    return {.bits = with_sign<B.element>(0, is_negative<binary32>(bits)),
            .flags = {.inexact = lost, .underflow = lost}};
  }
  return detail::rounded<B.element>(attributes, [&]<typename UInt>() {
    const Unpacked<UInt> divisor =
        detail::product(unpack<B.scale, UInt>(scale), unpack<binary32, UInt>(tensor_bits));
    return detail::wide_quotient(unpack<binary32, UInt>(bits), divisor);
  });
}

/// element * scale * tensor_scale, exact; `tensor_scale` is 1 in formats that have none. A NaN if any factor
/// is one.
template <const BlockFormat& B>
FP16_HD constexpr double decode_element(ElementCode<B> element, ScaleCode<B> scale, float tensor_scale = 1) {
  // At most 4 + 4 + 24 digits.
  const std::uint64_t block_value =
      multiply<binary64>(convert<binary64, B.element>(element).bits, convert<binary64, B.scale>(scale).bits)
          .bits;
  return std::bit_cast<double>(multiply<binary64>(block_value, encode<binary64>(tensor_scale).bits).bits);
}

/// Encodes an array: scales.size() is B.block_count(values.size()), elements.size() is values.size(). Returns
/// the union of the flags of the elements. How it is known: every format and rule against comparisons of each
/// value with all midpoints times the scale, in integers, over 13,000 boundary-weighted arrays.
template <const BlockFormat& B>
FP16_HD constexpr Flags encode_blocks(std::span<const float> values, std::span<ScaleBits<B>> scales,
                                      std::span<ElementBits<B>> elements, const BlockOptions& options = {}) {
  constexpr auto block_size = static_cast<std::size_t>(B.block_size);
  const float tensor_scale = B.has_tensor_scale ? options.tensor_scale : 1;
  Flags flags;
  for (std::size_t block = 0; block < scales.size(); ++block) {
    const std::size_t first = block * block_size;
    const std::size_t left = values.size() - first;
    const std::size_t end = first + (left < block_size ? left : block_size);
    scales[block] = block_scale<B>(absolute_maximum(values.subspan(first, end - first)), options);
    for (std::size_t i = first; i < end; ++i) {
      Attributes attributes = options.element;
      if (!options.random_bits.empty()) attributes.random_bits = options.random_bits[i];
      const ElementResult<B> element = encode_element<B>(values[i], scales[block], tensor_scale, attributes);
      elements[i] = element.bits;
      flags |= element.flags;
    }
  }
  return flags;
}

/// Decodes an array, exactly: scales.size() is B.block_count(elements.size()), values.size() is
/// elements.size(); `tensor_scale` is 1 in formats that have none.
template <const BlockFormat& B>
FP16_HD constexpr void decode_blocks(std::span<const ElementBits<B>> elements,
                                     std::span<const ScaleBits<B>> scales, std::span<double> values,
                                     float tensor_scale = 1) {
  for (std::size_t i = 0; i < elements.size(); ++i)
    values[i] = decode_element<B>(elements[i], scales[i / B.block_size], tensor_scale);
}

/// A block's value rounded once to float, to nearest-even. Exact in MX, but for values rounded up to 2^128 and
/// beyond, which become infinite; in NVFP4 the product of three factors has up to 30 digits.
template <const BlockFormat& B>
FP16_HD constexpr void decode_blocks(std::span<const ElementBits<B>> elements,
                                     std::span<const ScaleBits<B>> scales, std::span<float> values,
                                     float tensor_scale = 1) {
  for (std::size_t i = 0; i < elements.size(); ++i) {
    const double value = decode_element<B>(elements[i], scales[i / B.block_size], tensor_scale);
    values[i] = std::bit_cast<float>(encode<binary32>(value).bits);
  }
}

}  // namespace fp16
