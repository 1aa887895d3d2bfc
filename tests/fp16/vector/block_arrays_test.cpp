#include "fp16/block_arrays.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/oracle/hard_cases.h"

namespace fp16 {
namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();
constexpr float quiet_nan = std::numeric_limits<float>::quiet_NaN();

/// An array of outer x axis.length x axis.inner values.
struct BlockedArray {
  std::size_t outer;
  BlockAxis axis;
  std::vector<float> values;
  std::vector<std::uint32_t> random_bits;

  BlockedArray(std::size_t outer_extent, const BlockAxis& block_axis)
      : outer(outer_extent),
        axis(block_axis),
        values(outer * axis.length * axis.inner),
        random_bits(values.size()) {}

  std::size_t lines() const { return outer * axis.inner; }
  std::size_t index(std::size_t line, std::size_t i) const {
    return (line / axis.inner * axis.length + i) * axis.inner + line % axis.inner;
  }
};

/// What arrays become: codes, and numbers without the tensor scale.
struct Coded {
  std::vector<std::uint8_t> scales, elements;
  std::vector<float> numbers;
};

/// Every line through the scalar encoder and decoder.
template <const BlockFormat& B>
Coded coded_line_by_line(const BlockedArray& array, BlockOptions options, bool stochastic) {
  const std::size_t blocks = B.block_count(array.axis.length);
  Coded result{.scales = std::vector<std::uint8_t>(array.outer * blocks * array.axis.inner),
               .elements = std::vector<std::uint8_t>(array.values.size()),
               .numbers = std::vector<float>(array.values.size())};
  std::vector<float> line(array.axis.length), decoded(line.size());
  std::vector<std::uint64_t> random(stochastic ? line.size() : 0);
  std::vector<ElementBits<B>> elements(line.size());
  std::vector<ScaleBits<B>> scales(blocks);
  if (stochastic) options.element.rounding = Rounding::stochastic;
  options.random_bits = random;
  for (std::size_t at = 0; at < array.lines(); ++at) {
    for (std::size_t i = 0; i < line.size(); ++i) {
      line[i] = array.values[array.index(at, i)];
      if (stochastic) random[i] = std::uint64_t{array.random_bits[array.index(at, i)]} << 32 | 0xffffffffu;
    }
    encode_blocks<B>(line, scales, elements, options);
    decode_blocks<B>(elements, scales, std::span<float>(decoded));
    for (std::size_t block = 0; block < blocks; ++block)
      result.scales[(at / array.axis.inner * blocks + block) * array.axis.inner + at % array.axis.inner] =
          scales[block];
    for (std::size_t i = 0; i < line.size(); ++i) {
      result.elements[array.index(at, i)] = elements[i];
      result.numbers[array.index(at, i)] = decoded[i];
    }
  }
  return result;
}

std::vector<std::uint32_t> bits_of(const std::vector<float>& values) {
  std::vector<std::uint32_t> bits(values.size());
  std::ranges::transform(values, bits.begin(),
                         [](float value) { return std::bit_cast<std::uint32_t>(value); });
  return bits;
}

template <const BlockFormat& B>
void check(const BlockedArray& array, const BlockOptions& options, bool stochastic, int threads = 1) {
  std::vector<float> rounded = array.values;
  BlockArrayOptions array_options{
      .scale_rule = options.scale_rule, .tensor_scale = options.tensor_scale, .threads = threads};
  if (stochastic) array_options.random_bits = array.random_bits;
  round_to_blocks(B, rounded, array.axis, array_options);
  const Coded expected = coded_line_by_line<B>(array, options, stochastic);
  REQUIRE(bits_of(rounded) == bits_of(expected.numbers));

  Coded coded{.scales = std::vector<std::uint8_t>(expected.scales.size()),
              .elements = std::vector<std::uint8_t>(array.values.size()),
              .numbers = {}};
  encode_blocks(B, array.values, array.axis, coded.scales, coded.elements, array_options);
  REQUIRE(coded.scales == expected.scales);
  REQUIRE(coded.elements == expected.elements);
}

/// Blocks of any largest magnitude whose other values lie on numbers of the format times the scale, midway
/// between two or at most two floats beside, or anywhere below; with random numbers that lie at the fraction
/// that decides, or anywhere.
template <const BlockFormat& B>
class HardArrays {
 public:
  explicit HardArrays(std::uint64_t seed) : random_(seed), floats_(seed + 1) {}

  int below(int bound) { return random_.below(bound); }

  BlockedArray next(const BlockOptions& options) {
    const bool contiguous = below(2) == 0;
    BlockedArray array(1 + below(2), {.length = static_cast<std::size_t>(1 + below(40)),
                                      .inner = static_cast<std::size_t>(contiguous ? 1 : 1 + below(9))});
    const int exponent = -150 + below(278);
    tensor_scale_ = options.tensor_scale;
    for (std::size_t line = 0; line < array.lines(); ++line) {
      for (std::size_t first = 0; first < array.axis.length; first += B.block_size)
        fill_block(array, line, first, exponent, options);
    }
    return array;
  }

 private:
  void fill_block(BlockedArray& array, std::size_t line, std::size_t first, int exponent,
                  const BlockOptions& options) {
    const std::size_t end = std::min(first + B.block_size, array.axis.length);
    const float amax = B.has_tensor_scale && below(2) == 0 ? relative_amax() : amax_of(exponent);
    const ScaleBits<B> scale = block_scale<B>(amax, options);
    const double divisor = decode_element<B>(one, scale, B.has_tensor_scale ? options.tensor_scale : 1);
    for (std::size_t i = first; i < end; ++i) {
      const float magnitude = i == first ? amax : std::min(value(divisor, amax), amax);
      array.values[array.index(line, i)] = below(2) == 0 ? magnitude : -magnitude;
      array.random_bits[array.index(line, i)] = random_bits(magnitude, divisor);
    }
    if (below(20) == 0)
      std::swap(array.values[array.index(line, first)], array.values[array.index(line, end - 1)]);
  }

  /// The largest number of the format times a power of two, a float beside it, or any float.
  float amax_of(int exponent) {
    if (below(12) == 0) {
      const auto any = std::bit_cast<float>(floats_.next() & 0x7fffffff);
      return any;
    }
    if (below(12) == 0) return 0;
    double magnitude =
        std::ldexp(below(2) == 0 ? B.element.max() : 1 + random_fraction(), exponent - below(20));
    return beside(static_cast<float>(std::min(magnitude, 0x1.fffffep127)));
  }

  /// Where the scale of a block turns into the next, or beside.
  float relative_amax() {
    const int code = 1 + below(static_cast<int>(max_finite_bits<B.scale>));
    const double number = decoded<B.scale>(code), before = decoded<B.scale>(code - 1);
    const double quotient = below(3) == 0 ? number : (number + before) / 2;
    const double amax = std::fabs(quotient * B.element.max() * tensor_scale_);
    return amax < 0x1p127 ? beside(static_cast<float>(amax)) : 1;
  }

  float value(double divisor, float amax) {
    switch (below(8)) {
      case 0:
        return 0;
      case 1:
        return static_cast<float>(amax * random_fraction());
      case 2:
        return static_cast<float>(std::ldexp(amax * random_fraction(), -below(40)));
      default: {
        const int code = 1 + below(static_cast<int>(max_finite_bits<B.element>));
        const double number = decoded<B.element>(code);
        const double middle = (number + decoded<B.element>(code - 1)) / 2;
        return beside(static_cast<float>((below(2) == 0 ? number : middle) * divisor));
      }
    }
  }

  float beside(float magnitude) {
    for (int steps = below(3); steps > 0; --steps)
      magnitude = std::nextafter(magnitude, below(2) == 0 ? 0.0f : std::numeric_limits<float>::max());
    return magnitude;
  }

  template <const Format& F>
  static double decoded(int code) {
    return std::bit_cast<double>(convert<binary64, F>(static_cast<Bits<F>>(code)).bits);
  }

  /// Near the fraction of a unit in the last place at which `magnitude` lies.
  std::uint32_t random_bits(float magnitude, double divisor) {
    const auto any = static_cast<std::uint32_t>(random_.next());
    if (below(3) == 0) return any;
    if (below(8) == 0) return below(2) == 0 ? 0 : 0xffffffffu;
    const double quotient = magnitude / divisor;
    if (!(quotient <= B.element.max())) return any;
    const int exponent = std::max(quotient == 0 ? -10000 : std::ilogb(quotient), B.element.emin());
    const double units = std::ldexp(quotient, B.element.trailing_bits() - exponent);
    const double fraction = (units - std::floor(units)) * 0x1p32;
    return static_cast<std::uint32_t>(static_cast<std::int64_t>(fraction) + below(3) - 1);
  }

  double random_fraction() { return static_cast<double>(random_.next() >> 11) * 0x1p-53; }

  static constexpr ElementBits<B> one = encode<B.element>(1.0f).bits;
  oracle::RandomBits random_;
  oracle::HardFloats floats_;
  float tensor_scale_ = 1;
};

template <const BlockFormat& B>
void check_hard_arrays(std::uint64_t seed, int arrays) {
  HardArrays<B> hard(seed);
  for (int i = 0; i < arrays; ++i) {
    BlockOptions options{.scale_rule = scale_rules[i % scale_rules.size()]};
    if (B.has_tensor_scale && i % 5 != 0) {
      // Few digits, so that there are ties between scales, or up to 23.
      const double significand = i % 2 == 0 ? 1 + hard.below(1 << 22) * 0x1p-22 : 1 + hard.below(16);
      options.tensor_scale = static_cast<float>(std::ldexp(significand, -149 + hard.below(260)));
      if (i % 7 == 0) options.tensor_scale = std::array{quiet_nan, infinity, 0.0f, -1.0f}[hard.below(4)];
    }
    CAPTURE(B.name);
    CAPTURE(i);
    const BlockedArray array = hard.next(options);
    check<B>(array, options, false);
    check<B>(array, options, true);
  }
}

TEST_CASE("boundary-weighted arrays of every block format, rule and axis are those of encode_blocks") {
  for_each_block_format(
      []<const BlockFormat & B>() { check_hard_arrays<B>(11, B.has_tensor_scale ? 10'000 : 2'000); });
}

/// Tensors whose scale is that of their own largest value, as they are in use.
TEST_CASE("NVFP4 tensors with the tensor scale of their largest magnitude") {
  HardArrays<nvfp4> hard(13);
  for (int i = 0; i < 2'000; ++i) {
    const BlockedArray array = hard.next({.tensor_scale = 0x1p-10f});
    const float scale = tensor_scale<nvfp4>(absolute_maximum(array.values));
    check<nvfp4>(array, {.tensor_scale = scale}, false);
    check<nvfp4>(array, {.tensor_scale = scale}, true);
  }
}

/// With d an odd number of 24 digits and e * 2^-32 between the remainder x and (random + 1) / 2^32 * d, the
/// latter rounds to x in binary64.
TEST_CASE("remainders that binary64 cannot tell from the random share of a unit") {
  oracle::RandomBits random(19);
  for (int i = 0; i < 1'000; ++i) {
    const std::uint32_t divisor = 0x800000u | static_cast<std::uint32_t>(random.below(1 << 22)) * 2 | 1;
    std::uint32_t inverse = divisor;  // modulo 2^32, by Newton's iteration
    for (int step = 0; step < 5; ++step) inverse *= 2 - divisor * inverse;
    const auto excess = static_cast<std::uint32_t>(1 + random.below(3));
    const std::uint32_t share = inverse * excess;
    const std::uint64_t remainder = (std::uint64_t{share} * divisor - excess) >> 32;
    BlockedArray array(1, {.length = 2});
    array.values = {6.0f * static_cast<float>(divisor),
                    static_cast<float>(remainder) / 2};  // in units of 1/2
    array.random_bits = {0, share - 1};
    const BlockOptions options{.tensor_scale = static_cast<float>(divisor)};
    REQUIRE(coded_line_by_line<nvfp4>(array, options, true).numbers[1] == 0);
    check<nvfp4>(array, options, true);
  }
}

TEST_CASE("values derived by hand") {
  // amax 6.5 is above 6: by rceil the scale is 2, and 5.0 lies midway between 4 and 6, 2.5 being a tie to 2.
  std::vector<float> values(40, -5.0f);
  values[0] = 6.5f;
  round_to_blocks(mxfp4, values, {.length = 40}, {.scale_rule = ScaleRule::rceil});
  CHECK(values[0] == 6.0f);
  CHECK(values[1] == -4.0f);
  CHECK(values[32] == -4.0f);  // the block of eight has scale 1, where 5 is a tie between 4 and 6

  // Blocks of two columns: the first has scale 1, the second 2^-2.
  std::vector<float> columns{4.0f, 1.0f, 0.3f, 0.3f};
  round_to_blocks(mxfp4, columns, {.length = 2, .inner = 2});
  CHECK(columns == std::vector<float>{4.0f, 1.0f, 0.5f, 0.25f});

  // 1.25 lies halfway between 1 and 1.5: floor(fraction * 2^32) = 2^31.
  std::vector<float> drawn{4.0f, 1.25f, 1.25f, -1.25f};
  const std::vector<std::uint32_t> random{0, 0x7fffffffu, 0x80000000u, 0};
  round_to_blocks(mxfp4, drawn, {.length = 4}, {.random_bits = random});
  CHECK(drawn == std::vector<float>{4.0f, 1.5f, 1.0f, -1.5f});
}

TEST_CASE("zeros, NaNs and infinities keep to their blocks") {
  for_each_block_format([]<const BlockFormat & B>() {
    for (const std::size_t inner : {1, 5}) {
      BlockedArray array(2, {.length = 3 * static_cast<std::size_t>(B.block_size) + 1, .inner = inner});
      std::ranges::fill(array.values, 1.0f);
      for (int i = 0; i < B.block_size; ++i) array.values[array.index(0, i)] = i % 2 == 0 ? 0.0f : -0.0f;
      array.values[array.index(0, B.block_size + 3)] = quiet_nan;
      array.values[array.index(0, 2 * B.block_size)] = -infinity;
      array.values[array.index(array.lines() - 1, 0)] = std::bit_cast<float>(0xff800001u);
      check<B>(array, {}, false);
      check<B>(array, {}, true);
    }
  });
}

TEST_CASE("threads, long lines and wide slabs change no bit") {
  oracle::RandomBits random(17);
  for (const BlockAxis axis : {BlockAxis{5000, 1}, BlockAxis{37, 1}, BlockAxis{50, 300}, BlockAxis{3, 64}}) {
    BlockedArray array(3, axis);
    for (float& value : array.values) value = static_cast<float>(random.below(2001) - 1000) * 0x1p-9f;
    for (std::uint32_t& bits : array.random_bits) bits = static_cast<std::uint32_t>(random.next());
    for (const int threads : {1, 2, 5}) {
      check<mxfp8_e4m3>(array, {.scale_rule = ScaleRule::rceil}, false, threads);
      check<nvfp4>(array, {.tensor_scale = 0x1p-9f}, true, threads);
    }
  }
}

TEST_CASE("bits drawn as it goes are those of the generator, along any axis") {
  const PhiloxSequence random{{.key = 19, .stream = 20}, 21};
  for (const BlockAxis axis : {BlockAxis{5000, 1}, BlockAxis{37, 1}, BlockAxis{50, 301}, BlockAxis{3, 64}}) {
    BlockedArray array(3, axis);
    oracle::RandomBits noise(22);
    for (float& value : array.values) value = static_cast<float>(noise.below(2001) - 1000) * 0x1p-9f;
    fill_bits(random.generator, random.first, array.random_bits);
    for_each_block_format([&]<const BlockFormat & B>() {
      std::vector<float> given = array.values;
      round_to_blocks(B, given, axis, {.random_bits = array.random_bits});
      for (const int threads : {1, 3}) {
        std::vector<float> drawn = array.values;
        round_to_blocks(B, drawn, axis, {.random = random, .threads = threads});
        CHECK(bits_of(drawn) == bits_of(given));
      }
    });
  }
}

/// Every sign, exponent and leading digit, followed by ends and middles of what rounding drops.
std::vector<float> numbers_of_every_beginning() {
  std::vector<float> numbers;
  for (std::uint32_t beginning = 0; beginning < 0x10000; ++beginning) {
    for (const std::uint32_t end : {0x0000u, 0x0001u, 0x7fffu, 0x8000u, 0x8001u, 0xffffu})
      numbers.push_back(std::bit_cast<float>(beginning << 16 | end));
  }
  return numbers;
}

/// How many of `numbers` become something else than the scalar encoder makes of them.
template <const Format& F>
std::size_t wrongly_rounded(const std::vector<float>& numbers, float scale) {
  std::vector<float> rounded = numbers;
  round_scaled(F, rounded, scale);
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const Bits<F> code = encode<F>(numbers[i] * scale, {.saturate = true}).bits;
    const std::uint32_t expected = convert<binary32, F>(code).bits;
    wrong += std::bit_cast<std::uint32_t>(rounded[i]) != expected;
  }
  return wrong;
}

TEST_CASE("a tensor rounded with one scale is what the scalar encoder makes of it, NaNs or none") {
  const std::vector<float> numbers = numbers_of_every_beginning();
  std::vector<float> without_nans = numbers;
  std::erase_if(without_nans, [](float number) { return std::isnan(number); });
  for_each_format([&]<const Format & F>() {
    if constexpr (F.width() <= 8 && F.has_arithmetic()) {
      for (const float scale : {1.0f, 448 / 3.0f, 0x1.8p-30f, infinity}) {
        CAPTURE(name_of(F));
        CAPTURE(scale);
        CHECK(wrongly_rounded<F>(numbers, scale) == 0);
        CHECK(wrongly_rounded<F>(without_nans, scale) == 0);
      }
    }
  });
}

TEST_CASE("one scale for arrays of any length and place, none of them too") {
  std::vector<float> values(5000);
  round_scaled(e4m3, std::span<float>(), 1);
  for (const std::size_t first : {0, 1, 3}) {
    for (const std::size_t count : {1, 15, 17, 2047, 2049}) {
      std::ranges::fill(values, 0.3f);
      round_scaled(e4m3, std::span(values).subspan(first, count), 1);
      CHECK(std::ranges::count(values, 0.3125f) == static_cast<std::ptrdiff_t>(count));
      CHECK(values[first] == 0.3125f);
      CHECK(values[first + count] == 0.3f);
    }
  }
  CHECK_THROWS_AS(round_scaled(binary16, values, 1), std::invalid_argument);
  CHECK_THROWS_AS(round_scaled(e8m0, values, 1), std::invalid_argument);
}

TEST_CASE("what cannot be rounded is refused") {
  const auto message = [](const BlockFormat& format, std::size_t size, const BlockAxis& axis,
                          const BlockArrayOptions& options) {
    std::vector<float> values(size);
    try {
      round_to_blocks(format, values, axis, options);
    } catch (const std::invalid_argument& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  const std::vector<std::uint32_t> random(7);
  const BlockFormat unknown{.name = "mine", .element = e2m1, .scale = e8m0, .block_size = 8};
  CHECK(message(unknown, 8, {.length = 8}, {}) == "block format: mine is no row of block_formats");
  CHECK(message(mxfp4, 8, {.length = 3}, {}) == "block axis: 8 values do not consist of 3 times 1");
  CHECK(message(mxfp4, 8, {.length = 0}, {}) == "block axis: 8 values do not consist of 0 times 1");
  CHECK(message(mxfp4, 8, {.length = 2, .inner = 4}, {.random_bits = random}) ==
        "random_bits: has 7 elements; allowed: none, or 8, as the values");
  CHECK(message(mxfp4, 7, {.length = 7}, {.random_bits = random, .random = PhiloxSequence{}}) ==
        "random_bits, random: both are given; one of them is allowed");
  CHECK_FALSE(message(mxfp4, 8, {.length = 8}, {.threads = 0}).empty());
  CHECK(message(mxfp4, 0, {.length = 0}, {}).empty());

  const auto message_of_codes = [](std::size_t scales, std::size_t elements) {
    const std::vector<float> values(80);
    std::vector<std::uint8_t> scale_codes(scales), element_codes(elements);
    try {
      encode_blocks(mxfp4, values, {.length = 40}, scale_codes, element_codes);
    } catch (const std::invalid_argument& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  CHECK(message_of_codes(4, 80).empty());
  CHECK(message_of_codes(3, 80) == "scales: has 3 elements; must have 4, one for each block");
  CHECK(message_of_codes(4, 40) == "elements: has 40 elements; must have 80, as the other arrays");
}

/// Four million draws, some of which binary32 cannot decide.
TEST_CASE("NVFP4 drawn over long arrays is what each element draws") {
  BlockedArray array(1, {.length = 1 << 22});
  oracle::RandomBits noise(23);
  for (float& value : array.values) value = static_cast<float>(noise.below(2'000'001) - 1'000'000) * 0x1p-9f;
  fill_bits({.key = 24, .stream = 25}, 0, array.random_bits);
  check<nvfp4>(array, {.tensor_scale = 1.1f}, true);
}

}  // namespace
}  // namespace fp16
