#pragma once
/// Arrays of codes without gaps, as files and accelerators hold those of 4 and 6 bits: a stream of bits in which
/// every byte is filled from its lowest bit on and the first element comes first. Two codes of 4 bits share a byte,
/// four of 6 bits three. So have it PyTorch's float4_e2m1fn_x2 (c10/util/Float4_e2m1fn_x2.h, "val1 : val0"), CUDA's
/// __nv_fp4x2_e2m1 and ONNX's FLOAT4E2M1 (onnx.ai, "Float stored in 4 bits"); with 6 bits, Composable Kernel's
/// f6_pk_t. Codes of 8 bits are bytes anyway, those of 16 are little-endian.
///
/// The bits of the last byte that no code has are zero when written, and nothing when read. Everything else is as in
/// bulk.h: the same options and exceptions, and every vector path gives the same bytes; but no output may be an input.
/// Needs halflab::fp16_bulk.
///
/// How it is known: all pairs of neighbouring codes, all lengths to 130 from any address, on every path, against
/// packing bit by bit; conversions against `encode` and `decode`.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "bulk.h"
#include "format.h"

namespace fp16 {

/// Bytes that `count` codes of `bits` bits take.
constexpr std::size_t packed_bytes(std::size_t count, int bits) {
  const auto width = static_cast<std::size_t>(bits);
  return count / 8 * width + (count % 8 * width + 7) / 8;  // no product is larger than the result
}

/// packed = the lowest `bits` bits of every code, 4 or 6: packed_bytes(codes.size(), bits) bytes.
/// Throws std::invalid_argument for another length, or other bits.
void pack(std::span<const std::uint8_t> codes, std::span<std::uint8_t> packed, int bits,
          const ArrayOptions& options = {});

/// codes = what was packed, one a byte. Throws as above.
void unpack(std::span<const std::uint8_t> packed, std::span<std::uint8_t> codes, int bits,
            const ArrayOptions& options = {});

/// Formats of 4, 6, 8 and 16 bits.
constexpr bool is_packable(const Format& format) {
  const int width = format.width();
  return width == 4 || width == 6 || width == 8 || width == 16;
}

/// packed = the codes that `encode` makes of `in`, with the same random bits and counts, in
/// packed_bytes(in.size(), F.width()) bytes.
template <const Format& F>
requires(is_packable(F)) void encode_packed(std::span<const float> in, std::span<std::uint8_t> packed,
                                            const Attributes& attributes = {},
                                            const ArrayOptions& options = {});

/// out = the values of the packed codes, exactly; packed.size() is packed_bytes(out.size(), F.width()).
template <const Format& F>
requires(is_packable(F)) void decode_packed(std::span<const std::uint8_t> packed, std::span<float> out,
                                            const ArrayOptions& options = {});

namespace detail {

/// Throws std::invalid_argument unless `packed` has the length for `count` codes.
void require_packed(std::span<const std::uint8_t> packed, std::size_t count, int bits);

void encode_packed_array(const ArrayFormat& format, std::span<const float> in, std::span<std::uint8_t> packed,
                         const Attributes& attributes, const ArrayOptions& options);
void decode_packed_array(const ArrayFormat& format, std::span<const std::uint8_t> packed,
                         std::span<float> out, const ArrayOptions& options);

/// `codes` point to integers of format.size_bytes().
void pack_codes(const Format& format, const void* codes, std::span<std::uint8_t> packed, std::size_t count,
                const ArrayOptions& options);

}  // namespace detail

template <const Format& F>
requires(is_packable(F)) void encode_packed(std::span<const float> in, std::span<std::uint8_t> packed,
                                            const Attributes& attributes, const ArrayOptions& options) {
  detail::require_packed(packed, in.size(), F.width());
  detail::require_apart(packed, options, in);
  if constexpr (detail::narrower_than_binary32(F)) {
    if (detail::has_usable_bits(attributes, options, in.size()))
      return detail::encode_packed_array(detail::array_format<F>, in, packed, attributes, options);
  }
  std::vector<Bits<F>> codes(in.size());
  encode<F>(in, codes, attributes, options);
  detail::pack_codes(F, codes.data(), packed, codes.size(), options);
}

template <const Format& F>
requires(is_packable(F)) void decode_packed(std::span<const std::uint8_t> packed, std::span<float> out,
                                            const ArrayOptions& options) {
  detail::require_packed(packed, out.size(), F.width());
  detail::require_apart(out, options, packed);
  detail::decode_packed_array(detail::array_format<F>, packed, out, options);
}

}  // namespace fp16
