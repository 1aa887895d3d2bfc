#include "fp16/block_arrays.h"

#include <algorithm>
#include <array>
#include <bit>
#include <stdexcept>
#include <string>
#include <utility>

#include "fp16/config.h"
#include "fp16/vector/environment.h"
#include "fp16/vector/random_bits.h"
#include "fp16/vector/threads.h"

namespace fp16 {
namespace {

// All arithmetic below is exact but for one rounding of each quotient |x| / d to binary64, and that decides
// as the exact quotient would. Results change where the quotient passes some m, a number of the format or
// midway between two. In MX d is a power of two, and the quotient exact. In NVFP4 the digits of m and d are
// at most 3 and 28 for an element, d = scale * tensor scale, and 5 and 26 for a scale, d = 6 * tensor scale;
// x has 24. Integers of 24 and 31 digits times powers of two, |x| and m * d are equal, and then the quotient
// is m exactly, or they differ by more than 2^-31 of m * d, and then the quotient, off by at most 2^-53 of
// itself, is on the same side of m.

/// A format of elements or scales as the loops need it.
struct Numbers {
  double max;
  double min_normal;
  double unit;   ///< in the last place of 1
  double shift;  ///< a sum with shift * 2^e, half as large again as its binade, ends at that place of 2^e

  constexpr explicit Numbers(const Format& format)
      : max(format.max()),
        min_normal(format.min_normal()),
        unit(format.epsilon()),
        shift(1.5 * detail::power_of_two(binary64.precision - format.precision)) {}
};

constexpr double at_most(double value, double bound) {
  return value < bound ? value : bound;
}
constexpr double at_least(double value, double bound) {
  return value > bound ? value : bound;
}

/// The power of two that has the exponent of a number not below zero, in formats whose subnormals are those
/// of `numbers`.
constexpr double binade(const Numbers& numbers, double value) {
  const std::uint64_t exponent = std::bit_cast<std::uint64_t>(value) & infinity_bits<binary64>;
  return at_least(std::bit_cast<double>(exponent), numbers.min_normal);
}

/// To nearest-even with an unbounded exponent range. In formats of two or more digits a code is odd where its
/// significand is.
constexpr double nearest(const Numbers& numbers, double value) {
  const double shift = binade(numbers, value) * numbers.shift;
  return (value + shift) - shift;
}

/// `magnitude` / `divisor` rounded stochastically: up if the remainder is at least (random + 1) / 2^32 of a
/// unit times the divisor. That product, of 33 and 28 digits, is compared in two parts, each of them exact;
/// so is the remainder, and its difference from the upper part wherever the lower one decides (Sterbenz).
constexpr double stochastic(const Numbers& numbers, double magnitude, double divisor, std::uint32_t random) {
  const double quotient = magnitude / divisor;
  const double unit = binade(numbers, quotient) * numbers.unit;
  const double rounded = nearest(numbers, quotient);
  const double kept = rounded - (rounded > quotient ? unit : 0);
  const double remainder = (magnitude - kept * divisor) * 0x1p32;
  const double divided_unit = unit * divisor;
  const double upper = static_cast<double>(static_cast<std::int32_t>(random >> 16)) * 0x1p16;
  const double lower = static_cast<double>(static_cast<std::int32_t>(random & 0xffff)) + 1;
  return kept + (remainder - upper * divided_unit >= lower * divided_unit ? unit : 0);
}

/// From which 24-bit significand of amax on a power-of-two scale is twice what the exponent alone would make
/// it, by each rule; all rules are monotonic.
template <const BlockFormat& B>
constexpr std::array<std::uint32_t, scale_rules.size()> rounding_up_from() {
  std::array<std::uint32_t, scale_rules.size()> borders{};
  for (const ScaleRule rule : scale_rules) {
    std::uint32_t below = min_normal_bits<binary32> - 1, border = 2 * min_normal_bits<binary32>;
    while (border - below > 1) {
      const std::uint32_t middle = below + (border - below) / 2;
      (detail::rounds_scale_up<B.element>(middle, rule) ? border : below) = middle;
    }
    borders[static_cast<std::size_t>(rule)] = border;
  }
  return borders;
}

/// A row of block_formats with all that the loops need to know of it.
struct BlockFormatRow {
  const BlockFormat* format;
  std::array<std::uint32_t, scale_rules.size()> rounding_up_from;
  float nan;  ///< every number of a block whose scale is one
};

template <const BlockFormat& B>
constexpr BlockFormatRow row_of() {
  const double nan = decode_element<B>(0, quiet_nan_bits<B.scale>);
  return {&B, rounding_up_from<B>(), std::bit_cast<float>(encode<binary32>(nan).bits)};
}

const BlockFormatRow& row_of(const BlockFormat& format) {
  static constexpr auto rows = []<std::size_t... row>(std::index_sequence<row...>) {
    return std::array{row_of<*block_formats[row]>()...};
  }
  (std::make_index_sequence<block_formats.size()>());
  const auto row = std::ranges::find(rows, &format, &BlockFormatRow::format);
  if (row == rows.end())
    throw std::invalid_argument("block format: " + std::string(format.name) + " is no row of block_formats");
  return *row;
}

/// How blocks of one array are scaled and rounded.
struct BlockRounding {
  Numbers elements, scales;
  std::size_t block_size;
  bool relative;  ///< to the tensor scale; else scales are powers of two
  double tensor_scale;
  double scale_divisor;
  std::int32_t element_emax;
  std::uint32_t rounding_up_from;
  float nan;

  BlockRounding(const BlockFormatRow& row, const BlockArrayOptions& options)
      : elements(row.format->element),
        scales(row.format->scale),
        block_size(static_cast<std::size_t>(row.format->block_size)),
        relative(row.format->has_tensor_scale),
        tensor_scale(options.tensor_scale),
        scale_divisor(elements.max * tensor_scale),
        element_emax(row.format->element.emax()),
        rounding_up_from(row.rounding_up_from[static_cast<std::size_t>(options.scale_rule)]),
        nan(row.nan) {}
};

constexpr std::size_t most_blocks = 64;
constexpr std::size_t most_rows = 32;  ///< values of a block

/// Blocks side by side: the largest magnitude as a binary32 code, what elements are multiplied by, and
/// what values are divided by.
struct Scaling {
  std::array<std::int32_t, most_blocks> amax;
  std::array<double, most_blocks> scale, divisor;
};

constexpr std::int32_t amax_without_scale = infinity_bits<binary32>;  ///< from here on

constexpr std::int32_t magnitude_bits(float value) {
  return std::bit_cast<std::int32_t>(value) & 0x7fffffff;
}

constexpr double power_of_two_scale(const BlockRounding& to, std::int32_t amax) {
  constexpr int trailing_bits = binary32.trailing_bits();
  const auto significand = static_cast<std::uint32_t>(amax) | min_normal_bits<binary32>;
  const std::int32_t up = (significand & (2 * min_normal_bits<binary32> - 1)) >= to.rounding_up_from ? 1 : 0;
  const std::int32_t exponent = (amax >> trailing_bits) - binary32.bias() - to.element_emax + up;
  // A subnormal amax has an exponent below the smallest in any case.
  const std::int64_t clamped = exponent < e8m0.emin() ? e8m0.emin() : exponent;
  return std::bit_cast<double>((clamped + binary64.bias()) << binary64.trailing_bits());
}

/// To nearest-even.
constexpr double relative_scale(const BlockRounding& to, std::int32_t amax) {
  const double quotient = static_cast<double>(std::bit_cast<float>(amax)) / to.scale_divisor;
  return at_most(nearest(to.scales, quotient), to.scales.max);
}

/// A block whose scale is no number or zero has a divisor of 1: its elements do not matter.
constexpr void find_scales(const BlockRounding& to, std::size_t blocks, Scaling& scaling) {
  for (std::size_t block = 0; block < blocks; ++block) {
    const std::int32_t amax = scaling.amax[block];
    const double scale = to.relative ? relative_scale(to, amax) : power_of_two_scale(to, amax);
    const double divisor = to.relative ? scale * to.tensor_scale : scale;
    scaling.scale[block] = scale;
    scaling.divisor[block] = divisor > 0 ? divisor : 1;
  }
}

template <bool is_stochastic>
constexpr float rounded_value(const Numbers& elements, float value, double scale, double divisor,
                              std::uint32_t random) {
  const auto sign = std::bit_cast<std::uint32_t>(value) & sign_mask<binary32>;
  const double magnitude = std::bit_cast<float>(magnitude_bits(value));
  const double rounded = is_stochastic ? stochastic(elements, magnitude, divisor, random)
                                       : nearest(elements, magnitude / divisor);
  const auto product = static_cast<float>(at_most(rounded, elements.max) * scale);
  return std::bit_cast<float>(std::bit_cast<std::uint32_t>(product) | sign);
}

/// Blocks one after another, up to most_blocks of them.
template <bool is_stochastic>
FP16_VECTOR_CLONES void round_line(const BlockRounding& to, float* values, const std::uint32_t* random,
                                   std::size_t count, Scaling& scaling) {
  const std::size_t size = to.block_size;
  std::size_t blocks = 0;
  for (std::size_t first = 0; first < count; first += size, ++blocks) {
    const std::size_t end = std::min(first + size, count);
    std::int32_t amax = 0;
    for (std::size_t i = first; i < end; ++i) amax = std::max(amax, magnitude_bits(values[i]));
    scaling.amax[blocks] = amax;
  }
  find_scales(to, blocks, scaling);
  for (std::size_t block = 0; block < blocks; ++block) {
    const std::size_t first = block * size, end = std::min(first + size, count);
    const double scale = scaling.scale[block], divisor = scaling.divisor[block];
    for (std::size_t i = first; i < end; ++i)
      values[i] =
          rounded_value<is_stochastic>(to.elements, values[i], scale, divisor, is_stochastic ? random[i] : 0);
  }
  for (std::size_t block = 0; block < blocks; ++block) {
    if (scaling.amax[block] < amax_without_scale) continue;
    std::fill(values + block * size, values + std::min((block + 1) * size, count), to.nan);
  }
}

/// Blocks side by side, up to most_blocks of them: `rows` rows of `count` values, each with random bits of its own.
template <bool is_stochastic>
FP16_VECTOR_CLONES void round_columns(const BlockRounding& to, float* values,
                                      const std::uint32_t* const* random, std::size_t rows,
                                      std::size_t stride, std::size_t count, Scaling& scaling) {
  scaling.amax.fill(0);
  for (std::size_t row = 0; row < rows; ++row) {
    const float* in = values + row * stride;
    for (std::size_t i = 0; i < count; ++i)
      scaling.amax[i] = std::max(scaling.amax[i], magnitude_bits(in[i]));
  }
  find_scales(to, count, scaling);
  for (std::size_t row = 0; row < rows; ++row) {
    float* inout = values + row * stride;
    const std::uint32_t* drawn = is_stochastic ? random[row] : nullptr;
    for (std::size_t i = 0; i < count; ++i)
      inout[i] = rounded_value<is_stochastic>(to.elements, inout[i], scaling.scale[i], scaling.divisor[i],
                                              is_stochastic ? drawn[i] : 0);
  }
  for (std::size_t i = 0; i < count; ++i) {
    if (scaling.amax[i] < amax_without_scale) continue;
    for (std::size_t row = 0; row < rows; ++row) values[row * stride + i] = to.nan;
  }
}

/// Blocks `first` to `last` - 1 of an array: those side by side follow each other, whole dimensions of them
/// make up lines.
template <bool is_stochastic>
void round_blocks(const BlockRounding& to, std::span<float> values, const BlockAxis& axis,
                  const detail::RandomBits& random, std::size_t first, std::size_t last) {
  const std::size_t per_line = (axis.length + to.block_size - 1) / to.block_size;
  Scaling scaling;
  std::array<std::uint32_t, is_stochastic ? most_rows * detail::philox_buffer_size(most_blocks) : 0> drawn;
  while (first < last) {
    const std::size_t slab = first / per_line, block = first % per_line;
    const std::size_t start = block * to.block_size;
    const std::size_t offset = (slab * axis.length + start) * axis.inner;
    if (axis.inner == 1) {
      const std::size_t blocks = std::min({most_blocks, per_line - block, last - first});
      const std::size_t count = std::min(blocks * to.block_size, axis.length - start);
      round_line<is_stochastic>(to, values.data() + offset,
                                is_stochastic ? random.from(offset, count, drawn.data()) : nullptr, count,
                                scaling);
      first += blocks;
      continue;
    }
    const std::size_t rows = std::min(to.block_size, axis.length - start);
    for (std::size_t column = 0; column < axis.inner; column += most_blocks) {
      const std::size_t count = std::min(most_blocks, axis.inner - column);
      std::array<const std::uint32_t*, most_rows> of_row;
      for (std::size_t row = 0; is_stochastic && row < rows; ++row)
        of_row[row] = random.from(offset + column + row * axis.inner, count,
                                  drawn.data() + row * detail::philox_buffer_size(most_blocks));
      round_columns<is_stochastic>(to, values.data() + offset + column, of_row.data(), rows, axis.inner,
                                   count, scaling);
    }
    ++first;
  }
}

void require_valid(std::span<const float> values, const BlockAxis& axis, const BlockArrayOptions& options) {
  const std::size_t slab = axis.length * axis.inner;
  if (slab == 0 ? !values.empty() : values.size() % slab != 0)
    throw std::invalid_argument("block axis: " + std::to_string(values.size()) +
                                " values do not consist of " + std::to_string(axis.length) + " times " +
                                std::to_string(axis.inner));
  if (!options.random_bits.empty() && options.random)
    throw std::invalid_argument("random_bits, random: both are given; one of them is allowed");
  if (!options.random_bits.empty() && options.random_bits.size() != values.size())
    throw std::invalid_argument("random_bits: has " + std::to_string(options.random_bits.size()) +
                                " elements; allowed: none, or " + std::to_string(values.size()) +
                                ", as the values");
}

/// In the default floating-point environment, which the tensor scale needs too.
void round_in_default_environment(const BlockFormat& format, std::span<float> values, const BlockAxis& axis,
                                  const BlockArrayOptions& options) {
  const BlockRounding to(row_of(format), options);
  require_valid(values, axis, options);
  if (values.empty()) return;
  if (to.relative && !(to.tensor_scale > 0 && to.tensor_scale <= binary32.max())) {
    std::ranges::fill(values, to.nan);
    return;
  }
  const std::size_t slabs = values.size() / (axis.length * axis.inner);
  const detail::RandomBits random(options.random_bits, options.random);
  detail::for_each_part(slabs * format.block_count(axis.length), options.threads, 1,
                        [&](std::size_t first, std::size_t last) {
                          const auto round = random ? round_blocks<true> : round_blocks<false>;
                          round(to, values, axis, random, first, last);
                        });
}

}  // namespace

void round_to_blocks(const BlockFormat& format, std::span<float> values, const BlockAxis& axis,
                     const BlockArrayOptions& options) {
  detail::in_default_environment([&] { round_in_default_environment(format, values, axis, options); });
}

}  // namespace fp16
