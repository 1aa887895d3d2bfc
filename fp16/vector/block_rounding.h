#pragma once
/// How blocks find their scales and elements, in loops that compilers vectorise. Internal to block_arrays.
///
/// Elements are x / d, d = scale or scale * tensor scale. All arithmetic below is exact, or decides as exact
/// arithmetic would:
/// - Where d is a power of two, x * (1 / d) is exact in binary32, but for quotients below 2^-126, which are zeros by
///   any rounding: their fraction of a unit is below 2^-32.
/// - In NVFP4 d has 28 digits, in two floats: h has 20, l the others. To nearest-even x is compared with the middle m of
///   two elements times d, as x - m * h with m * l; m has at most 3 digits, so that both products are exact. So is the
///   difference where x and m * h are within a factor of two (Sterbenz), and elsewhere it is far beyond m * l. Which two
///   elements tells x * (1 / d) in binary32: where that is off, x is close to an element, and far from either middle.
/// - Stochastically x * (1 / d), where d, 1 / d and the product are rounded to binary32, is off by less than 2^-22 of
///   itself, which is 2^-20 of a unit or of the next lower one. Where the random number is not farther than that from the
///   fraction, modulo a unit, binary64 decides, as said at `drawn_exactly`.
/// - A scale of NVFP4 is amax / c, c = 6 * tensor scale of 26 digits, rounded to binary64 and then to nearest-even.
///   Borders of scales have 5 digits: amax and m * c, integers of 24 and 31 digits times powers of two, are equal or
///   differ by more than 2^-31 of m * c, and the quotient, off by at most 2^-53 of itself, is on the same side of m.

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "fp16/block_arrays.h"
#include "fp16/config.h"

namespace fp16::detail {

/// A format of elements or scales, in the arithmetic of Real.
template <typename Real>
struct Numbers {
  using Int = std::conditional_t<sizeof(Real) == sizeof(float), std::int32_t, std::int64_t>;
  Real max;
  Real min_normal;
  Real unit;   ///< in the last place of 1
  Real shift;  ///< a sum with shift * 2^e, half as large again as its binade, ends at that place of 2^e
  /// Less the code of a binade 2^e: that of 1 / (unit * 2^e).
  std::make_unsigned_t<Int> units;
  int dropped;  ///< the digits that Real has besides

  constexpr explicit Numbers(const Format& format)
      : max(static_cast<Real>(format.max())),
        min_normal(static_cast<Real>(format.min_normal())),
        unit(static_cast<Real>(format.epsilon())),
        shift(static_cast<Real>(1.5 * power_of_two(std::numeric_limits<Real>::digits - format.precision))),
        units(std::bit_cast<std::make_unsigned_t<Int>>(Real{1}) +
              std::bit_cast<std::make_unsigned_t<Int>>(1 / unit)),
        dropped(std::numeric_limits<Real>::digits - format.precision) {}
};

/// A number that is not negative, its code, and the unit in the last place of the binade it was rounded in.
template <typename Real>
struct Rounded {
  Real value;
  typename Numbers<Real>::Int code;
  Real unit;
};

template <typename Real>
constexpr Real at_most(Real value, Real bound) {
  return value < bound ? value : bound;
}

/// The power of two that begins the binade; below the normal numbers their smallest.
template <typename Real>
[[gnu::always_inline]] constexpr Real binade_of(const Numbers<Real>& to, Real magnitude) {
  using Int = typename Numbers<Real>::Int;
  constexpr Int exponent_mask = std::bit_cast<Int>(std::numeric_limits<Real>::infinity());
  const Real exponent = std::bit_cast<Real>(std::bit_cast<Int>(magnitude) & exponent_mask);
  return exponent > to.min_normal ? exponent : to.min_normal;
}

/// What a number's code is above its units.
template <typename Real>
[[gnu::always_inline]] constexpr auto code_of_binade(const Numbers<Real>& to, Real binade) {
  using Int = typename Numbers<Real>::Int;
  return (std::bit_cast<Int>(binade) - std::bit_cast<Int>(to.min_normal)) >> to.dropped;
}

/// To nearest-even; magnitude <= to.max. The last digits of the sum are those of the code, one more where it rounds up
/// into the next binade.
template <typename Real>
[[gnu::always_inline]] constexpr Rounded<Real> nearest(const Numbers<Real>& to, Real magnitude) {
  using Int = typename Numbers<Real>::Int;
  const Real binade = binade_of(to, magnitude);
  const Real shift = binade * to.shift;
  const Real sum = magnitude + shift;
  return {.value = sum - shift,
          .code = std::bit_cast<Int>(sum) - std::bit_cast<Int>(shift) + code_of_binade(to, binade),
          .unit = binade * to.unit};
}

/// `value` where the condition holds, else 0; no jump, which would keep a loop scalar.
template <typename Real>
[[gnu::always_inline]] constexpr Real keep_if(bool condition, Real value) {
  using Int = typename Numbers<Real>::Int;
  return std::bit_cast<Real>(std::bit_cast<Int>(value) & -static_cast<Int>(condition));
}

/// The largest number that is not above `magnitude`.
template <typename Real>
[[gnu::always_inline]] constexpr Rounded<Real> toward_zero(const Numbers<Real>& to, Real magnitude) {
  Rounded<Real> result = nearest(to, magnitude);
  const bool above = result.value > magnitude;
  result.value -= keep_if(above, result.unit);
  result.code -= static_cast<typename Numbers<Real>::Int>(above);
  return result;
}

template <typename Real>
[[gnu::always_inline]] constexpr Rounded<Real> away_from_zero_if(bool up, Rounded<Real> kept) {
  kept.value += keep_if(up, kept.unit);
  kept.code += static_cast<typename Numbers<Real>::Int>(up);
  return kept;
}

/// How the blocks of one array are scaled and rounded.
struct BlockRounding {
  Numbers<float> elements;
  Numbers<double> elements_in_double, scales;
  int width;      ///< of an element
  bool relative;  ///< to the tensor scale; else scales are powers of two
  double tensor_scale;
  double scale_divisor;
  std::int32_t element_emax;
  std::uint32_t rounding_up_from;  ///< the 24-bit significand of amax from which on a scale is twice as large
  std::uint8_t nan_scale;
  float nan;        ///< every number of a block whose scale is one
  bool is_extreme;  ///< 1 / d or products with d may lie outside the normal numbers of binary32
};

inline constexpr std::size_t most_blocks = 128;
inline constexpr std::size_t most_elements =
    2048;  ///< of blocks one after another, that are rounded together
inline constexpr std::int32_t amax_without_scale = infinity_bits<binary32>;  ///< from here on

/// Blocks of one line or side by side.
struct BlockScales {
  std::array<std::int32_t, most_blocks> amax;  ///< the largest magnitude as a binary32 code
  std::array<std::uint8_t, most_blocks> code;
  std::array<float, most_blocks> value;
  std::array<double, most_blocks>
      divisor;                            ///< beyond all floats where the scale is zero, so that elements are
  std::array<float, most_blocks> factor;  ///< 1 / divisor, of which digits are lost
  std::array<float, most_blocks> high, low;       ///< digits of the divisor: the first 20, and the others
  std::array<std::int32_t, most_blocks> largest;  ///< element times `high`, as a binary32 code
};

constexpr std::int32_t magnitude_bits(float value) {
  return std::bit_cast<std::int32_t>(value) & 0x7fffffff;
}

/// 2^exponent for -127 <= exponent <= 127.
[[gnu::always_inline]] constexpr float float_power_of_two(std::int32_t exponent) {
  const std::int32_t code = (exponent + binary32.bias()) << binary32.trailing_bits();
  return std::bit_cast<float>(code == 0 ? std::int32_t{1} << (binary32.trailing_bits() - 1) : code);
}

[[gnu::always_inline]] constexpr void find_power_of_two_scales(const BlockRounding& to, std::size_t blocks,
                                                               BlockScales& scales) {
  for (std::size_t block = 0; block < blocks; ++block) {
    const std::int32_t amax = scales.amax[block];
    const auto significand = static_cast<std::uint32_t>(amax) | min_normal_bits<binary32>;
    const std::int32_t up =
        (significand & (2 * min_normal_bits<binary32> - 1)) >= to.rounding_up_from ? 1 : 0;
    const std::int32_t exponent = (amax >> binary32.trailing_bits()) - binary32.bias() - to.element_emax + up;
    // A subnormal amax has an exponent below the smallest in any case.
    const std::int32_t clamped = exponent < e8m0.emin() ? e8m0.emin() : exponent;
    scales.code[block] = static_cast<std::uint8_t>(clamped + e8m0.bias());
    scales.value[block] = float_power_of_two(clamped);
    scales.factor[block] = float_power_of_two(-clamped);
  }
}

[[gnu::always_inline]] constexpr void find_relative_scales(const BlockRounding& to, std::size_t blocks,
                                                           BlockScales& scales) {
  constexpr std::int64_t first_20_digits = -(std::int64_t{1} << (std::numeric_limits<double>::digits - 20));
  for (std::size_t block = 0; block < blocks; ++block) {
    const double quotient = static_cast<double>(std::bit_cast<float>(scales.amax[block])) / to.scale_divisor;
    const Rounded<double> scale = nearest(to.scales, at_most(quotient, to.scales.max));
    const double divisor = scale.value * to.tensor_scale + keep_if(scale.value == 0, 0x1p200);
    const double high = std::bit_cast<double>(std::bit_cast<std::int64_t>(divisor) & first_20_digits);
    scales.code[block] = static_cast<std::uint8_t>(scale.code);
    scales.value[block] = static_cast<float>(scale.value);
    scales.divisor[block] = divisor;
    scales.factor[block] = 1 / static_cast<float>(divisor);
    scales.high[block] = static_cast<float>(high);
    scales.low[block] = static_cast<float>(divisor - high);
    scales.largest[block] = std::bit_cast<std::int32_t>(to.elements.max * scales.high[block]);
  }
}

/// To nearest-even. Below the normal numbers the smallest of them is added, so that everywhere the next lower element is what
/// is left without the dropped digits, and half of the first of these leads to the middle. The next float, 2^-149 after zero,
/// makes the comparison strict where the lower element is even.
[[gnu::always_inline]] constexpr Rounded<float> nearest_relative(const Numbers<float>& to,
                                                                 const BlockScales& scales, std::size_t block,
                                                                 std::int32_t magnitude) {
  const auto x = std::bit_cast<float>(std::min(magnitude, scales.largest[block]));
  const float quotient = x * scales.factor[block];
  const bool is_subnormal = quotient < to.min_normal;
  const float added = keep_if(is_subnormal, to.min_normal);
  const std::int32_t unit = std::int32_t{1} << to.dropped;
  const std::int32_t lower = std::bit_cast<std::int32_t>(quotient + added) & -unit;
  const float middle = std::bit_cast<float>(lower | unit / 2) - added;
  const std::int32_t at_least =
      std::bit_cast<std::int32_t>(middle * scales.low[block]) + (~(lower >> to.dropped) & 1);
  const bool up = x - middle * scales.high[block] >= std::bit_cast<float>(at_least);
  const std::int32_t element = lower + (-static_cast<std::int32_t>(up) & unit);
  const std::int32_t zero = std::bit_cast<std::int32_t>(to.min_normal) -
                            (-static_cast<std::int32_t>(!is_subnormal) & min_normal_bits<binary32>);
  return {.value = std::bit_cast<float>(element) - added, .code = (element - zero) >> to.dropped, .unit = 0};
}

/// nearest_relative in binary64, where the middle times d is exact.
[[gnu::always_inline]] constexpr Rounded<double> nearest_exactly(const Numbers<double>& elements,
                                                                 double magnitude, double divisor) {
  const Rounded<double> kept = toward_zero(elements, at_most(magnitude / divisor, elements.max));
  const double border = (kept.value + kept.unit / 2) * divisor;
  const bool up = (kept.code & 1) != 0 ? magnitude >= border : magnitude > border;
  return away_from_zero_if(up && kept.value < elements.max, kept);
}

/// Stochastically by 32 random bits: up if the remainder is at least (random + 1) / 2^32 of a unit times the divisor.
/// That product, of 33 and 28 digits, is compared in two parts, each of them exact; so is the remainder, and its
/// difference from the upper part wherever the lower one decides (Sterbenz). The quotient of binary64 is on the same
/// side of each element as the exact one.
[[gnu::always_inline]] constexpr Rounded<double> drawn_exactly(const Numbers<double>& elements,
                                                               double magnitude, double divisor,
                                                               std::uint32_t random) {
  const Rounded<double> kept = toward_zero(elements, at_most(magnitude / divisor, elements.max));
  const double remainder = (magnitude - kept.value * divisor) * 0x1p32;
  const double divided_unit = kept.unit * divisor;
  const double upper = static_cast<double>(static_cast<std::int32_t>(random >> 16)) * 0x1p16;
  const double lower = static_cast<double>(static_cast<std::int32_t>(random & 0xffff)) + 1;
  const bool up = remainder - upper * divided_unit >= lower * divided_unit;
  Rounded<double> result = away_from_zero_if(up, kept);
  return result.value > elements.max ? kept : result;
}

/// Stochastically by 32 random bits: up if the `fraction` of a unit that is cut off, to 32 digits, is above them.
/// magnitude <= to.max, which has no fraction.
[[gnu::always_inline]] constexpr Rounded<float> drawn(const Numbers<float>& to, float magnitude,
                                                      std::uint32_t random, std::uint32_t& fraction) {
  const float binade = binade_of(to, magnitude);
  const float in_units = magnitude * std::bit_cast<float>(to.units - std::bit_cast<std::uint32_t>(binade));
  const auto lower = static_cast<std::int32_t>(in_units);
  fraction = static_cast<std::uint32_t>((in_units - static_cast<float>(lower)) * 0x1p32f);
  const std::int32_t rounded = lower + static_cast<std::int32_t>(fraction > random);
  const float unit = binade * to.unit;
  return {.value = static_cast<float>(rounded) * unit,
          .code = rounded + code_of_binade(to, binade),
          .unit = unit};
}

/// An element from its magnitude. `open` becomes 1 where `drawn_exactly` must decide.
template <bool is_relative, bool is_stochastic>
[[gnu::always_inline]] constexpr Rounded<float> element_of(const BlockRounding& to, const BlockScales& scales,
                                                           std::size_t block, float magnitude,
                                                           std::uint32_t random, std::uint32_t& open) {
  if constexpr (is_relative && !is_stochastic)
    return nearest_relative(to.elements, scales, block, std::bit_cast<std::int32_t>(magnitude));
  const float quotient = at_most(magnitude * scales.factor[block], to.elements.max);
  if constexpr (!is_stochastic) return nearest(to.elements, quotient);
  std::uint32_t fraction;
  const Rounded<float> element = drawn(to.elements, quotient, random, fraction);
  if constexpr (is_relative) {
    constexpr std::uint32_t error = 1u << 12;
    open |= static_cast<std::uint32_t>(fraction - random + error <= 2 * error);
  }
  return element;
}

/// What is made of an element, in 32 bits: a number, element * scale, or a code.
template <typename Out, typename Real>
[[gnu::always_inline]] constexpr std::uint32_t word_of(const BlockRounding& to, const Rounded<Real>& element,
                                                       float scale, std::uint32_t sign) {
  if constexpr (std::is_same_v<Out, float>)
    return std::bit_cast<std::uint32_t>(static_cast<float>(element.value) * scale) | sign;
  return static_cast<std::uint32_t>(element.code) | sign >> (binary32.width() - to.width);
}

/// A loop that also narrowed would work on bytes from the start.
template <typename Out>
[[gnu::always_inline]] inline void write_words(const std::uint32_t* words, std::size_t count, Out* out) {
  for (std::size_t i = 0; i < count; ++i) {
    if constexpr (std::is_same_v<Out, float>) {
      out[i] = std::bit_cast<float>(words[i]);
    } else {
      out[i] = static_cast<Out>(words[i]);
    }
  }
}

}  // namespace fp16::detail
