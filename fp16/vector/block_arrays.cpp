#include "fp16/block_arrays.h"

#include <algorithm>
#include <array>
#include <stdexcept>
#include <string>
#include <utility>

#include "fp16/vector/block_rounding.h"
#include "fp16/vector/bulk_templates.h"
#include "fp16/vector/environment.h"
#include "fp16/vector/random_bits.h"
#include "fp16/vector/threads.h"

namespace fp16 {
namespace {

using namespace detail;

/// From which 24-bit significand of amax on a power-of-two scale is twice what the exponent alone would make
/// it, by each rule; all rules are monotonic.
template <const BlockFormat& B>
constexpr std::array<std::uint32_t, scale_rules.size()> rounding_up_from() {
  std::array<std::uint32_t, scale_rules.size()> borders{};
  for (const ScaleRule rule : scale_rules) {
    std::uint32_t below = min_normal_bits<binary32> - 1, border = 2 * min_normal_bits<binary32>;
    while (border - below > 1) {
      const std::uint32_t middle = below + (border - below) / 2;
      (rounds_scale_up<B.element>(middle, rule) ? border : below) = middle;
    }
    borders[static_cast<std::size_t>(rule)] = border;
  }
  return borders;
}

/// Known to the compiler, so that a block is a loop without a rest.
template <bool is_relative>
inline constexpr std::size_t size_of_blocks = is_relative ? nvfp4.block_size : mxfp4.block_size;

/// A row of block_formats with all that the loops need to know of it.
struct BlockFormatRow {
  const BlockFormat* format;
  std::array<std::uint32_t, scale_rules.size()> rounding_up_from;
  std::uint8_t nan_scale;
  float nan;  ///< every number of a block whose scale is one
};

template <const BlockFormat& B>
constexpr BlockFormatRow row_of() {
  static_assert(B.element.width() <= 8 && B.scale.width() <= 8 && B.element.has_negative_zero());
  static_assert(B.block_size == size_of_blocks<B.has_tensor_scale>);
  const double nan = decode_element<B>(0, quiet_nan_bits<B.scale>);
  return {&B, rounding_up_from<B>(), quiet_nan_bits<B.scale>,
          std::bit_cast<float>(encode<binary32>(nan).bits)};
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

BlockRounding block_rounding(const BlockFormat& format, const BlockArrayOptions& options) {
  const BlockFormatRow& row = row_of(format);
  const double tensor_scale = options.tensor_scale;
  return {.elements = Numbers<float>(format.element),
          .elements_in_double = Numbers<double>(format.element),
          .scales = Numbers<double>(format.scale),
          .width = format.element.width(),
          .relative = format.has_tensor_scale,
          .tensor_scale = tensor_scale,
          .scale_divisor = format.element.max() * tensor_scale,
          .element_emax = format.element.emax(),
          .rounding_up_from = row.rounding_up_from[static_cast<std::size_t>(options.scale_rule)],
          .nan_scale = row.nan_scale,
          .nan = row.nan,
          .is_extreme = !(tensor_scale > 0x1p-96 && tensor_scale < 0x1p96)};
}

template <bool is_relative>
[[gnu::always_inline]] inline void find_scales(const BlockRounding& to, std::size_t blocks,
                                               BlockScales& scales) {
  if constexpr (is_relative) {
    find_relative_scales(to, blocks, scales);
  } else {
    find_power_of_two_scales(to, blocks, scales);
  }
}

template <typename Out>
constexpr Out of_block_without_scale(const BlockRounding& to) {
  if constexpr (std::is_same_v<Out, float>) return to.nan;
  return {};
}

/// Elements that are rounded before any of them is written: they may lie where their values do.
template <bool is_relative, bool is_stochastic, std::size_t count>
struct RoundedElements {
  std::array<std::uint32_t, count> words;
  std::array<std::uint32_t, is_relative && is_stochastic ? most_blocks : 0> open{};  ///< by place in a run

  [[gnu::always_inline]] bool any_open() const {
    std::uint32_t any = 0;
    for (const std::uint32_t lane : open) any |= lane;
    return any != 0;
  }
};

/// A run of elements, element i of block block_of(i).
template <typename Out, bool is_relative, bool is_stochastic, typename BlockOf>
[[gnu::always_inline]] inline void round_run(const BlockRounding& to, const BlockScales& scales,
                                             const float* in, const std::uint32_t* random, std::size_t count,
                                             BlockOf block_of, std::uint32_t* words, std::uint32_t* open) {
  for (std::size_t i = 0; i < count; ++i) {
    const auto sign = std::bit_cast<std::uint32_t>(in[i]) & sign_mask<binary32>;
    const std::size_t block = block_of(i);
    std::uint32_t is_open = 0;
    const auto element =
        element_of<is_relative, is_stochastic>(to, scales, block, std::bit_cast<float>(magnitude_bits(in[i])),
                                               is_stochastic ? random[i] : 0, is_open);
    words[i] = word_of<Out>(to, element, scales.value[block], sign);
    if constexpr (is_relative && is_stochastic) open[i] |= is_open;
  }
}

/// A run of a relative format, whose elements binary64 decides.
template <typename Out, bool is_stochastic, typename BlockOf>
void round_run_exactly(const BlockRounding& to, const BlockScales& scales, const float* in,
                       const std::uint32_t* random, std::size_t count, BlockOf block_of,
                       std::uint32_t* words) {
  for (std::size_t i = 0; i < count; ++i) {
    const auto sign = std::bit_cast<std::uint32_t>(in[i]) & sign_mask<binary32>;
    const std::size_t block = block_of(i);
    const double magnitude = std::bit_cast<float>(magnitude_bits(in[i])), divisor = scales.divisor[block];
    const auto element = is_stochastic ? drawn_exactly(to.elements_in_double, magnitude, divisor, random[i])
                                       : nearest_exactly(to.elements_in_double, magnitude, divisor);
    words[i] = word_of<Out>(to, element, scales.value[block], sign);
  }
}

/// Whole blocks one after another, up to most_elements in all.
template <bool is_relative, bool is_stochastic, typename Out>
FP16_VECTOR_CLONES void round_line(const BlockRounding& to, const float* in, const std::uint32_t* random,
                                   std::size_t blocks, BlockScales& scales, Out* out) {
  constexpr std::size_t size = size_of_blocks<is_relative>;
  for (std::size_t block = 0; block < blocks; ++block) {
    std::int32_t amax = 0;
    for (std::size_t i = 0; i < size; ++i) amax = std::max(amax, magnitude_bits(in[block * size + i]));
    scales.amax[block] = amax;
  }
  find_scales<is_relative>(to, blocks, scales);
  RoundedElements<is_relative, is_stochastic, most_elements> rounded;
  for (std::size_t block = 0; block < blocks; ++block) {
    const std::size_t first = block * size;
    round_run<Out, is_relative, is_stochastic>(
        to, scales, in + first, is_stochastic ? random + first : nullptr, size,
        [=](std::size_t) { return block; }, rounded.words.data() + first, rounded.open.data());
  }
  if (is_relative && (to.is_extreme || rounded.any_open()))
    round_run_exactly<Out, is_stochastic>(
        to, scales, in, random, blocks * size, [](std::size_t i) { return i / size; }, rounded.words.data());
  write_words(rounded.words.data(), blocks * size, out);
  for (std::size_t block = 0; block < blocks; ++block) {
    if (scales.amax[block] < amax_without_scale) continue;
    scales.code[block] = to.nan_scale;
    std::fill_n(out + block * size, size, of_block_without_scale<Out>(to));
  }
}

/// Blocks side by side, up to most_blocks of them: `rows` rows of `count` values, of which the array's element `first` is
/// the first.
template <bool is_relative, bool is_stochastic, typename Out>
FP16_VECTOR_CLONES void round_columns(const BlockRounding& to, const float* in, const RandomBits& random,
                                      std::size_t first, std::size_t rows, std::size_t stride,
                                      std::size_t count, BlockScales& scales, Out* out) {
  scales.amax.fill(0);
  for (std::size_t row = 0; row < rows; ++row) {
    for (std::size_t i = 0; i < count; ++i)
      scales.amax[i] = std::max(scales.amax[i], magnitude_bits(in[row * stride + i]));
  }
  find_scales<is_relative>(to, count, scales);
  const auto column = [](std::size_t i) { return i; };
  for (std::size_t row = 0; row < rows; ++row) {
    const float* const values = in + row * stride;
    std::array<std::uint32_t, is_stochastic ? philox_buffer_size(most_blocks) : 0> buffer;
    const std::uint32_t* bits = nullptr;
    if constexpr (is_stochastic) bits = random.from(first + row * stride, count, buffer.data());
    RoundedElements<is_relative, is_stochastic, most_blocks> rounded;
    round_run<Out, is_relative, is_stochastic>(to, scales, values, bits, count, column, rounded.words.data(),
                                               rounded.open.data());
    if (is_relative && (to.is_extreme || rounded.any_open()))
      round_run_exactly<Out, is_stochastic>(to, scales, values, bits, count, column, rounded.words.data());
    write_words(rounded.words.data(), count, out + row * stride);
  }
  for (std::size_t i = 0; i < count; ++i) {
    if (scales.amax[i] < amax_without_scale) continue;
    scales.code[i] = to.nan_scale;
    for (std::size_t row = 0; row < rows; ++row) out[row * stride + i] = of_block_without_scale<Out>(to);
  }
}

/// Where what is made of an array goes; no scales where numbers are made.
template <typename Out>
struct BlockOutput {
  Out* elements;
  std::uint8_t* scales;
};

/// Rounds the blocks `first` to `last` - 1 of an array: those side by side follow each other, whole dimensions of
/// them make up lines.
template <bool is_relative, bool is_stochastic, typename Out>
class BlockLoops {
 public:
  BlockLoops(const BlockRounding& to, const float* in, const BlockAxis& axis, const RandomBits& random,
             const BlockOutput<Out>& out)
      : to_(to), in_(in), axis_(axis), random_(random), out_(out) {}

  void round(std::size_t first, std::size_t last) {
    const std::size_t per_line = (axis_.length + size - 1) / size;
    while (first < last) {
      const std::size_t block = first % per_line;
      const std::size_t start = block * size, length = std::min(size, axis_.length - start);
      const std::size_t offset = (first / per_line * axis_.length + start) * axis_.inner;
      if (axis_.inner > 1) {
        round_slab(first, offset, length);
        ++first;
      } else if (length < size) {
        round_short_block(first, offset, length);
        ++first;
      } else {
        const std::size_t blocks =
            std::min({most_elements / size, axis_.length / size - block, last - first});
        round_line<is_relative, is_stochastic>(to_, in_ + offset, random_bits(offset, blocks * size), blocks,
                                               scales_, out_.elements + offset);
        keep_scales(first, blocks);
        first += blocks;
      }
    }
  }

 private:
  static constexpr std::size_t size = size_of_blocks<is_relative>;
  static_assert(most_elements % size == 0 && most_elements / size <= most_blocks);

  const std::uint32_t* random_bits(std::size_t begin, std::size_t count) {
    if constexpr (!is_stochastic) return nullptr;
    return random_.from(begin, count, buffer_.data());
  }

  void keep_scales(std::size_t first, std::size_t blocks) {
    if (out_.scales != nullptr) std::copy_n(scales_.code.begin(), blocks, out_.scales + first);
  }

  /// Filled up with zeros.
  void round_short_block(std::size_t block, std::size_t offset, std::size_t length) {
    std::array<float, size> values{};
    std::array<std::uint32_t, size> random{};
    std::array<Out, size> elements;
    std::copy_n(in_ + offset, length, values.begin());
    if constexpr (is_stochastic) std::copy_n(random_bits(offset, length), length, random.begin());
    round_line<is_relative, is_stochastic>(to_, values.data(), random.data(), 1, scales_, elements.data());
    std::copy_n(elements.begin(), length, out_.elements + offset);
    keep_scales(block, 1);
  }

  /// Blocks side by side, one for each of axis.inner columns.
  void round_slab(std::size_t block, std::size_t offset, std::size_t rows) {
    for (std::size_t column = 0; column < axis_.inner; column += most_blocks) {
      const std::size_t count = std::min(most_blocks, axis_.inner - column);
      const std::size_t first = offset + column;
      round_columns<is_relative, is_stochastic>(to_, in_ + first, random_, first, rows, axis_.inner, count,
                                                scales_, out_.elements + first);
      keep_scales(block * axis_.inner + column, count);
    }
  }

  const BlockRounding& to_;
  const float* in_;
  BlockAxis axis_;
  const RandomBits& random_;
  BlockOutput<Out> out_;
  BlockScales scales_;
  std::array<std::uint32_t, is_stochastic ? philox_buffer_size(most_elements) : 0> buffer_;
};

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

std::size_t line_count(std::size_t values, const BlockAxis& axis) {
  return values == 0 ? 0 : values / axis.length;
}

/// In the default floating-point environment, which the tensor scale needs too.
template <typename Out>
void round_in_default_environment(const BlockFormat& format, std::span<const float> values,
                                  const BlockAxis& axis, const BlockArrayOptions& options,
                                  const BlockOutput<Out>& out) {
  const std::size_t blocks = line_count(values.size(), axis) * format.block_count(axis.length);
  const BlockRounding to = block_rounding(format, options);
  if (values.empty()) return;
  if (to.relative && !(to.tensor_scale > 0 && to.tensor_scale <= binary32.max())) {
    std::fill_n(out.elements, values.size(), of_block_without_scale<Out>(to));
    if (out.scales != nullptr) std::fill_n(out.scales, blocks, to.nan_scale);
    return;
  }
  const RandomBits random(options.random_bits, options.random);
  const bool is_one_line = axis.inner == 1 && axis.length % static_cast<std::size_t>(format.block_size) == 0;
  const BlockAxis whole{.length = is_one_line ? values.size() : axis.length, .inner = axis.inner};
  const auto with = [&]<bool is_relative, bool is_stochastic>() {
    for_each_part(blocks / axis.inner, options.threads, 1, [&](std::size_t first, std::size_t last) {
      BlockLoops<is_relative, is_stochastic, Out>(to, values.data(), whole, random, out).round(first, last);
    });
  };
  if (to.relative) {
    random ? with.template operator()<true, true>() : with.template operator()<true, false>();
  } else {
    random ? with.template operator()<false, true>() : with.template operator()<false, false>();
  }
}

}  // namespace

void round_to_blocks(const BlockFormat& format, std::span<float> values, const BlockAxis& axis,
                     const BlockArrayOptions& options) {
  require_valid(values, axis, options);
  require_apart("values", std::as_bytes(values), std::as_bytes(options.random_bits));
  in_default_environment([&] {
    round_in_default_environment<float>(format, values, axis, options, {values.data(), nullptr});
  });
}

void encode_blocks(const BlockFormat& format, std::span<const float> values, const BlockAxis& axis,
                   std::span<std::uint8_t> scales, std::span<std::uint8_t> elements,
                   const BlockArrayOptions& options) {
  require_valid(values, axis, options);
  require_length("scales", scales.size(), line_count(values.size(), axis) * format.block_count(axis.length),
                 "one for each block");
  require_length("elements", elements.size(), values.size());
  require_apart("scales", std::as_bytes(scales), std::as_bytes(elements));
  for (const auto input : {std::as_bytes(values), std::as_bytes(options.random_bits)}) {
    require_apart("scales", std::as_bytes(scales), input);
    require_apart("elements", std::as_bytes(elements), input);
  }
  in_default_environment([&] {
    round_in_default_environment<std::uint8_t>(format, values, axis, options,
                                               {elements.data(), scales.data()});
  });
}

}  // namespace fp16
