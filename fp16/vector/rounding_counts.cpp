#include "fp16/vector/rounding_counts.h"

#include <bit>

#include "fp16/vector/borders.h"

namespace fp16::detail {

CountBorders count_borders(const ArrayFormat& format, const Attributes& attributes) {
  const bool holds_infinity = format.format.has_infinity() && !attributes.saturate;
  CountBorders borders{.min_normal = float_bits(format.format.min_normal()),
                       .overflow = {},
                       .not_a_loss = infinity_bits<binary32> + !holds_infinity,
                       .open_from = infinity_bits<binary32>};
  // Overflow begins right above the largest number, at or above the midpoint of it and what would be its
  // successor, or at that.
  const std::uint32_t max = float_bits(format.format.max());
  const std::uint32_t half_ulp = 1u << (binary32.trailing_bits() - format.format.trailing_bits() - 1);
  if (attributes.rounding == Rounding::stochastic) {
    borders.overflow[0] = borders.overflow[1] = max + 2 * half_ulp;
    borders.open_from = max + 1;
    return borders;
  }
  for (const bool negative : {false, true}) {
    for (const std::uint32_t above : {1u, half_ulp, half_ulp + 1, 2 * half_ulp}) {
      borders.overflow[negative] = max + above;
      const float value = std::bit_cast<float>(with_sign<binary32>(max + above, negative));
      if (format.encode_one(value, attributes).flags.overflow) break;
    }
  }
  return borders;
}

namespace {

std::uint32_t is_nonzero(std::uint32_t a) {
  return (a | (0 - a)) >> 31;
}

}  // namespace

FP16_VECTOR_CLONES RoundingCounts count_roundings(const float* in, const float* widened, std::size_t count,
                                                  const CountBorders& borders) {
  std::uint32_t changed = 0, subnormal = 0, flushed = 0, overflowed = 0;
  const std::uint32_t border_difference = borders.overflow[0] ^ borders.overflow[1];
  for (std::size_t i = 0; i < count; ++i) {
    const auto before = std::bit_cast<std::uint32_t>(in[i]);
    const auto after = std::bit_cast<std::uint32_t>(widened[i]);
    const std::uint32_t magnitude_before = before & 0x7fffffff;
    const std::uint32_t magnitude_after = after & 0x7fffffff;
    const std::uint32_t border = borders.overflow[0] ^ ((0 - (before >> 31)) & border_difference);
    const std::uint32_t may_lose = is_less(magnitude_before, borders.not_a_loss);
    const std::uint32_t survives = is_nonzero(magnitude_after);
    const std::uint32_t differs =
        may_lose & is_nonzero(before ^ after) & is_nonzero(magnitude_before | magnitude_after);
    changed += differs;
    subnormal += survives & is_less(magnitude_after, borders.min_normal);
    flushed += differs & ~survives;
    overflowed += may_lose & ~is_less(magnitude_before, border);
  }
  return {.exact = count - changed,
          .inexact = changed - overflowed,
          .subnormal = subnormal,
          .flushed = flushed,
          .overflowed = overflowed};
}

}  // namespace fp16::detail
