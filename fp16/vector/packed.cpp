#include "fp16/packed.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <functional>
#include <stdexcept>
#include <string>

#include "fp16/vector/coding.h"

namespace fp16 {
namespace detail {
namespace {

/// Codes of one width to a stream of bits and back.
class Packing {
 public:
  Packing(int bits, const BulkKernels& kernels)
      : bits_(bits),
        pack_(bits == 4 ? kernels.pack_4 : kernels.pack_6),
        unpack_(bits == 4 ? kernels.unpack_4 : kernels.unpack_6) {}

  int bits() const { return bits_; }

  /// Where the code of this index, a multiple of 8, begins.
  std::size_t offset(std::size_t index) const { return packed_bytes(index, bits_); }

  template <typename Code>
  void pack(const Code* codes, std::uint8_t* packed, std::size_t count) const {
    if constexpr (sizeof(Code) == 1) {
      bits_ == 8 ? static_cast<void>(std::copy_n(codes, count, packed)) : pack_(codes, packed, count);
    } else {
      static_assert(sizeof(Code) == 2);
      if constexpr (std::endian::native == std::endian::little) {
        if (count != 0) std::memcpy(packed, codes, 2 * count);
        return;
      }
      for (std::size_t i = 0; i < count; ++i) {
        packed[2 * i] = static_cast<std::uint8_t>(codes[i]);
        packed[2 * i + 1] = static_cast<std::uint8_t>(codes[i] >> 8);
      }
    }
  }

  template <typename Code>
  void unpack(const std::uint8_t* packed, Code* codes, std::size_t count) const {
    if constexpr (sizeof(Code) == 1) {
      bits_ == 8 ? static_cast<void>(std::copy_n(packed, count, codes)) : unpack_(packed, codes, count);
    } else {
      static_assert(sizeof(Code) == 2);
      if constexpr (std::endian::native == std::endian::little) {
        if (count != 0) std::memcpy(codes, packed, 2 * count);
        return;
      }
      for (std::size_t i = 0; i < count; ++i)
        codes[i] = static_cast<Code>(packed[2 * i] | packed[2 * i + 1] << 8);
    }
  }

 private:
  int bits_;
  PackKernel pack_, unpack_;
};

/// Where encoded codes go, a block at a time.
class PackedCodes {
 public:
  PackedCodes(const Packing& packing, std::uint8_t* packed) : packing_(packing), packed_(packed) {}

  template <typename Code>
  Code* room_for(std::size_t, Code* buffer) const {
    return buffer;
  }
  template <typename Code>
  void put(const Code* codes, std::size_t begin, std::size_t count) const {
    packing_.pack(codes, packed_ + packing_.offset(begin), count);
  }

 private:
  const Packing& packing_;
  std::uint8_t* packed_;
};

/// use(Code{}) with the integer that holds a code, which has 8 or 16 bits.
template <typename Use>
void with_packable_code(const Format& format, Use use) {
  format.size_bytes() == 1 ? use(std::uint8_t{}) : use(std::uint16_t{});
}

/// work(begin, count) for blocks of every thread's part. No two share a byte.
template <typename Work>
void for_each_packed_block(std::size_t size, int threads, Work work) {
  static_assert(block_size % 8 == 0);
  for_each_part(size, threads, block_size, [&](std::size_t begin, std::size_t end) {
    for (; begin < end; begin += block_size) work(begin, std::min(block_size, end - begin));
  });
}

void require_bits(int bits) {
  if (bits == 4 || bits == 6) return;
  throw std::invalid_argument("bits: " + std::to_string(bits) + " is not allowed; 4 or 6");
}

}  // namespace

void require_packed(std::span<const std::uint8_t> packed, std::size_t count, int bits) {
  if (packed.size() == packed_bytes(count, bits)) return;
  throw std::invalid_argument("packed: has " + std::to_string(packed.size()) + " bytes; must have " +
                              std::to_string(packed_bytes(count, bits)) + ", for " + std::to_string(count) +
                              " codes of " + std::to_string(bits) + " bits");
}

void encode_packed_array(const ArrayFormat& format, std::span<const float> in, std::span<std::uint8_t> packed,
                         const Attributes& attributes, const ArrayOptions& options) {
  const Packing packing(format.format.width(), kernels_of(options.path));
  with_packable_code(format.format, [&]<typename Code>(Code) {
    encode_each<Code>(format, binary32, in.size(), ArrayOfFloats(in.data()),
                      PackedCodes(packing, packed.data()), attributes, options);
  });
}

void decode_packed_array(const ArrayFormat& format, std::span<const std::uint8_t> packed,
                         std::span<float> out, const ArrayOptions& options) {
  const Packing packing(format.format.width(), kernels_of(options.path));
  const Decoder decoder(format, kernels_of(options.path));
  with_packable_code(format.format, [&]<typename Code>(Code) {
    for_each_packed_block(out.size(), options.threads, [&](std::size_t begin, std::size_t count) {
      std::array<Code, block_size> codes;
      packing.unpack(packed.data() + packing.offset(begin), codes.data(), count);
      decoder.decode(codes.data(), out.data() + begin, count);
    });
  });
}

void pack_codes(const Format& format, const void* codes, std::span<std::uint8_t> packed, std::size_t count,
                const ArrayOptions& options) {
  const Packing packing(format.width(), kernels_of(options.path));
  with_packable_code(format, [&]<typename Code>(Code) {
    packing.pack(static_cast<const Code*>(codes), packed.data(), count);
  });
}

}  // namespace detail

void pack(std::span<const std::uint8_t> codes, std::span<std::uint8_t> packed, int bits,
          const ArrayOptions& options) {
  detail::require_bits(bits);
  detail::require_packed(packed, codes.size(), bits);
  detail::require_apart("packed", std::as_bytes(packed), std::as_bytes(codes));
  const detail::Packing packing(bits, detail::kernels_of(options.path));
  detail::for_each_packed_block(codes.size(), options.threads, [&](std::size_t begin, std::size_t count) {
    packing.pack(codes.data() + begin, packed.data() + packing.offset(begin), count);
  });
}

void unpack(std::span<const std::uint8_t> packed, std::span<std::uint8_t> codes, int bits,
            const ArrayOptions& options) {
  detail::require_bits(bits);
  detail::require_packed(packed, codes.size(), bits);
  detail::require_apart("codes", std::as_bytes(packed), std::as_bytes(codes));
  const detail::Packing packing(bits, detail::kernels_of(options.path));
  detail::for_each_packed_block(codes.size(), options.threads, [&](std::size_t begin, std::size_t count) {
    packing.unpack(packed.data() + packing.offset(begin), codes.data() + begin, count);
  });
}

}  // namespace fp16
