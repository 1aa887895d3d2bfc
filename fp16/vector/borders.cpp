#include "fp16/vector/borders.h"

#include <bit>

#include "fp16/config.h"

namespace fp16::detail {
namespace {

/// 1 or 0, as is_less
std::uint32_t is_nan_magnitude(std::uint32_t magnitude) {
  return is_less(infinity_bits<binary32>, magnitude);
}

/// `condition` is 1 or 0.
std::uint32_t choose(std::uint32_t condition, std::uint32_t yes, std::uint32_t no) {
  return no ^ ((0 - condition) & (yes ^ no));
}

/// What a number of the sign of `bits` must reach to cross the border; `random` is 0 where that is not drawn.
std::uint32_t border_of(const RoundingBorder& border, std::uint32_t bits, std::uint32_t random) {
  return choose(bits >> 31, border.from[1], border.from[0]) + (random >> border.shift);
}

/// `nan` is 0 where NaNs stay.
FP16_VECTOR_CLONES bool replace_special(std::uint16_t* codes, std::size_t count, bool saturate,
                                        std::uint16_t nan) {
  const std::uint16_t subtracted = saturate ? 1 : 0;
  const std::uint16_t replaced = nan != 0 ? 0xffff : 0;
  std::uint16_t any = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint16_t magnitude = codes[i] & 0x7fff;
    const auto is_infinite =
        static_cast<std::uint16_t>(magnitude == infinity_bits<binary16> ? subtracted : 0);
    const auto is_nan = static_cast<std::uint16_t>(magnitude > infinity_bits<binary16> ? replaced : 0);
    codes[i] = static_cast<std::uint16_t>(((codes[i] - is_infinite) & ~is_nan) | (nan & is_nan));
    any |= is_infinite;
  }
  return any != 0;
}

}  // namespace

bool apply_borders(const Attributes& attributes, std::uint16_t* codes, std::size_t count) {
  const bool keeps_nans = attributes.nan_policy == NanPolicy::first_operand;
  if (keeps_nans && !attributes.saturate) return false;
  return replace_special(codes, count, attributes.saturate,
                         keeps_nans ? 0 : default_nan<binary16>(attributes.nan_policy));
}

template <typename Code>
FP16_VECTOR_CLONES void write_nans(const EncodeTarget& target, const float* in, Code* codes,
                                   std::size_t count) {
  const EncodeTarget constants = target;
  for (std::size_t i = 0; i < count; ++i) {
    const auto bits = std::bit_cast<std::uint32_t>(in[i]);
    const std::uint32_t payload =
        (bits >> (binary32.trailing_bits() - constants.trailing_bits)) & constants.nan_payload;
    const std::uint32_t nan = constants.nan | payload | ((0 - (bits >> 31)) & constants.nan_sign);
    const std::uint32_t replaced = 0 - is_nan_magnitude(bits & 0x7fffffff);
    codes[i] = static_cast<Code>((codes[i] & ~replaced) | (nan & replaced));
  }
}

FP16_VECTOR_CLONES void choose_nans(const float* a, const float* b, const float* c, float* exact,
                                    std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    std::uint32_t chosen = default_nan_bits<binary32>;
    for (const float* operand : {c, b, a}) {
      const auto bits = std::bit_cast<std::uint32_t>(operand[i]);
      chosen = choose(is_nan_magnitude(bits & 0x7fffffff), bits, chosen);
    }
    const auto bits = std::bit_cast<std::uint32_t>(exact[i]);
    exact[i] = std::bit_cast<float>(choose(is_nan_magnitude(bits & 0x7fffffff), chosen, bits));
  }
}

namespace {

/// `negative` makes of the bits of the operands those of which the uppermost is the sign of zero.
template <typename Negative>
FP16_VECTOR_CLONES void sign_zeros(const float* a, const float* b, const float* c, float* exact,
                                   std::size_t count, Negative negative) {
  for (std::size_t i = 0; i < count; ++i) {
    const auto bits = std::bit_cast<std::uint32_t>(exact[i]);
    const std::uint32_t sign =
        negative(std::bit_cast<std::uint32_t>(a[i]), std::bit_cast<std::uint32_t>(b[i]),
                 std::bit_cast<std::uint32_t>(c[i])) &
        0x80000000;
    exact[i] = std::bit_cast<float>(choose(is_less(bits & 0x7fffffff, 1), sign, bits));
  }
}

}  // namespace

void lower_zero_sums(ArrayOperation operation, const float* a, const float* b, const float* c, float* exact,
                     std::size_t count) {
  using Bits = std::uint32_t;
  if (operation == ArrayOperation::add)
    sign_zeros(a, b, c, exact, count, [](Bits x, Bits y, Bits) { return x | y; });
  if (operation == ArrayOperation::subtract)
    sign_zeros(a, b, c, exact, count, [](Bits x, Bits y, Bits) { return x | ~y; });
  if (operation == ArrayOperation::fma)
    sign_zeros(a, b, c, exact, count, [](Bits x, Bits y, Bits z) { return (x ^ y) | z; });
}

namespace {

/// The border that numbers may cross that are rounded between `below`, on this side of it, and below + distance, a
/// power of two, on the other: right above `below`, at or above the midpoint, or at the end. is_beyond(number) tells.
template <typename IsBeyond>
RoundingBorder border_between(std::uint32_t below, std::uint32_t distance, Rounding rounding,
                              IsBeyond is_beyond) {
  RoundingBorder border{.from = {below + 1, below + 1}, .is_drawn = false, .shift = 0};
  if (rounding == Rounding::stochastic) {
    border.is_drawn = distance > 1;
    if (border.is_drawn) border.shift = 32 - std::countr_zero(distance);
    return border;
  }
  for (const bool negative : {false, true}) {
    for (const std::uint32_t above : {1u, distance / 2, distance / 2 + 1, distance}) {
      border.from[negative] = below + above;
      if (is_beyond(std::bit_cast<float>(with_sign<binary32>(below + above, negative)))) break;
    }
  }
  return border;
}

}  // namespace

RoundingBorder tiny_border(const ArrayFormat& format, const Attributes& attributes) {
  const std::uint32_t normal = float_bits(format.format.min_normal());
  if (attributes.tininess == Tininess::before_rounding)
    return {.from = {normal, normal}, .is_drawn = false, .shift = 0};
  const double largest_below =
      format.format.min_normal() * (1 - format.format.unit_roundoff());  // with as many digits
  const std::uint32_t below = float_bits(largest_below);
  Attributes flushing = attributes;
  flushing.flush_to_zero = true;
  flushing.denormals_are_zero = false;
  return border_between(below, normal - below, attributes.rounding,
                        [&](float value) { return !format.encode_one(value, flushing).flags.underflow; });
}

namespace {

template <bool is_drawn, typename Code>
FP16_VECTOR_CLONES void flush_below(const RoundingBorder& border, std::uint32_t sign_mask, const float* in,
                                    const std::uint32_t* random, Code* codes, std::size_t count) {
  const RoundingBorder constants = border;
  for (std::size_t i = 0; i < count; ++i) {
    const auto bits = std::bit_cast<std::uint32_t>(in[i]);
    const std::uint32_t tiny =
        is_less(bits & 0x7fffffff, border_of(constants, bits, is_drawn ? random[i] : 0));
    codes[i] = static_cast<Code>(codes[i] & ((tiny - 1) | sign_mask));
  }
}

}  // namespace

template <typename Code>
void flush_tiny(const RoundingBorder& border, std::uint32_t sign_mask, const float* in,
                const std::uint32_t* random, Code* codes, std::size_t count) {
  const auto flush = border.is_drawn ? flush_below<true, Code> : flush_below<false, Code>;
  flush(border, sign_mask, in, random, codes, count);
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

FP16_VECTOR_CLONES bool mark_open_draws(const DrawBorders& borders, const float* exact,
                                        const std::uint32_t* random, std::uint8_t* marks, std::size_t count) {
  const DrawBorders constants = borders;
  const std::uint32_t tiny_is_drawn = constants.tiny.is_drawn;
  std::uint32_t any = 0;
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
    const std::uint32_t finite = is_less(magnitude, infinity_bits<binary32>);
    const std::uint32_t open = distance <= unit ? finite : 0;
    const std::uint32_t above = magnitude - constants.tiny.from[0];
    const std::uint32_t drawn = random[i] >> constants.tiny.shift;
    const std::uint32_t open_tiny = above - drawn + 1 <= 1 ? tiny_is_drawn : 0;
    marks[i] = static_cast<std::uint8_t>(open | open_tiny);
    any |= open | open_tiny;
  }
  return any != 0;
}

FP16_VECTOR_CLONES Extremes extremes_of(const float* values, std::size_t count) {
  std::uint32_t largest = 0, smallest = ~0u, united = 0;
  std::uint32_t least = ~0u;  // one below the smallest that is not zero: zeros have none below
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint32_t magnitude = std::bit_cast<std::uint32_t>(values[i]) & 0x7fffffff;
    largest = magnitude > largest ? magnitude : largest;
    smallest = magnitude < smallest ? magnitude : smallest;
    least = magnitude - 1 < least ? magnitude - 1 : least;
    united |= magnitude;
  }
  return {.smallest = smallest,
          .largest = largest,
          .smallest_nonzero = least == ~0u ? least : least + 1,
          .united = united};
}

template void write_nans(const EncodeTarget&, const float*, std::uint8_t*, std::size_t);
template void write_nans(const EncodeTarget&, const float*, std::uint16_t*, std::size_t);
template void write_nans(const EncodeTarget&, const float*, std::uint32_t*, std::size_t);

template void flush_tiny(const RoundingBorder&, std::uint32_t, const float*, const std::uint32_t*,
                         std::uint8_t*, std::size_t);
template void flush_tiny(const RoundingBorder&, std::uint32_t, const float*, const std::uint32_t*,
                         std::uint16_t*, std::size_t);
template void flush_tiny(const RoundingBorder&, std::uint32_t, const float*, const std::uint32_t*,
                         std::uint32_t*, std::size_t);

}  // namespace fp16::detail
