#include "tools/halflab/quantize/quantized.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <span>
#include <type_traits>

#include "experiments/frame/crc32.h"
#include "fp16/block_arrays.h"
#include "fp16/bulk.h"
#include "fp16/packed.h"
#include "tools/halflab/elements.h"
#include "tools/halflab/formats.h"

namespace halflab::quantize {
namespace {

namespace files = experiments::tensor_files;

/// Elements of a line of the last dimension; of a single number 1.
std::size_t line_length(const files::StoredTensor& tensor) {
  return tensor.shape.empty() ? 1 : static_cast<std::size_t>(tensor.shape.back());
}

std::size_t line_count(const files::StoredTensor& tensor) {
  const std::size_t length = line_length(tensor);
  return length == 0 ? 0 : static_cast<std::size_t>(tensor.elements) / length;
}

/// The shape with another last dimension.
files::Shape with_lines_of(const files::StoredTensor& tensor, std::size_t length) {
  files::Shape shape = tensor.shape;
  if (shape.empty()) shape.push_back(1);
  shape.back() = length;
  return shape;
}

bool is_packed(const fp16::Format& element) {
  return element.width() < 8;
}

/// Random bits of a tensor depend on the seed, its name and the place of a value alone.
fp16::PhiloxSequence random_of(const files::StoredTensor& tensor, const Recipe& recipe) {
  return {
      .generator = {.key = recipe.seed, .stream = experiments::crc32(std::as_bytes(std::span(tensor.name)))}};
}

/// The codes as a file has them: of 4 and 6 bits each line apart.
std::vector<std::byte> file_bytes(std::span<const std::uint8_t> codes, const files::StoredTensor& tensor,
                                  const fp16::Format& element, int threads) {
  const std::size_t length = line_length(tensor), lines = line_count(tensor),
                    bytes = fp16::packed_bytes(length, element.width());
  std::vector<std::byte> packed(lines * bytes);
  const std::span out(reinterpret_cast<std::uint8_t*>(packed.data()), packed.size());
  if (!is_packed(element)) {
    std::ranges::copy(codes, out.begin());
  } else if (length * static_cast<std::size_t>(element.width()) % 8 == 0) {
    fp16::pack(codes, out, element.width(), {.threads = threads});
  } else {
    for (std::size_t line = 0; line < lines; ++line)
      fp16::pack(codes.subspan(line * length, length), out.subspan(line * bytes, bytes), element.width());
  }
  return packed;
}

/// Elements that a consumer takes at one time; a multiple of all block sizes.
constexpr std::size_t run_length = 1 << 12;

/// The values of all codes of a format of up to 8 bits.
template <const fp16::Format& F>
std::array<double, 256> all_values() {
  std::array<double, 256> values{};
  for (std::size_t code = 0; code < std::size_t{1} << F.width(); ++code)
    values[code] = fp16::decode<F>(static_cast<fp16::Bits<F>>(code));
  return values;
}

/// Blocks of one format, line after line.
template <const fp16::BlockFormat& B>
class BlockEncoding {
 public:
  BlockEncoding(const files::StoredTensor& tensor, const Recipe& recipe, int threads)
      : tensor_(tensor), recipe_(recipe), threads_(threads), values_(floats_of(tensor)) {
    if (format_of(tensor) == fp16::binary64) of_binary64_ = doubles_of(tensor);
  }

  Quantized quantized(const ValueConsumer& consume) {
    Quantized result;
    if constexpr (B.has_tensor_scale)
      result.tensor_scale = fp16::tensor_scale<B>(fp16::absolute_maximum(values_));
    const float scale = result.tensor_scale.value_or(1);
    std::vector<std::uint8_t> elements(values_.size());
    result.scales.resize(line_count(tensor_) * B.block_count(length_));
    encode(result.scales, elements, scale);
    decode(result, elements, consume);
    result.codes = file_bytes(elements, tensor_, B.element, threads_);
    return result;
  }

 private:
  void encode(std::span<std::uint8_t> scales, std::span<std::uint8_t> elements, float tensor_scale) const {
    const bool is_stochastic = recipe_.rounding == fp16::Rounding::stochastic;
    if (is_stochastic || recipe_.rounding == fp16::Rounding::nearest_even) {
      fp16::BlockArrayOptions options{
          .scale_rule = recipe_.scale_rule, .tensor_scale = tensor_scale, .threads = threads_};
      if (is_stochastic) options.random = random_of(tensor_, recipe_);
      if (!values_.empty()) fp16::encode_blocks(B, values_, {.length = length_}, scales, elements, options);
      return;
    }
    const std::size_t blocks = B.block_count(length_);
    for (std::size_t line = 0; line < line_count(tensor_); ++line)
      fp16::encode_blocks<B>(std::span(values_).subspan(line * length_, length_),
                             scales.subspan(line * blocks, blocks), elements.subspan(line * length_, length_),
                             {.scale_rule = recipe_.scale_rule,
                              .tensor_scale = tensor_scale,
                              .element = {.rounding = recipe_.rounding}});
  }

  /// As fp16::decode_element has it: products of at most 4 + 4 + 24 digits, which binary64 holds.
  void decode(Quantized& result, std::span<const std::uint8_t> elements, const ValueConsumer& consume) const {
    static const std::array<double, 256> element_values = all_values<B.element>(),
                                         scale_values = all_values<B.scale>();
    const double tensor_scale = result.tensor_scale.value_or(1);
    const std::size_t blocks = B.block_count(length_);
    std::vector<double> values(run_length), decoded(run_length);
    for (std::size_t line = 0; line < line_count(tensor_); ++line) {
      for (std::size_t first = 0; first < length_; first += run_length) {
        const std::size_t count = std::min(run_length, length_ - first);
        for (std::size_t i = 0; i < count; ++i) {
          const std::size_t place = line * length_ + first + i;
          const double scale =
              scale_values[result.scales[line * blocks + (first + i) / B.block_size]] * tensor_scale;
          values[i] = of_binary64_.empty() ? values_[place] : of_binary64_[place];
          decoded[i] = element_values[elements[place]] * scale;
          const double magnitude = std::fabs(values[i]), largest = B.element.max() * scale;
          result.overflowed += std::isfinite(values[i]) && largest > 0 && magnitude > largest;
        }
        consume(std::span(values).first(count), std::span(decoded).first(count));
      }
    }
  }

  const files::StoredTensor& tensor_;
  const Recipe& recipe_;
  int threads_;
  std::vector<float> values_;
  std::vector<double> of_binary64_;  ///< before they are rounded to `values_`
  std::size_t length_ = line_length(tensor_);
};

/// The scale that makes the largest finite magnitude the format's: the nearest binary32, or the next one where by the nearest
/// one a value would overflow, and binary32's largest where that is too small. 1 where all is zero.
template <const fp16::Format& F>
float scalar_scale(std::span<const double> values, fp16::Rounding rounding) {
  double smallest = 0, largest = 0;
  for (const double value : values) {
    if (!std::isfinite(value)) continue;
    smallest = std::min(smallest, value);
    largest = std::max(largest, value);
  }
  if (largest == smallest) return 1.0f;
  constexpr float most = std::numeric_limits<float>::max();
  const auto scale = static_cast<float>(std::min<double>(std::max(-smallest, largest) / F.max(), most));
  // Stochastic rounding may go either way.
  const bool is_random = rounding == fp16::Rounding::stochastic;
  const auto overflows = [&](double value, fp16::Rounding outwards) {
    const double scaled = value == 0 ? 0 : value / scale;
    const auto flags = fp16::encode<F>(scaled, {.rounding = is_random ? outwards : rounding}).flags;
    return flags.overflow || std::isinf(scaled);
  };
  const bool is_too_small = overflows(smallest, fp16::Rounding::toward_negative) ||
                            overflows(largest, fp16::Rounding::toward_positive);
  return is_too_small ? std::nextafter(scale, most) : scale;
}

/// A cast of numbers that are read as `Number`.
template <const fp16::Format& F, class Number>
class Cast {
 public:
  Cast(const files::StoredTensor& tensor, const Recipe& recipe, int threads)
      : tensor_(tensor), recipe_(recipe), threads_(threads) {
    if constexpr (std::is_same_v<Number, double>) {
      values_ = doubles_of(tensor);
    } else {
      values_ = floats_of(tensor);
    }
  }

  Quantized quantized(const ValueConsumer& consume) {
    Quantized result;
    if constexpr (std::is_same_v<Number, double>) {
      if (recipe_.per_tensor_scale) result.tensor_scale = scalar_scale<F>(values_, recipe_.rounding);
    }
    const double scale = result.tensor_scale.value_or(1);
    std::vector<fp16::Bits<F>> codes(values_.size());
    result.overflowed = encode(codes, scale);
    decode(codes, scale, consume);
    if constexpr (sizeof(fp16::Bits<F>) == 1) {
      result.codes = file_bytes(codes, tensor_, F, threads_);
    } else {
      const auto bytes = std::as_bytes(std::span(codes));
      result.codes.assign(bytes.begin(), bytes.end());
    }
    return result;
  }

 private:
  /// How many finite values overflow.
  std::uint64_t encode(std::span<fp16::Bits<F>> codes, double scale) const {
    const fp16::Attributes attributes{.rounding = recipe_.rounding, .saturate = recipe_.saturate};
    fp16::RoundingCounts counts;
    fp16::ArrayOptions options{.threads = threads_, .counts = &counts};
    if (recipe_.rounding == fp16::Rounding::stochastic) options.random = random_of(tensor_, recipe_);
    if constexpr (std::is_same_v<Number, double>) {
      // Rounded to 53 digits, of which the quotient of two numbers of 24 needs 50 to be rounded as if at once.
      std::vector<std::uint64_t> bits(values_.size());
      std::ranges::transform(values_, bits.begin(),
                             [scale](double value) { return std::bit_cast<std::uint64_t>(value / scale); });
      fp16::convert<F, fp16::binary64>(std::span<const std::uint64_t>(bits), codes, attributes, options);
    } else {
      fp16::encode<F>(std::span<const float>(values_), codes, attributes, options);
    }
    // An infinity raises overflow where it does not stay one.
    const auto is_infinite = [](Number value) { return std::isinf(value); };
    const bool keeps_infinities = F.has_infinity() && !recipe_.saturate;
    return counts.overflowed -
           (keeps_infinities ? 0 : static_cast<std::uint64_t>(std::ranges::count_if(values_, is_infinite)));
  }

  void decode(std::span<const fp16::Bits<F>> codes, double scale, const ValueConsumer& consume) const {
    std::vector<double> values(run_length), decoded(run_length);
    for (std::size_t first = 0; first < codes.size(); first += run_length) {
      const std::size_t count = std::min(run_length, codes.size() - first);
      for (std::size_t i = 0; i < count; ++i) {
        values[i] = values_[first + i];
        decoded[i] = fp16::decode<F>(codes[first + i]) * scale;
      }
      consume(std::span(values).first(count), std::span(decoded).first(count));
    }
  }

  const files::StoredTensor& tensor_;
  const Recipe& recipe_;
  int threads_;
  std::vector<Number> values_;
};

}  // namespace

Quantized quantize(const files::StoredTensor& tensor, const Recipe& recipe, int threads,
                   const ValueConsumer& consume) {
  Quantized result;
  if (recipe.block == nullptr) {
    return with_format(*recipe.scalar, [&]<const fp16::Format & F>() {
      const bool needs_doubles = recipe.per_tensor_scale || format_of(tensor) == fp16::binary64;
      return needs_doubles ? Cast<F, double>(tensor, recipe, threads).quantized(consume)
                           : Cast<F, float>(tensor, recipe, threads).quantized(consume);
    });
  }
  fp16::for_each_block_format([&]<const fp16::BlockFormat & B>() {
    if (&B == recipe.block) result = BlockEncoding<B>(tensor, recipe, threads).quantized(consume);
  });
  return result;
}

std::vector<files::TensorToWrite> parts_of(const files::StoredTensor& tensor, const Quantized& quantized,
                                           const Recipe& recipe) {
  const fp16::Format& element = recipe.element();
  std::vector<files::TensorToWrite> parts;
  if (is_packed(element)) {
    const std::size_t bytes = fp16::packed_bytes(line_length(tensor), element.width());
    parts.push_back(
        {tensor.name, files::type_of_safetensors("U8"), with_lines_of(tensor, bytes), quantized.codes});
  } else {
    parts.push_back(
        {tensor.name, files::type_of_format(fp16::name_of(element)), tensor.shape, quantized.codes});
  }
  if (recipe.block != nullptr)
    parts.push_back({tensor.name + "_scale", files::type_of_format(fp16::name_of(recipe.block->scale)),
                     with_lines_of(tensor, recipe.block->block_count(line_length(tensor))),
                     std::as_bytes(std::span(quantized.scales))});
  if (quantized.tensor_scale)
    parts.push_back({tensor.name + (recipe.block != nullptr ? "_scale_2" : "_scale"),
                     files::type_of_safetensors("F32"),
                     {},
                     std::as_bytes(std::span(&*quantized.tensor_scale, 1))});
  return parts;
}

}  // namespace halflab::quantize
