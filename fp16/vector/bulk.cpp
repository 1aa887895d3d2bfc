#include "fp16/bulk.h"

#include <algorithm>
#include <mutex>
#include <stdexcept>
#include <string>
#include <type_traits>

#include "fp16/vector/random_bits.h"

namespace fp16 {
namespace detail {
namespace {

const BulkKernels& kernels_of(VectorPath path) {
  require_available(path);
  switch (path) {
#ifdef __x86_64__
    case VectorPath::avx512:
      return avx512_bulk_kernels;
    case VectorPath::avx2_f16c:
      return avx2_bulk_kernels;
#endif
    default:
      return portable_bulk_kernels;
  }
}

std::uint32_t bits_of(double value) {
  return std::bit_cast<std::uint32_t>(static_cast<float>(value));
}

/// Magnitudes, as the bits of floats, that part the outcomes of rounding to a format.
struct CountBorders {
  std::uint32_t min_normal;
  std::uint32_t overflow[2];  ///< from here on positive, negative numbers overflow
  std::uint32_t not_a_loss;   ///< from here on the result stands for the input: a NaN, an infinity held
  std::uint32_t
      by_chance;  ///< from here on to `overflow` what overflows is drawn; of stochastic rounding alone
};

CountBorders count_borders(const ArrayFormat& format, const Attributes& attributes) {
  const bool holds_infinity = format.format.has_infinity() && !attributes.saturate;
  CountBorders borders{.min_normal = bits_of(format.format.min_normal()),
                       .overflow = {},
                       .not_a_loss = infinity_bits<binary32> + !holds_infinity,
                       .by_chance = infinity_bits<binary32>};
  // Overflow begins right above the largest number, at or above the midpoint of it and what would be its
  // successor, or at that.
  const std::uint32_t max = bits_of(format.format.max());
  const std::uint32_t half_ulp = 1u << (binary32.trailing_bits() - format.format.trailing_bits() - 1);
  if (attributes.rounding == Rounding::stochastic) {
    borders.overflow[0] = borders.overflow[1] = max + 2 * half_ulp;
    borders.by_chance = max + 1;
    return borders;
  }
  for (const bool negative : {false, true}) {
    for (const std::uint32_t above : {1u, half_ulp, half_ulp + 1, 2 * half_ulp}) {
      borders.overflow[negative] = max + above;
      const float value = std::bit_cast<float>(with_sign<binary32>(max + above, negative));
      if (format.encode_one(value, attributes).overflow) break;
    }
  }
  return borders;
}

// 1 or 0, by arithmetic: a comparison may become a jump, which would keep a loop scalar.

/// 1 where a < b, else 0; for numbers below 2^31.
std::uint32_t is_less(std::uint32_t a, std::uint32_t b) {
  return (a - b) >> 31;
}
std::uint32_t is_nonzero(std::uint32_t a) {
  return (a | (0 - a)) >> 31;
}

/// `widened` holds the rounded values; `count` must be below 2^32, which keeps the sums in vector lanes.
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

/// How many numbers of a block right above the largest were drawn to overflow. There are few, if any.
std::size_t count_overflows_by_chance(const ArrayFormat& format, Attributes attributes, const float* in,
                                      const std::uint32_t* random, std::size_t count,
                                      const CountBorders& borders) {
  std::size_t overflows = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint32_t magnitude = std::bit_cast<std::uint32_t>(in[i]) & 0x7fffffff;
    if (magnitude < borders.by_chance || magnitude >= borders.overflow[0]) continue;
    attributes.random_bits = random[i];
    overflows += format.encode_one(in[i], attributes).overflow;
  }
  return overflows;
}

EncodeTarget encode_target(const ArrayFormat& format, const Attributes& attributes) {
  Attributes deterministic = attributes;
  if (attributes.rounding == Rounding::stochastic) deterministic.rounding = Rounding::nearest_even;
  const Format& f = format.format;
  EncodeTarget target{.width = f.width(),
                      .trailing_bits = f.trailing_bits(),
                      .emin = f.emin() + binary32.bias(),
                      .max_finite = static_cast<std::uint32_t>(f.max_finite_code()),
                      .infinite = {},
                      .overflowed = {},
                      .sign_of_zero = f.has_negative_zero() ? ~0u : 0u};
  for (const bool negative : {false, true}) {
    const auto code_of = [&](std::uint32_t magnitude) {
      return format.encode_one(std::bit_cast<float>(with_sign<binary32>(magnitude, negative)), deterministic)
          .code;
    };
    target.infinite[negative] = code_of(infinity_bits<binary32>);
    target.overflowed[negative] = code_of(max_finite_bits<binary32>);
  }
  return target;
}

template <typename Code>
void decode_block(const ArrayFormat& format, const BulkKernels& kernels, const Code* in, float* out,
                  std::size_t count) {
  if constexpr (sizeof(Code) == 2) {
    if (format.format == binary16) return kernels.half_to_float(in, out, count);
  }
  for (std::size_t i = 0; i < count; ++i)
    out[i] = format.decoded != nullptr ? format.decoded[in[i]] : format.decode_one(in[i]);
}

/// The canonical NaN policies, and everything else that F16C does in another way.
bool f16c_rounds(const Format& format, const Attributes& attributes) {
  return format == binary16 && !attributes.saturate && attributes.nan_policy == NanPolicy::first_operand;
}

/// One rounding of floats to a format, with all that has been looked up for it.
class Encoder {
 public:
  Encoder(const ArrayFormat& format, const Attributes& attributes, const ArrayOptions& options)
      : format_(format),
        attributes_(attributes),
        kernels_(kernels_of(options.path)),
        target_(encode_target(format, attributes)) {
    if (!f16c_rounds(format.format, attributes)) return;
    if (attributes.rounding == Rounding::stochastic) {
      float_to_half_stochastic_ = kernels_.float_to_half_stochastic;
    } else {
      float_to_half_ = kernels_.float_to_half[static_cast<std::size_t>(attributes.rounding)];
    }
  }

  /// `random` is null unless the rounding is stochastic.
  template <typename Code>
  void encode(const float* in, const std::uint32_t* random, Code* out, std::size_t count) const {
    if constexpr (sizeof(Code) == 2) {
      if (float_to_half_ != nullptr) return float_to_half_(in, out, count);
      if (float_to_half_stochastic_ != nullptr) return float_to_half_stochastic_(in, random, out, count);
    }
    const auto direction = static_cast<std::size_t>(attributes_.rounding);
    if (!kernels_of_width(out)[direction](target_, in, random, out, count)) return;
    for (std::size_t i = 0; i < count; ++i) {
      if (in[i] != in[i]) out[i] = static_cast<Code>(format_.encode_one(in[i], attributes_).code);
    }
  }

 private:
  const EncodeKernels<std::uint8_t>& kernels_of_width(const std::uint8_t*) const { return kernels_.encode_8; }
  const EncodeKernels<std::uint16_t>& kernels_of_width(const std::uint16_t*) const {
    return kernels_.encode_16;
  }
  const EncodeKernels<std::uint32_t>& kernels_of_width(const std::uint32_t*) const {
    return kernels_.encode_32;
  }

  const ArrayFormat& format_;
  Attributes attributes_;
  const BulkKernels& kernels_;
  EncodeTarget target_;
  void (*float_to_half_)(const float*, std::uint16_t*, std::size_t) = nullptr;
  void (*float_to_half_stochastic_)(const float*, const std::uint32_t*, std::uint16_t*,
                                    std::size_t) = nullptr;
};

/// Calls work(begin, count, counts) for blocks of every thread's part; what the blocks counted is added up.
template <typename Work>
void for_each_block(std::size_t size, const ArrayOptions& options, Work work) {
  std::mutex mutex;
  for_each_part(size, options.threads, block_size, [&](std::size_t begin, std::size_t end) {
    RoundingCounts counts;
    for (; begin < end; begin += block_size) work(begin, std::min(block_size, end - begin), counts);
    if (options.counts == nullptr) return;
    const std::scoped_lock lock(mutex);
    *options.counts += counts;
  });
}

using Block = std::array<float, block_size>;
using RandomBlock = std::array<std::uint32_t, philox_buffer_size(block_size)>;

/// use(pointer to the integers that hold codes of `format`)
template <typename Void, typename Use>
void with_codes(const Format& format, Void* codes, Use use) {
  const auto use_as = [&]<typename Code>(Code) {
    use(static_cast<std::conditional_t<std::is_const_v<Void>, const Code, Code>*>(codes));
  };
  switch (format.size_bytes()) {
    case 1:
      return use_as(std::uint8_t{});
    case 2:
      return use_as(std::uint16_t{});
    default:
      return use_as(std::uint32_t{});
  }
}

/// Encodes `size` floats, of which load(begin, count, buffer) gives each block.
template <typename Load>
void encode_loaded(const ArrayFormat& format, std::size_t size, Load load, void* out,
                   const Attributes& attributes, const ArrayOptions& options) {
  const Encoder encoder(format, attributes, options);
  const BulkKernels& kernels = kernels_of(options.path);
  const bool counting = options.counts != nullptr;
  const CountBorders borders = counting ? count_borders(format, attributes) : CountBorders{};
  const bool stochastic = attributes.rounding == Rounding::stochastic;
  const RandomBits random(options.random_bits_32, options.random, options.path);
  with_codes(format.format, out, [&](auto* codes) {
    for_each_block(size, options, [&](std::size_t begin, std::size_t count, RoundingCounts& counts) {
      Block buffer;
      const float* floats = load(begin, count, buffer);
      RandomBlock drawn;
      const std::uint32_t* bits = stochastic ? random.from(begin, count, drawn.data()) : nullptr;
      encoder.encode(floats, bits, codes + begin, count);
      if (!counting) return;
      Block widened;
      decode_block(format, kernels, codes + begin, widened.data(), count);
      counts += count_roundings(floats, widened.data(), count, borders);
      if (!stochastic) return;
      const std::size_t by_chance =
          count_overflows_by_chance(format, attributes, floats, bits, count, borders);
      counts.inexact -= by_chance;
      counts.overflowed += by_chance;
    });
  });
}

/// Codes to codes by way of floats rounded to odd, which are left in `exact`.
void operate_by_odd(HalfOperation operation, const BulkKernels& kernels, const Encoder& encoder,
                    const std::uint16_t* const* operands, std::uint16_t* out, std::size_t count,
                    Block& exact) {
  std::array<Block, 3> widened;
  const float* floats[3];
  for (std::size_t k = 0; k < 3; ++k) {
    const bool repeated = k > 0 && operands[k] == operands[k - 1];
    if (!repeated) kernels.half_to_float(operands[k], widened[k].data(), count);
    floats[k] = repeated ? floats[k - 1] : widened[k].data();
  }
  kernels.to_odd[static_cast<std::size_t>(operation)](floats[0], floats[1], floats[2], exact.data(), count);
  encoder.encode(exact.data(), nullptr, out, count);
}

/// Whether the vectorised result may differ from the scalar one: payloads of NaNs, and the sign of an exact
/// zero sum, which is negative toward_negative.
bool needs_redoing(std::uint16_t code, Rounding rounding) {
  return is_nan<binary16>(code) || (rounding == Rounding::toward_negative && is_zero<binary16>(code));
}

bool any_needs_redoing(std::span<const std::uint16_t> codes, Rounding rounding) {
  std::uint16_t largest = 0, smallest = infinity_bits<binary16>;
  for (const std::uint16_t code : codes) {
    const std::uint16_t magnitude = code & 0x7fff;
    largest = std::max(largest, magnitude);
    smallest = std::min(smallest, magnitude);
  }
  return needs_redoing(largest, rounding) || needs_redoing(smallest, rounding);
}

}  // namespace

void require_length(const char* name, std::size_t size, std::size_t expected) {
  if (size == expected) return;
  throw std::invalid_argument(std::string(name) + ": has " + std::to_string(size) + " elements; must have " +
                              std::to_string(expected) + ", as the other arrays");
}

void require_random_bits(const Attributes& attributes, const ArrayOptions& options, std::size_t count) {
  if (attributes.rounding != Rounding::stochastic) return;
  const int given =
      options.random.has_value() + !options.random_bits_32.empty() + !options.random_bits_64.empty();
  if (given > 1)
    throw std::invalid_argument("random_bits_32, random_bits_64, random: " + std::to_string(given) +
                                " are given; one of them is allowed");
  if (options.random) return;
  const bool wide = !options.random_bits_64.empty();
  require_length(wide ? "random_bits_64" : "random_bits_32",
                 wide ? options.random_bits_64.size() : options.random_bits_32.size(), count);
}

void encode_array(const ArrayFormat& format, std::span<const float> in, void* out,
                  const Attributes& attributes, const ArrayOptions& options) {
  const auto load = [&](std::size_t begin, std::size_t, Block&) { return in.data() + begin; };
  encode_loaded(format, in.size(), load, out, attributes, options);
}

void decode_array(const ArrayFormat& format, const void* in, std::span<float> out,
                  const ArrayOptions& options) {
  const BulkKernels& kernels = kernels_of(options.path);
  with_codes(format.format, in, [&](const auto* codes) {
    for_each_part(out.size(), options.threads, block_size, [&](std::size_t begin, std::size_t end) {
      decode_block(format, kernels, codes + begin, out.data() + begin, end - begin);
    });
  });
}

void convert_array(const ArrayFormat& from, const void* in, std::size_t size, const ArrayFormat& to,
                   void* out, const Attributes& attributes, const ArrayOptions& options) {
  const BulkKernels& kernels = kernels_of(options.path);
  with_codes(from.format, in, [&](const auto* codes) {
    const auto load = [&](std::size_t begin, std::size_t count, Block& buffer) {
      decode_block(from, kernels, codes + begin, buffer.data(), count);
      return static_cast<const float*>(buffer.data());
    };
    encode_loaded(to, size, load, out, attributes, options);
  });
}

void operate_array(HalfOperation operation, ScalarHalfOperation scalar, const std::uint16_t* const* operands,
                   std::span<std::uint16_t> out, const Attributes& attributes, const ArrayOptions& options) {
  const BulkKernels& kernels = kernels_of(options.path);
  const Encoder encoder(array_format<binary16>, {.rounding = attributes.rounding}, options);
  const bool counting = options.counts != nullptr;
  const CountBorders borders = counting ? count_borders(array_format<binary16>, attributes) : CountBorders{};
  const NearestEvenKernel direct = attributes.rounding == Rounding::nearest_even && !counting
                                       ? kernels.nearest_even[static_cast<std::size_t>(operation)]
                                       : nullptr;
  for_each_block(out.size(), options, [&](std::size_t begin, std::size_t count, RoundingCounts& counts) {
    const std::uint16_t* const block[]{operands[0] + begin, operands[1] + begin, operands[2] + begin};
    if (direct != nullptr) {
      const bool redo_nans = direct(block[0], block[1], block[2], out.data() + begin, count);
      if (!redo_nans && attributes.nan_policy == NanPolicy::first_operand) return;
    } else {
      Block exact;
      operate_by_odd(operation, kernels, encoder, block, out.data() + begin, count, exact);
      if (counting) {
        Block widened;
        kernels.half_to_float(out.data() + begin, widened.data(), count);
        counts += count_roundings(exact.data(), widened.data(), count, borders);
      }
    }
    if (!any_needs_redoing(out.subspan(begin, count), attributes.rounding)) return;
    for (std::size_t i = 0; i < count; ++i) {
      std::uint16_t& code = out[begin + i];
      if (needs_redoing(code, attributes.rounding))
        code = scalar(block[0][i], block[1][i], block[2][i], attributes).bits;
    }
  });
}

}  // namespace detail

void float_to_half(std::span<const float> in, std::span<std::uint16_t> out, const Attributes& attributes,
                   const ArrayOptions& options) {
  encode<binary16>(in, out, attributes, options);
}

void half_to_float(std::span<const std::uint16_t> in, std::span<float> out, const ArrayOptions& options) {
  decode<binary16>(in, out, options);
}

}  // namespace fp16
