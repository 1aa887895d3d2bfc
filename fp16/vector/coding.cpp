#include "fp16/vector/coding.h"

#include <algorithm>
#include <bit>

namespace fp16::detail {

const BulkKernels& kernels_of(VectorPath path) {
  require_available(path);
  switch (path) {
#ifdef __x86_64__
    case VectorPath::avx512:
      return avx512_bulk_kernels;
    case VectorPath::avx2_f16c:
      return avx2_bulk_kernels;
#elif defined(__aarch64__)
    case VectorPath::neon_fp16:
      return neon_fp16_bulk_kernels;
    case VectorPath::neon:
      return neon_bulk_kernels;
#endif
    default:
      return portable_bulk_kernels;
  }
}

namespace {

std::uint32_t code_of(const ArrayFormat& format, Attributes attributes, std::uint32_t magnitude,
                      bool negative) {
  if (attributes.rounding == Rounding::stochastic) attributes.rounding = Rounding::nearest_even;
  return format.encode_one(std::bit_cast<float>(with_sign<binary32>(magnitude, negative)), attributes).code;
}

DecodeSource decode_source(const Format& format) {
  return {.width = format.width(),
          .trailing_bits = format.trailing_bits(),
          .rebias = static_cast<std::uint32_t>(binary32.bias() - format.bias()) << binary32.trailing_bits(),
          .unit = std::bit_cast<float>(float_bits(format.min_subnormal())),
          .special = static_cast<std::uint32_t>(format.max_finite_code()) + 1,
          .nan = format.has_negative_zero() ? ~0u : 1u << (format.width() - 1)};
}

/// Whether codes shifted to where binary16 has its exponents are numbers of binary16, but for a power of two.
bool is_within_halves(const Format& format) {
  return format.has_zero() && format.width() <= 8 && format.exponent_bits <= binary16.exponent_bits;
}

SmallSource small_source(const Format& format) {
  const int width = format.width(), shift = binary16.trailing_bits() - format.trailing_bits();
  const auto largest = static_cast<std::uint32_t>(format.max_finite_code() << shift);
  // Infinities and NaNs that binary16 has where this format has them are not special.
  const bool is_shortened_half = format.has_infinity() && format.exponent_bits == binary16.exponent_bits;
  const std::uint32_t special = std::min(largest + (1u << shift), std::uint32_t{infinity_bits<binary16>});
  return {.to_magnitude = static_cast<std::uint16_t>(1u << shift),
          .to_sign = static_cast<std::uint16_t>(1u << (binary16.width() - width)),
          .magnitude_mask = static_cast<std::uint16_t>(((1u << (width - 1)) - 1) << shift),
          .special = static_cast<std::uint16_t>(is_shortened_half ? 0xffff : special),
          .nan = static_cast<std::uint16_t>(format.has_negative_zero() ? 0xffff : 1u << (width - 1)),
          .scale = static_cast<float>(power_of_two(binary16.bias() - format.bias()))};
}

}  // namespace

Decoder::Decoder(const ArrayFormat& format, const BulkKernels& kernels)
    : format_(format),
      kernels_(kernels),
      source_(decode_source(format.format)),
      small_source_(),
      is_vectorised_(format.format.has_zero() && narrower_than_binary32(format.format)) {
  if (!is_within_halves(format.format)) return;
  small_source_ = small_source(format.format);
  decode_small_ = kernels.decode_8;
}

EncodeTarget encode_target(const ArrayFormat& format, const Attributes& attributes) {
  const Format& f = format.format;
  EncodeTarget target{.width = f.width(),
                      .trailing_bits = f.trailing_bits(),
                      .emin = f.emin() + binary32.bias(),
                      .max_finite = static_cast<std::uint32_t>(f.max_finite_code()),
                      .infinite = {},
                      .overflowed = {},
                      .sign_of_zero = f.has_negative_zero() ? ~0u : 0u,
                      .nan = {},
                      .nan_sign = {},
                      .nan_payload = {}};
  for (const bool negative : {false, true}) {
    target.infinite[negative] = code_of(format, attributes, infinity_bits<binary32>, negative);
    target.overflowed[negative] = code_of(format, attributes, max_finite_bits<binary32>, negative);
  }
  return target;
}

EncodeTarget with_nans(EncodeTarget target, const ArrayFormat& format, const Attributes& attributes) {
  constexpr std::uint32_t quiet = quiet_nan_bits<binary32>;
  target.nan = code_of(format, attributes, quiet, false);
  target.nan_sign = target.nan ^ code_of(format, attributes, quiet, true);
  target.nan_payload = target.nan ^ code_of(format, attributes, quiet | trailing_mask<binary32>, false);
  return target;
}

}  // namespace fp16::detail
