#include "fp16/bulk.h"

#include <algorithm>
#include <stdexcept>
#include <string>

#include "fp16/vector/coding.h"
#include "fp16/vector/random_bits.h"
#include "fp16/vector/rounding_counts.h"

namespace fp16 {
namespace detail {
namespace {

/// Encodes `size` floats, of which load(begin, count, buffer) gives each block; they are numbers of `from`.
template <typename Load>
void encode_loaded(const ArrayFormat& format, const Format& from, std::size_t size, Load load, void* out,
                   const Attributes& attributes, const ArrayOptions& options) {
  const BulkKernels& kernels = kernels_of(options.path);
  const Encoder encoder(format, attributes, kernels);
  const Decoder decoder(format, kernels);
  const bool counting = options.counts != nullptr;
  const CountBorders borders = counting ? count_borders(format, attributes) : CountBorders{};
  const bool stochastic = attributes.rounding == Rounding::stochastic;
  const RandomBits random(options.random_bits_32, options.random, options.path);
  with_codes(format.format, out, [&](auto* codes) {
    for_each_block(size, options, [&](std::size_t begin, std::size_t count, RoundingCounts& counts) {
      Block buffer;
      const float* floats = load(begin, count, buffer);
      if (attributes.denormals_are_zero) {
        read_subnormals_as_zeros(from, floats, buffer.data(), count);
        floats = buffer.data();
      }
      RandomBlock drawn;
      const std::uint32_t* bits = stochastic ? random.from(begin, count, drawn.data()) : nullptr;
      encoder.encode(floats, bits, codes + begin, count);
      if (!counting) return;
      Block widened;
      decoder.decode(codes + begin, widened.data(), count);
      counts += count_roundings(floats, widened.data(), count, borders);
      count_open_overflows(floats, count, borders, counts, [&](std::size_t i) {
        Attributes each = attributes;
        each.random_bits = bits[i];
        return format.encode_one(floats[i], each).flags.overflow;
      });
    });
  });
}

}  // namespace

void require_length(const char* name, std::size_t size, std::size_t expected, const char* why) {
  if (size == expected) return;
  throw std::invalid_argument(std::string(name) + ": has " + std::to_string(size) + " elements; must have " +
                              std::to_string(expected) + ", " + why);
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
  encode_loaded(format, binary32, in.size(), load, out, attributes, options);
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
    const auto load = [&](std::size_t begin, std::size_t count, Block& buffer) {
      decoder.decode(codes + begin, buffer.data(), count);
      return static_cast<const float*>(buffer.data());
    };
    encode_loaded(to, from.format, size, load, out, attributes, options);
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
