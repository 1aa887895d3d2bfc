#include "fp16/codec.h"
#include "fp16/vector/bulk_loops.h"
#include "fp16/vector/pack_loops.h"

namespace fp16::detail {
namespace {

constexpr int narrowing = float_trailing_bits - binary16.trailing_bits();

constexpr EncodeTarget half_target{
    .width = binary16.width(),
    .trailing_bits = binary16.trailing_bits(),
    .emin = binary16.emin() + binary32.bias(),
    .max_finite = max_finite_bits<binary16>,
    .infinite = {},
    .overflowed = {},
    .sign_of_zero = ~0u,
};

/// Twin of float_to_half_bits without branches or variable shifts. Inputs that a flush-to-zero mode would
/// lose become zero anyway.
std::uint16_t round_to_half(float value) {
  const std::uint32_t bits = bits_of(value);
  const std::uint32_t magnitude = bits & 0x7fffffff;
  const std::uint32_t nan = quiet_nan_bits<binary16> | (magnitude >> narrowing & trailing_mask<binary16>);
  std::uint32_t code = round_to_nearest_even<false>(half_target, magnitude);
  code = select(static_cast<std::int32_t>(code) > infinity_bits<binary16>, infinity_bits<binary16>, code);
  code = select(static_cast<std::int32_t>(magnitude) > static_cast<std::int32_t>(float_infinity), nan, code);
  return static_cast<std::uint16_t>(code | (bits >> 16 & sign_mask<binary16>));
}

/// Twin of half_bits_to_float, of the same kind. All its steps are exact.
float widen_to_float(std::uint16_t bits) {
  constexpr std::uint32_t rebias = static_cast<std::uint32_t>(binary32.bias() - binary16.bias())
                                   << float_trailing_bits;
  const std::int32_t magnitude = bits & 0x7fff;
  const std::uint32_t sign = static_cast<std::uint32_t>(bits & sign_mask<binary16>) << 16;

  const std::uint32_t widened = static_cast<std::uint32_t>(magnitude) << narrowing;
  const std::uint32_t subnormal = bits_of(static_cast<float>(magnitude) * 0x1p-24f);
  const std::uint32_t quiet = select(magnitude > infinity_bits<binary16>, quiet_bit<binary32>, 0);

  std::uint32_t result = select(magnitude < min_normal_bits<binary16>, subnormal, widened + rebias);
  result = select(magnitude >= infinity_bits<binary16>, widened | float_infinity | quiet, result);
  return float_of(result | sign);
}

void half_to_float(const std::uint16_t* in, float* out, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) out[i] = widen_to_float(in[i]);
}

void float_to_half(const float* in, std::uint16_t* out, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) out[i] = round_to_half(in[i]);
}

}  // namespace

constinit const BulkKernels portable_bulk_kernels = with_loops({
    .half_to_float = half_to_float,
    .float_to_half = {float_to_half},
    .float_to_half_stochastic = nullptr,
    .encode_8 = {},
    .encode_16 = {},
    .encode_32 = {},
    .decode_8 = nullptr,
    .decode_e8m0 = nullptr,
    .decode_16 = {},
    .decode_32 = {},
    .to_odd = {},
    .to_odd_wide = {},
    .nearest_even = {},
    .nearest_even_counting = {},
    .pack_4 = pack<4>,
    .pack_6 = pack<6>,
    .unpack_4 = unpack<4>,
    .unpack_6 = unpack<6>,
});

}  // namespace fp16::detail
