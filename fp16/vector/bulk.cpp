#include "fp16/bulk.h"

#include <algorithm>
#include <functional>
#include <stdexcept>
#include <string>

#include "fp16/vector/coding.h"

namespace fp16 {
namespace detail {
namespace {

/// Codes of a format that are decoded a block at a time.
template <typename Code>
class DecodedCodes {
 public:
  DecodedCodes(const Format& format, const Decoder& decoder, const Code* codes)
      : format_(format), decoder_(decoder), codes_(codes) {}
  const float* load(std::size_t begin, std::size_t count, Block& buffer) const {
    decoder_.decode(codes_ + begin, buffer.data(), count);
    return buffer.data();
  }
  bool has_signalling_nan(std::size_t begin, std::size_t count) const {
    return detail::has_signalling_nan(format_, codes_ + begin, count);
  }

 private:
  const Format& format_;
  const Decoder& decoder_;
  const Code* codes_;
};

/// Codes that go to an array as they are.
template <typename Code>
class ArrayOfCodes {
 public:
  explicit ArrayOfCodes(Code* codes) : codes_(codes) {}
  Code* room_for(std::size_t begin, Code*) const { return codes_ + begin; }
  void put(const Code*, std::size_t, std::size_t) const {}

 private:
  Code* codes_;
};

}  // namespace

void require_length(const char* name, std::size_t size, std::size_t expected, const char* why) {
  if (size == expected) return;
  throw std::invalid_argument(std::string(name) + ": has " + std::to_string(size) + " elements; must have " +
                              std::to_string(expected) + ", " + why);
}

void require_apart(const char* name, std::span<const std::byte> a, std::span<const std::byte> b) {
  const std::less<const std::byte*> is_before;
  if (a.empty() || b.empty()) return;
  if (!is_before(a.data(), b.data() + b.size()) || !is_before(b.data(), a.data() + a.size())) return;
  throw std::invalid_argument(std::string(name) + ": overlaps another array of the call");
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
  with_codes(format.format, out, [&]<typename Code>(Code* codes) {
    encode_each<Code>(format, binary32, in.size(), ArrayOfFloats(in.data()), ArrayOfCodes(codes), attributes,
                      options);
  });
}

void decode_array(const ArrayFormat& format, const void* in, std::span<float> out,
                  const ArrayOptions& options) {
  const Decoder decoder(format, kernels_of(options.path));
  with_codes(format.format, in, [&](const auto* codes) {
    for_each_part(out.size(), options.threads, block_size, [&](std::size_t begin, std::size_t end) {
      for (; begin < end; begin += block_size)
        decoder.decode(codes + begin, out.data() + begin, std::min(block_size, end - begin));
    });
  });
}

void convert_array(const ArrayFormat& from, const void* in, std::size_t size, const ArrayFormat& to,
                   void* out, const Attributes& attributes, const ArrayOptions& options) {
  const Decoder decoder(from, kernels_of(options.path));
  with_codes(from.format, in, [&](const auto* codes) {
    const DecodedCodes decoded(from.format, decoder, codes);
    with_codes(to.format, out, [&]<typename Code>(Code* results) {
      encode_each<Code>(to, from.format, size, decoded, ArrayOfCodes(results), attributes, options);
    });
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
