#include "fp16/vector/borders.h"

#include <bit>

#include "fp16/config.h"

namespace fp16::detail {
namespace {

/// `nan` is 0 where NaNs stay.
FP16_VECTOR_CLONES void replace_special(std::uint16_t* codes, std::size_t count, bool saturate,
                                        std::uint16_t nan) {
  const std::uint16_t subtracted = saturate ? 1 : 0;
  const std::uint16_t replaced = nan != 0 ? 0xffff : 0;
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint16_t magnitude = codes[i] & 0x7fff;
    const auto is_infinite =
        static_cast<std::uint16_t>(magnitude == infinity_bits<binary16> ? subtracted : 0);
    const auto is_nan = static_cast<std::uint16_t>(magnitude > infinity_bits<binary16> ? replaced : 0);
    codes[i] = static_cast<std::uint16_t>(((codes[i] - is_infinite) & ~is_nan) | (nan & is_nan));
  }
}

}  // namespace

void apply_borders(const Attributes& attributes, std::uint16_t* codes, std::size_t count) {
  const bool keeps_nans = attributes.nan_policy == NanPolicy::first_operand;
  if (keeps_nans && !attributes.saturate) return;
  replace_special(codes, count, attributes.saturate,
                  keeps_nans ? 0 : default_nan<binary16>(attributes.nan_policy));
}

TinyBorders tiny_borders(const Format& format, Tininess tininess) {
  const std::uint32_t normal = float_bits(format.min_normal());
  if (tininess == Tininess::before_rounding) return {.flushed = normal - 1, .normal = normal};
  const double largest_below = format.min_normal() * (1 - format.unit_roundoff());  // with as many digits
  return {.flushed = float_bits(largest_below), .normal = normal};
}

template <typename Code>
FP16_VECTOR_CLONES bool flush_tiny(const TinyBorders& borders, std::uint32_t sign_mask, const float* in,
                                   Code* codes, std::size_t count) {
  const TinyBorders constants = borders;
  std::uint32_t open = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint32_t magnitude = std::bit_cast<std::uint32_t>(in[i]) & 0x7fffffff;
    const std::uint32_t above = is_less(constants.flushed, magnitude);
    open |= above & is_less(magnitude, constants.normal);
    codes[i] = static_cast<Code>(codes[i] & ((0 - above) | sign_mask));
  }
  return open != 0;
}

namespace {

/// Numbers below `min_normal`, the bits of a float, lose all but the bits of `sign`.
FP16_VECTOR_CLONES void keep_normal(std::uint32_t min_normal, std::uint32_t sign, const float* in, float* out,
                                    std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    const auto bits = std::bit_cast<std::uint32_t>(in[i]);
    const std::uint32_t kept = is_less(bits & 0x7fffffff, min_normal) - 1;
    out[i] = std::bit_cast<float>(bits & (kept | sign));
  }
}

}  // namespace

void read_subnormals_as_zeros(const Format& format, const float* in, float* out, std::size_t count) {
  keep_normal(float_bits(format.min_normal()), format.has_negative_zero() ? 0x80000000 : 0, in, out, count);
}

FP16_VECTOR_CLONES void mark_open_draws(const DrawBorders& borders, const float* exact,
                                        const std::uint32_t* random, float* marks, std::size_t count) {
  const DrawBorders constants = borders;
  for (std::size_t i = 0; i < count; ++i) {
    const auto bits = std::bit_cast<std::uint32_t>(exact[i]);
    const std::uint32_t magnitude = bits & 0x7fffffff;
    const int field = static_cast<int>(magnitude >> 23);
    const int exponent = field > 1 ? field : 1;
    const std::uint32_t significand = (magnitude & 0x7fffff) | (field != 0 ? 0x800000u : 0u);
    const int below_normal = constants.emin > exponent ? constants.emin - exponent : 0;
    const int discarded = 23 - constants.trailing_bits + below_normal;
    // From 32 discarded bits on a unit is less than that of the random number.
    const int shift = discarded < 32 ? discarded : 32;
    const std::uint32_t unit = 1u << (32 - shift);
    const int further = discarded - shift < 31 ? discarded - shift : 31;
    const std::uint32_t leading = (significand << (32 - shift)) >> further;
    const std::uint32_t distance = leading > random[i] ? leading - random[i] : random[i] - leading;
    const std::uint32_t draws = distance <= unit ? 0x7fc00000 : 0;
    const std::uint32_t tiny =
        is_less(constants.flushed, magnitude) & is_less(magnitude, constants.normal) ? 0x7fc00000 : 0;
    marks[i] = std::bit_cast<float>(bits | draws | tiny);
  }
}

FP16_VECTOR_CLONES bool any_open(const float* values, std::size_t count, bool zeros) {
  std::uint32_t largest = 0, smallest = infinity_bits<binary32>;
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint32_t magnitude = std::bit_cast<std::uint32_t>(values[i]) & 0x7fffffff;
    largest = magnitude > largest ? magnitude : largest;
    smallest = magnitude < smallest ? magnitude : smallest;
  }
  return largest > infinity_bits<binary32> || (zeros && smallest == 0);
}

template bool flush_tiny(const TinyBorders&, std::uint32_t, const float*, std::uint8_t*, std::size_t);
template bool flush_tiny(const TinyBorders&, std::uint32_t, const float*, std::uint16_t*, std::size_t);
template bool flush_tiny(const TinyBorders&, std::uint32_t, const float*, std::uint32_t*, std::size_t);

}  // namespace fp16::detail
