#include "fp16/vector/outcomes.h"

#include <algorithm>
#include <array>

#include "fp16/config.h"

namespace fp16::detail {
namespace {

constexpr std::uint32_t none = ~0u;

/// Where overflow begins: right above the largest number, at or above the midpoint of it and what would be its
/// successor, or at that.
void set_overflow(OutcomeBorders& borders, const ArrayFormat& format, const Attributes& attributes) {
  const std::uint32_t max = float_bits(format.format.max());
  const std::uint32_t half_ulp = 1u << (binary32.trailing_bits() - format.format.trailing_bits() - 1);
  borders.open_from = none;
  if (attributes.rounding == Rounding::stochastic) {
    borders.overflow[0] = borders.overflow[1] = max + 2 * half_ulp;
    borders.open_from = max + 1;
    return;
  }
  for (const bool negative : {false, true}) {
    for (const std::uint32_t above : {1u, half_ulp, half_ulp + 1, 2 * half_ulp}) {
      borders.overflow[negative] = max + above;
      const float value = std::bit_cast<float>(with_sign<binary32>(max + above, negative));
      if (format.encode_one(value, attributes).flags.overflow) break;
    }
  }
}

OutcomeBorders outcome_borders(const ArrayFormat& format, const Attributes& attributes) {
  const Format& f = format.format;
  const bool holds_infinity = f.has_infinity() && !attributes.saturate;
  const bool has_binary32s_spacing = f.emin() == binary32.emin();
  OutcomeBorders borders{
      .min_normal = float_bits(f.min_normal()),
      .dropped_bits = (1u << (binary32.trailing_bits() - f.trailing_bits())) - 1,
      .one_spacing_below = has_binary32s_spacing ? 0 : float_bits(f.min_normal()),
      .spacing = has_binary32s_spacing ? 0 : static_cast<float>(0x1p23 * f.min_subnormal()),
      .tiny = tiny_border(format, attributes),
      .flushes_tiny = attributes.flush_to_zero,
      .overflow = {},
      .not_a_loss = infinity_bits<binary32> + !holds_infinity,
      .open_from = {},
      .large_from = {},
  };
  set_overflow(borders, format, attributes);
  borders.large_from = std::min({borders.overflow[0], borders.overflow[1], borders.open_from});
  return borders;
}

/// 1 or 0, for numbers below 2^31
[[gnu::always_inline]] inline std::uint32_t is_nonzero(std::uint32_t a) {
  return (a + 0x7fffffff) >> 31;
}

/// `may_be_small`: there may be numbers below min_normal, `may_be_large`: from large_from on. What is tiny is found
/// where `finds_tiny`.
template <bool may_be_small, bool may_be_large, bool finds_tiny>
FP16_VECTOR_CLONES Losses count_losses(const OutcomeBorders& borders, const float* exact, std::size_t count) {
  const OutcomeBorders b = borders;
  const std::uint32_t tiny_difference = b.tiny.from[0] ^ b.tiny.from[1];
  const std::uint32_t overflow_difference = b.overflow[0] ^ b.overflow[1];
  const std::uint32_t flushes_tiny = b.flushes_tiny;
  std::uint32_t changed = 0, overflowed = 0, underflowed = 0, nonzero = 0, nans = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const auto bits = std::bit_cast<std::uint32_t>(exact[i]);
    const std::uint32_t magnitude = bits & 0x7fffffff, negative = 0 - (bits >> 31);
    std::uint32_t lost = magnitude & b.dropped_bits;
    if constexpr (may_be_small) {
      const float rounded = (std::bit_cast<float>(magnitude) + b.spacing) - b.spacing;
      const std::uint32_t below = 0 - is_less(magnitude, b.one_spacing_below);
      lost ^= below & (lost ^ std::bit_cast<std::uint32_t>(rounded) ^ magnitude);
    }
    std::uint32_t differs = is_nonzero(lost);
    if constexpr (may_be_large) {
      const std::uint32_t may_lose = is_less(magnitude, b.not_a_loss);
      const std::uint32_t over =
          may_lose & ~is_less(magnitude, b.overflow[0] ^ (negative & overflow_difference));
      differs = (differs & may_lose) | over;
      overflowed += over;
      nans += is_less(infinity_bits<binary32>, magnitude);
    }
    if constexpr (may_be_small) {
      const std::uint32_t is_not_zero = is_nonzero(magnitude);
      nonzero += is_not_zero;
      if constexpr (finds_tiny) {
        const std::uint32_t tiny =
            is_not_zero & is_less(magnitude, b.tiny.from[0] ^ (negative & tiny_difference));
        const std::uint32_t under = tiny & (differs | flushes_tiny);
        differs |= under;
        underflowed += under;
      }
    }
    changed += differs;
  }
  return {.changed = changed,
          .overflowed = overflowed,
          .underflowed = underflowed,
          .zeros = static_cast<std::uint32_t>(count) - nonzero,
          .nans = nans};
}

}  // namespace

OutcomeFinder::OutcomeFinder(const ArrayFormat& format, const Attributes& attributes,
                             const ArrayOptions& options)
    : format_(format.format), counts_(options.counts != nullptr), flags_(options.flags != nullptr) {
  if (is_needed()) borders_ = outcome_borders(format, attributes);
}

void OutcomeFinder::hold_largest_open() {
  borders_.open_from = std::min(borders_.open_from, max_finite_bits<binary32>);
  borders_.large_from = std::min(borders_.large_from, borders_.open_from);
}

bool OutcomeFinder::is_open(const Extremes& extremes, const Flags& known) const {
  if (!flags_) return false;
  const bool may_be_large = extremes.largest >= borders_.large_from && !(known.inexact && known.overflow);
  const bool may_be_small =
      extremes.smallest_nonzero < borders_.min_normal && !(known.inexact && known.underflow);
  return may_be_large || may_be_small || (!known.inexact && (extremes.united & borders_.dropped_bits) != 0);
}

Losses OutcomeFinder::losses_of(bool may_be_small, bool may_be_large, const float* exact,
                                std::size_t count) const {
  if (!may_be_small) {
    return may_be_large ? count_losses<false, true, false>(borders_, exact, count)
                        : count_losses<false, false, false>(borders_, exact, count);
  }
  if (flags_ || borders_.flushes_tiny) {
    return may_be_large ? count_losses<true, true, true>(borders_, exact, count)
                        : count_losses<true, false, true>(borders_, exact, count);
  }
  return may_be_large ? count_losses<true, true, false>(borders_, exact, count)
                      : count_losses<true, false, false>(borders_, exact, count);
}

template <typename Code>
FP16_VECTOR_CLONES SmallCodes count_small(const Format& format, const Code* codes, std::size_t count) {
  // In lanes as wide as codes: block_size / lanes of them fit into each.
  constexpr std::size_t lanes = 64 / sizeof(Code);
  static_assert(sizeof(Code) > 1 || block_size / lanes < 256);
  const auto sign = static_cast<Code>(Code{1} << (format.width() - 1));
  const auto below_sign = static_cast<Code>(sign - 1);
  const auto zero_mask = static_cast<Code>(format.has_negative_zero() ? below_sign : below_sign | sign);
  const auto largest_subnormal = static_cast<Code>((Code{1} << format.trailing_bits()) - 1);
  std::array<Code, lanes> subnormal{}, zero{};
  const auto look = [&](Code code, std::size_t lane) __attribute__((always_inline)) {
    const auto below = static_cast<Code>((code & below_sign) - 1);
    subnormal[lane] = static_cast<Code>(subnormal[lane] + (below < largest_subnormal));
    zero[lane] = static_cast<Code>(zero[lane] + ((code & zero_mask) == 0));
  };
  const std::size_t whole = count / lanes * lanes;
  for (std::size_t i = 0; i < whole; i += lanes) {
    for (std::size_t lane = 0; lane < lanes; ++lane) look(codes[i + lane], lane);
  }
  SmallCodes sums{};
  for (std::size_t lane = 0; lane < lanes; ++lane) {
    if (whole + lane < count) look(codes[whole + lane], lane);
    sums.subnormal += subnormal[lane];
    sums.zero += zero[lane];
  }
  return sums;
}

FP16_VECTOR_CLONES bool has_invalid_result(const float* a, const float* b, const float* c, const float* exact,
                                           std::size_t count) {
  std::uint32_t any = 0;
  for (std::size_t i = 0; i < count; ++i) {
    std::uint32_t operand_is_nan = 0;
    for (const float* operand : {a, b, c}) {
      const std::uint32_t magnitude = std::bit_cast<std::uint32_t>(operand[i]) & 0x7fffffff;
      operand_is_nan |= is_less(infinity_bits<binary32>, magnitude);
    }
    const std::uint32_t magnitude = std::bit_cast<std::uint32_t>(exact[i]) & 0x7fffffff;
    any |= is_less(infinity_bits<binary32>, magnitude) & ~operand_is_nan;
  }
  return any != 0;
}

FP16_VECTOR_CLONES bool divides_by_zero(const float* a, const float* b, std::size_t count) {
  std::uint32_t any = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint32_t dividend = std::bit_cast<std::uint32_t>(a[i]) & 0x7fffffff;
    const std::uint32_t divisor = std::bit_cast<std::uint32_t>(b[i]) & 0x7fffffff;
    any |= is_less(divisor, 1) & is_nonzero(dividend) & is_less(dividend, infinity_bits<binary32>);
  }
  return any != 0;
}

template <typename Code>
FP16_VECTOR_CLONES bool has_signalling_nan(const Format& format, const Code* codes, std::size_t count) {
  if (!format.has_nan_payload()) return false;
  const auto below_sign = static_cast<Code>((Code{1} << (format.width() - 1)) - 1);
  const auto first = static_cast<Code>(format.max_finite_code() + 2);
  const auto signalling = static_cast<Code>((Code{1} << (format.trailing_bits() - 1)) - 1);
  Code any = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const auto above = static_cast<Code>((codes[i] & below_sign) - first);
    any = static_cast<Code>(any | (above < signalling));
  }
  return any != 0;
}

FP16_VECTOR_CLONES bool has_signalling_nan(const float* values, std::size_t count) {
  std::uint32_t any = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint32_t magnitude = std::bit_cast<std::uint32_t>(values[i]) & 0x7fffffff;
    any |= is_less(infinity_bits<binary32>, magnitude) &
           is_less(magnitude, infinity_bits<binary32> | quiet_bit<binary32>);
  }
  return any != 0;
}

template SmallCodes count_small(const Format&, const std::uint8_t*, std::size_t);
template SmallCodes count_small(const Format&, const std::uint16_t*, std::size_t);
template SmallCodes count_small(const Format&, const std::uint32_t*, std::size_t);

template bool has_signalling_nan(const Format&, const std::uint8_t*, std::size_t);
template bool has_signalling_nan(const Format&, const std::uint16_t*, std::size_t);
template bool has_signalling_nan(const Format&, const std::uint32_t*, std::size_t);

}  // namespace fp16::detail
