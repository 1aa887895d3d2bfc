#pragma once
/// Blocks of floats to codes and back, by the kernels of a path. Internal to bulk.

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <type_traits>

#include "fp16/bulk.h"
#include "fp16/vector/borders.h"
#include "fp16/vector/outcomes.h"
#include "fp16/vector/philox_kernels.h"
#include "fp16/vector/random_bits.h"
#include "fp16/vector/threads.h"

namespace fp16::detail {

const BulkKernels& kernels_of(VectorPath path);
/// All but what becomes of NaNs, which few arrays have.
EncodeTarget encode_target(const ArrayFormat& format, const Attributes& attributes);
EncodeTarget with_nans(EncodeTarget target, const ArrayFormat& format, const Attributes& attributes);

using Block = std::array<float, block_size>;
using RandomBlock = std::array<std::uint32_t, philox_buffer_size(block_size)>;

/// One widening of codes to floats. Codes of at most 8 bits go by way of binary16 where their format allows it, and by
/// a table where it or one of them does not.
class Decoder {
 public:
  Decoder(const ArrayFormat& format, const BulkKernels& kernels);

  template <typename Code>
  void decode(const Code* in, float* out, std::size_t count) const {
    if constexpr (sizeof(Code) == 1) {
      if (format_.format == e8m0) return kernels_.decode_e8m0(in, out, count);
      if (decode_small_ != nullptr && !decode_small_(small_source_, in, out, count)) return;
    } else if (is_vectorised_) {
      if constexpr (sizeof(Code) == 2) {
        if (format_.format == binary16) return kernels_.half_to_float(in, out, count);
        if (!kernels_.decode_16(source_, in, out, count)) return;
      } else {
        if (!kernels_.decode_32(source_, in, out, count)) return;
      }
    }
    if (const float* const decoded = format_.decoded; decoded != nullptr) {
      for (std::size_t i = 0; i < count; ++i) out[i] = decoded[in[i]];
    } else {
      for (std::size_t i = 0; i < count; ++i) out[i] = format_.decode_one(in[i]);
    }
  }

 private:
  const ArrayFormat& format_;
  const BulkKernels& kernels_;
  DecodeSource source_;
  SmallSource small_source_;
  DecodeSmallKernel decode_small_ = nullptr;
  bool is_vectorised_;
};

/// One rounding of floats to a format, with all that has been looked up for it.
class Encoder {
 public:
  Encoder(const ArrayFormat& format, const Attributes& attributes, const BulkKernels& kernels)
      : format_(format),
        attributes_(attributes),
        kernels_(kernels),
        target_(encode_target(format, attributes)),
        tiny_(attributes.flush_to_zero ? tiny_border(format, attributes) : RoundingBorder{}) {
    if (format.format != binary16) return;
    if (attributes.rounding == Rounding::stochastic) {
      float_to_half_stochastic_ = kernels_.float_to_half_stochastic;
    } else {
      float_to_half_ = kernels_.float_to_half[static_cast<std::size_t>(attributes.rounding)];
    }
  }

  /// `random` is null unless the rounding is stochastic.
  template <typename Code>
  void encode(const float* in, const std::uint32_t* random, Code* out, std::size_t count) const {
    round(in, random, out, count);
    if (!attributes_.flush_to_zero) return;
    const auto sign =
        static_cast<std::uint32_t>(std::uint64_t{1} << (target_.width - 1)) & target_.sign_of_zero;
    flush_tiny(tiny_, sign, in, random, out, count);
  }

 private:
  template <typename Code>
  void round(const float* in, const std::uint32_t* random, Code* out, std::size_t count) const {
    if constexpr (sizeof(Code) == 2) {
      if (float_to_half_ != nullptr || float_to_half_stochastic_ != nullptr) {
        if (float_to_half_ != nullptr) {
          float_to_half_(in, out, count);
        } else {
          float_to_half_stochastic_(in, random, out, count);
        }
        apply_borders(attributes_, out, count);
        return;
      }
    }
    const auto direction = static_cast<std::size_t>(attributes_.rounding);
    if (kernels_of_width(out)[direction](target_, in, random, out, count))
      write_nans(with_nans(target_, format_, attributes_), in, out, count);
  }

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
  RoundingBorder tiny_;
  void (*float_to_half_)(const float*, std::uint16_t*, std::size_t) = nullptr;
  void (*float_to_half_stochastic_)(const float*, const std::uint32_t*, std::uint16_t*,
                                    std::size_t) = nullptr;
};

/// Calls work(begin, count, outcomes) for blocks of every thread's part; those of the parts are united.
template <typename Work>
void for_each_block(std::size_t size, const ArrayOptions& options, Work work) {
  std::mutex mutex;
  for_each_part(size, options.threads, block_size, [&](std::size_t begin, std::size_t end) {
    Outcomes outcomes;
    for (; begin < end; begin += block_size) work(begin, std::min(block_size, end - begin), outcomes);
    const std::scoped_lock lock(mutex);
    if (options.counts != nullptr) *options.counts += outcomes.counts;
    if (options.flags != nullptr) *options.flags |= outcomes.flags;
  });
}

/// Floats that come from an array as they are.
class ArrayOfFloats {
 public:
  explicit ArrayOfFloats(const float* floats) : floats_(floats) {}
  const float* load(std::size_t begin, std::size_t, Block&) const { return floats_ + begin; }
  bool has_signalling_nan(std::size_t begin, std::size_t count) const {
    return detail::has_signalling_nan(floats_ + begin, count);
  }

 private:
  const float* floats_;
};

/// Encodes `size` numbers of `from`, of which in.load(begin, count, buffer) gives each block. Codes are written to
/// out.room_for(begin, buffer), and then out.put.
template <typename Code, typename In, typename Out>
void encode_each(const ArrayFormat& format, const Format& from, std::size_t size, const In& in,
                 const Out& out, const Attributes& attributes, const ArrayOptions& options) {
  const Encoder encoder(format, attributes, kernels_of(options.path));
  const OutcomeFinder finder(format, attributes, options);
  const bool stochastic = attributes.rounding == Rounding::stochastic;
  const RandomBits random(options.random_bits_32, options.random, options.path);
  for_each_block(size, options, [&](std::size_t begin, std::size_t count, Outcomes& outcomes) {
    Block buffer;
    const float* floats = in.load(begin, count, buffer);
    if (attributes.denormals_are_zero) {
      read_subnormals_as_zeros(from, floats, buffer.data(), count);
      floats = buffer.data();
    }
    RandomBlock drawn;
    const std::uint32_t* bits = stochastic ? random.from(begin, count, drawn.data()) : nullptr;
    // Floats that are converted where they stand are gone afterwards: they are looked at before.
    const Extremes extremes = finder.is_needed() ? extremes_of(floats, count) : Extremes{};
    if (finder.finds_flags() && extremes.largest > infinity_bits<binary32> && !outcomes.flags.invalid)
      outcomes.flags.invalid = !format.format.has_nan() || in.has_signalling_nan(begin, count);
    std::array<Code, block_size> code_buffer;
    Code* const codes = out.room_for(begin, code_buffer.data());
    encoder.encode(floats, bits, codes, count);
    out.put(codes, begin, count);
    if (!finder.is_needed()) return;
    finder.find(extremes, floats, codes, count, outcomes, [&](std::size_t i) {
      Attributes each = attributes;
      each.random_bits = bits[i];
      return format.encode_one(floats[i], each);
    });
  });
}

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

}  // namespace fp16::detail
