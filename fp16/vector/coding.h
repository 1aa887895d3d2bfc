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
#include "fp16/vector/philox_kernels.h"
#include "fp16/vector/threads.h"

namespace fp16::detail {

const BulkKernels& kernels_of(VectorPath path);
EncodeTarget encode_target(const ArrayFormat& format, const Attributes& attributes);

using Block = std::array<float, block_size>;
using RandomBlock = std::array<std::uint32_t, philox_buffer_size(block_size)>;

/// One widening of codes to floats.
class Decoder {
 public:
  Decoder(const ArrayFormat& format, const BulkKernels& kernels)
      : format_(format),
        kernels_(kernels),
        source_{.width = format.format.width(),
                .trailing_bits = format.format.trailing_bits(),
                .rebias = static_cast<std::uint32_t>(binary32.bias() - format.format.bias())
                          << binary32.trailing_bits(),
                .unit = std::bit_cast<float>(float_bits(format.format.min_subnormal())),
                .special = static_cast<std::uint32_t>(format.format.max_finite_code()) + 1,
                .nan = ~0u},
        is_vectorised_(format.format.has_zero() && narrower_than_binary32(format.format)) {
    if (!format.format.has_negative_zero()) source_.nan = 1u << (format.format.width() - 1);
  }

  template <typename Code>
  void decode(const Code* in, float* out, std::size_t count) const {
    if constexpr (sizeof(Code) == 2) {
      if (format_.format == binary16) return kernels_.half_to_float(in, out, count);
    }
    if (is_vectorised_ && !kernel_of_width(in)(source_, in, out, count)) return;
    for (std::size_t i = 0; i < count; ++i)
      out[i] = format_.decoded != nullptr ? format_.decoded[in[i]] : format_.decode_one(in[i]);
  }

 private:
  DecodeKernel<std::uint8_t> kernel_of_width(const std::uint8_t*) const { return kernels_.decode_8; }
  DecodeKernel<std::uint16_t> kernel_of_width(const std::uint16_t*) const { return kernels_.decode_16; }
  DecodeKernel<std::uint32_t> kernel_of_width(const std::uint32_t*) const { return kernels_.decode_32; }

  const ArrayFormat& format_;
  const BulkKernels& kernels_;
  DecodeSource source_;
  bool is_vectorised_;
};

/// One rounding of floats to a format, with all that has been looked up for it.
class Encoder {
 public:
  Encoder(const ArrayFormat& format, const Attributes& attributes, const BulkKernels& kernels)
      : attributes_(attributes),
        kernels_(kernels),
        target_(encode_target(format, attributes)),
        tiny_(tiny_border(format, attributes)) {
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
        return apply_borders(attributes_, out, count);
      }
    }
    const auto direction = static_cast<std::size_t>(attributes_.rounding);
    if (kernels_of_width(out)[direction](target_, in, random, out, count))
      write_nans(target_, in, out, count);
  }

  const EncodeKernels<std::uint8_t>& kernels_of_width(const std::uint8_t*) const { return kernels_.encode_8; }
  const EncodeKernels<std::uint16_t>& kernels_of_width(const std::uint16_t*) const {
    return kernels_.encode_16;
  }
  const EncodeKernels<std::uint32_t>& kernels_of_width(const std::uint32_t*) const {
    return kernels_.encode_32;
  }

  Attributes attributes_;
  const BulkKernels& kernels_;
  EncodeTarget target_;
  RoundingBorder tiny_;
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
