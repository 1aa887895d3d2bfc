#include "fp16/vector/coding.h"

namespace fp16::detail {

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
                      .sign_of_zero = f.has_negative_zero() ? ~0u : 0u,
                      .nan = {},
                      .nan_sign = {},
                      .nan_payload = {}};
  const auto code_of = [&](std::uint32_t magnitude, bool negative) {
    return format.encode_one(std::bit_cast<float>(with_sign<binary32>(magnitude, negative)), deterministic)
        .code;
  };
  for (const bool negative : {false, true}) {
    target.infinite[negative] = code_of(infinity_bits<binary32>, negative);
    target.overflowed[negative] = code_of(max_finite_bits<binary32>, negative);
  }
  constexpr std::uint32_t quiet = quiet_nan_bits<binary32>;
  target.nan = code_of(quiet, false);
  target.nan_sign = target.nan ^ code_of(quiet, true);
  target.nan_payload = target.nan ^ code_of(quiet | trailing_mask<binary32>, false);
  return target;
}

}  // namespace fp16::detail
