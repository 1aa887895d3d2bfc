#include "fp16/block.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <boost/multiprecision/cpp_int.hpp>
#include <cmath>
#include <cstdint>
#include <limits>
#include <span>
#include <string_view>
#include <vector>

#include "tests/oracle/hard_cases.h"

namespace fp16 {
namespace {

using Integer = boost::multiprecision::cpp_int;

constexpr float infinity = std::numeric_limits<float>::infinity();
constexpr float quiet_nan = std::numeric_limits<float>::quiet_NaN();

static_assert(mxfp8_e4m3.bits_per_value() == 8.25 && mxfp4.bits_per_value() == 4.25 &&
              nvfp4.bits_per_value() == 4.5);
static_assert(mxfp4.block_count(0) == 0 && mxfp4.block_count(32) == 1 && mxfp4.block_count(33) == 2 &&
              nvfp4.block_count(33) == 3);

// 7 = 1.75 * 2^2 in E2M1, whose largest number is 6 = 1.5 * 2^2. Divided by the scale it saturates to 6 (code
// 7) or is 3.5, a tie that goes to 4 (code 6).
static_assert(block_scale<mxfp4>(7, {.scale_rule = ScaleRule::floor}) == 127);
static_assert(block_scale<mxfp4>(7, {.scale_rule = ScaleRule::ceil}) == 128);
static_assert(encode_element<mxfp4>(-7, 127) == Result<e2m1>{0xf, {.inexact = true, .overflow = true}});
static_assert(encode_element<mxfp4>(-7, 128) == Result<e2m1>{0xe, {.inexact = true}});
static_assert(decode_element<mxfp4>(0xe, 128) == -8);

template <const BlockFormat& B>
struct Encoded {
  std::vector<Bits<B.scale>> scales;
  std::vector<Bits<B.element>> elements;
  Flags flags;

  friend bool operator==(const Encoded&, const Encoded&) = default;

  std::vector<double> decoded(float tensor_scale = 1) const {
    std::vector<double> values(elements.size());
    decode_blocks<B>(elements, scales, values, tensor_scale);
    return values;
  }
};

template <const BlockFormat& B>
Encoded<B> encoded(std::span<const float> values, const BlockOptions& options = {}) {
  Encoded<B> result{std::vector<Bits<B.scale>>(B.block_count(values.size())),
                    std::vector<Bits<B.element>>(values.size()),
                    {}};
  result.flags = encode_blocks<B>(values, result.scales, result.elements, options);
  return result;
}

std::vector<float> as_floats(std::span<const double> values) {
  return {values.begin(), values.end()};
}

struct ScaleLiteral {
  float amax;
  int floor, ceil, rceil, even;
};

template <const BlockFormat& B>
void check_scales(std::initializer_list<ScaleLiteral> literals) {
  for (const ScaleLiteral& literal : literals) {
    CAPTURE(B.name);
    CAPTURE(literal.amax);
    CHECK(block_scale<B>(literal.amax, {.scale_rule = ScaleRule::floor}) == literal.floor);
    CHECK(block_scale<B>(literal.amax, {.scale_rule = ScaleRule::ceil}) == literal.ceil);
    CHECK(block_scale<B>(literal.amax, {.scale_rule = ScaleRule::rceil}) == literal.rceil);
    CHECK(block_scale<B>(literal.amax, {.scale_rule = ScaleRule::even}) == literal.even);
  }
}

TEST_CASE("MX scales by each rule, derived by hand") {
  // The code of 2^e is e + 127.
  check_scales<mxfp4>({{4.0f, 127, 127, 127, 127},
                       {4.5f, 127, 128, 127, 127},
                       {5.0f, 127, 128, 127, 127},    // to two digits: 6
                       {6.0f, 127, 128, 127, 127},    // the largest element
                       {6.5f, 127, 128, 128, 127},    // to two digits: 6
                       {7.0f, 127, 128, 128, 128},    // to two digits: a tie, away from zero to 8
                       {8.0f, 128, 128, 128, 128}});  // a power of two
  check_scales<mxfp8_e4m3>({{1.0f, 119, 119, 119, 119},
                            {448.0f, 127, 128, 127, 127},
                            {449.0f, 127, 128, 128, 127},
                            {495.0f, 127, 128, 128, 127},
                            {496.0f, 127, 128, 128, 128}});  // midway between 480 and 512
  check_scales<mxfp8_e5m2>({{1.0f, 112, 112, 112, 112},
                            {57344.0f, 127, 128, 127, 127},
                            {57345.0f, 127, 128, 128, 127},
                            {61440.0f, 127, 128, 128, 128}});
  check_scales<mxfp6_e2m3>({{1.0f, 125, 125, 125, 125},
                            {7.5f, 127, 128, 127, 127},
                            {7.75f, 127, 128, 128, 128},
                            {7.625f, 127, 128, 128, 127}});
  check_scales<mxfp6_e3m2>(
      {{1.0f, 123, 123, 123, 123}, {28.0f, 127, 128, 127, 127}, {29.0f, 127, 128, 128, 127}});
}

TEST_CASE("MX scales at the ends of binary32") {
  // Zero, subnormal and small normal numbers get the smallest scale; the largest float is just below 2^128.
  check_scales<mxfp8_e4m3>({{0.0f, 0, 0, 0, 0},
                            {0x1p-149f, 0, 0, 0, 0},
                            {0x1p-126f, 0, 0, 0, 0},
                            {0x1p-119f, 0, 0, 0, 0},
                            {0x1.000002p-119f, 0, 1, 0, 0},
                            {0x1.cp-119f, 0, 1, 0, 0},
                            {0x1.c00002p-119f, 0, 1, 1, 0},
                            {0x1p-118f, 1, 1, 1, 1},
                            {0x1.fffffep127f, 246, 247, 247, 247}});
  CHECK(encode_element<mxfp8_e4m3>(0x1p-126f, 0).bits == 0x40);  // 2
  CHECK(encode_element<mxfp8_e4m3>(0x1p-137f, 0) ==
        Result<e4m3>{0x00, {.inexact = true, .underflow = true}});  // half of the smallest, a tie to zero
  CHECK(encode_element<mxfp8_e4m3>(0x1.fffffep127f, 247) == Result<e4m3>{0x78, {.inexact = true}});
  CHECK(decode_element<mxfp8_e4m3>(0x78, 247) == 0x1p128);

  const std::vector<float> values{0x1.fffffep127f, -1.0f};
  const auto codes = encoded<mxfp8_e4m3>(values, {.scale_rule = ScaleRule::ceil});
  CHECK(codes.decoded() == std::vector<double>{0x1p128, -0.0});
  std::vector<float> floats(2);
  decode_blocks<mxfp8_e4m3>(codes.elements, codes.scales, floats);
  CHECK(floats == std::vector<float>{infinity, -0.0f});
}

TEST_CASE("NVFP4 derived by hand") {
  CHECK(tensor_scale<nvfp4>(2688) == 1);
  CHECK(tensor_scale<nvfp4>(0) == 1);
  CHECK(tensor_scale<nvfp4>(1) == 0x1.861862p-12f);      // 1/2688 = 0x1.861861861...p-12
  CHECK(tensor_scale<nvfp4>(0x1.5p-139f) == 0x1p-149f);  // 1344 * 2^-149: a tie, to zero but for the rule
  CHECK(tensor_scale<nvfp4>(0x1p-149f) == 0x1p-149f);
  CHECK(std::isnan(tensor_scale<nvfp4>(quiet_nan)));
  CHECK(tensor_scale<nvfp4>(infinity) == infinity);

  CHECK(block_scale<nvfp4>(6) == 0x38);            // 1
  CHECK(block_scale<nvfp4>(1) == 0x23);            // 1/6 = 1.3333 * 2^-3, to 1.375 * 2^-3
  CHECK(block_scale<nvfp4>(2688) == 0x7e);         // 448
  CHECK(block_scale<nvfp4>(1e9f) == 0x7e);         // saturates
  CHECK(block_scale<nvfp4>(0x1.8p-8f) == 0);       // 6 * 2^-10, half of the smallest scale: a tie
  CHECK(block_scale<nvfp4>(0x1.800002p-8f) == 1);  // 2^-9
  CHECK(block_scale<nvfp4>(0x1p-149f, {.tensor_scale = 0x1p-149f}) == 0x23);

  CHECK(encode_element<nvfp4>(1.0f, 0x23).bits == 7);     // 1 / 0.171875 = 5.82, to 6
  CHECK(encode_element<nvfp4>(-0.5f, 0x23).bits == 0xd);  // 2.91, to 3
  CHECK(decode_element<nvfp4>(7, 0x23) == 1.03125);
  CHECK(decode_element<nvfp4>(0xd, 0x23, 0x1.000002p0f) == -0.515625 * 0x1.000002p0);
  CHECK(encode_element<nvfp4>(2.5f, 0x38).bits == 4);  // a tie between 2 and 3
  CHECK(encode_element<nvfp4>(2.5f, 0x38, 0x1.fffffep-1f).bits == 5);
  CHECK(encode_element<nvfp4>(0x1.8p-8f, 1).bits == 5);  // 3 * 2^-9

  const Result<e2m1> lost{0x8, {.inexact = true, .underflow = true}};
  CHECK(encode_element<nvfp4>(-0x1.8p-8f, 0) == lost);
  CHECK(encode_element<nvfp4>(-0.0f, 0) == Result<e2m1>{0x8, {}});
  CHECK(encode_element<nvfp4>(-1, 0x38, 0) == lost);
  CHECK(encode_element<nvfp4>(-1, 0x7f) == Result<e2m1>{0, {}});
  CHECK(encode_element<nvfp4>(-infinity, 0x38) == Result<e2m1>{0xf, {.inexact = true, .overflow = true}});
  CHECK(encode_element<nvfp4>(quiet_nan, 0x38) == Result<e2m1>{0, {.invalid = true}});
}

TEST_CASE("blocks of zeros, NaNs and infinities") {
  for_each_block_format([]<const BlockFormat & B>() {
    CAPTURE(B.name);
    const std::size_t size = B.block_size;
    std::vector<float> values(3 * size + 1, 1.0f);
    std::fill_n(values.begin(), size, 0.0f);
    values[1] = -0.0f;
    values[size + 3] = quiet_nan;
    values[2 * size] = -infinity;
    const Encoded<B> codes = encoded<B>(values);
    const std::vector<double> decoded = codes.decoded();

    CHECK(codes.scales[0] == 0);
    CHECK(codes.scales[1] == quiet_nan_bits<B.scale>);
    CHECK(codes.scales[2] == quiet_nan_bits<B.scale>);
    CHECK(is_finite<B.scale>(codes.scales[3]));
    CHECK(std::signbit(decoded[1]));
    for (std::size_t i = 0; i < size; ++i) {
      CHECK(decoded[i] == 0);
      CHECK(codes.elements[size + i] == 0);
      CHECK(std::isnan(decoded[size + i]));
      CHECK(std::isnan(decoded[2 * size + i]));
    }
    CHECK(decoded[3 * size] == doctest::Approx(1).epsilon(0.04));
  });
}

TEST_CASE("a tensor scale that is no positive number makes every NVFP4 block a NaN") {
  const std::vector<float> values(17, 1.0f);
  for (const float scale : {quiet_nan, infinity, 0.0f, -1.0f}) {
    const auto codes = encoded<nvfp4>(values, {.tensor_scale = scale});
    CHECK(codes.scales == std::vector<std::uint8_t>{0x7f, 0x7f});
    CHECK(std::isnan(codes.decoded(scale)[16]));
  }
}

/// The element formats, written down once more.
struct ElementTable {
  int trailing_bits, bias, max_code;

  /// In units of 2^-16; also of the code after the largest.
  Integer value(int code) const {
    const int fraction = code & ((1 << trailing_bits) - 1);
    const int biased = code >> trailing_bits;
    const int significand = biased == 0 ? fraction : fraction + (1 << trailing_bits);
    return Integer(significand) << (std::max(biased, 1) - bias - trailing_bits + 16);
  }
  /// Midpoints above each code, in units of 2^-17.
  std::vector<Integer> midpoints() const {
    std::vector<Integer> result;
    for (int code = 0; code <= max_code; ++code) result.push_back(value(code) + value(code + 1));
    return result;
  }
};

template <const BlockFormat& B>
ElementTable element_table() {
  if (B.element == e4m3) return {.trailing_bits = 3, .bias = 7, .max_code = 0x7e};
  if (B.element == e5m2) return {.trailing_bits = 2, .bias = 15, .max_code = 0x7b};
  if (B.element == e2m3) return {.trailing_bits = 3, .bias = 1, .max_code = 0x1f};
  if (B.element == e3m2) return {.trailing_bits = 2, .bias = 3, .max_code = 0x1f};
  return {.trailing_bits = 1, .bias = 1, .max_code = 0x7};
}

constexpr int unit_exponent = -180;

/// |value| in units of 2^-180.
Integer units(float value) {
  int exponent = 0;
  const float fraction = std::frexp(std::fabs(value), &exponent);
  return Integer(static_cast<std::int64_t>(std::ldexp(fraction, 24))) << (exponent - 24 - unit_exponent);
}

/// Which code `magnitude` goes to, nearest-even, when `midpoints[c]` lies between codes c and c + 1.
int nearest(const std::vector<Integer>& midpoints, const Integer& magnitude) {
  const auto at = std::lower_bound(midpoints.begin(), midpoints.end(), magnitude);
  const auto below = static_cast<int>(at - midpoints.begin());
  const bool tie = at != midpoints.end() && *at == magnitude;
  return tie && below % 2 == 1 ? below + 1 : below;
}

std::vector<Integer> scaled(std::vector<Integer> values, const Integer& factor, int shift) {
  for (Integer& value : values) value = value * factor << shift;
  return values;
}

/// The smallest (`above`) or largest exponent e >= -127 with largest * 2^e on that side of `amax`.
int exponent_towards(const Integer& amax, const Integer& largest, bool above) {
  int exponent = -127;
  if (above) {
    while ((largest << (exponent - unit_exponent - 16)) < amax) ++exponent;
  } else {
    while ((largest << (exponent + 1 - unit_exponent - 16)) <= amax) ++exponent;
  }
  return exponent;
}

/// The scale's exponent from the rule's own words; `table` values are in units of 2^-16.
int scale_exponent(const ElementTable& table, ScaleRule rule, Integer amax) {
  const Integer largest = table.value(table.max_code);
  const Integer power = Integer(1) << msb(largest);
  switch (rule) {
    case ScaleRule::floor:
      return exponent_towards(amax, power, false);
    case ScaleRule::ceil:
      return exponent_towards(amax, power, true);
    case ScaleRule::rceil:
      return exponent_towards(amax, largest, true);
    case ScaleRule::even:
      if (amax != 0) {
        const Integer ulp = Integer(1) << (msb(amax) - table.trailing_bits);
        amax = (amax + ulp / 2) / ulp * ulp;
      }
      return exponent_towards(amax, power, false);
  }
  return 0;
}

struct ExpectedBlock {
  int scale = 0;
  std::vector<int> elements;
  bool inexact = false, overflow = false;
};

/// A block by comparison with every midpoint times the scale; no division, no rounding.
template <const BlockFormat& B>
ExpectedBlock expected_block(std::span<const float> values, const BlockOptions& options) {
  const ElementTable table = element_table<B>();
  const ElementTable scale_table{.trailing_bits = 3, .bias = 7, .max_code = 0x7e};
  Integer amax = 0;
  for (const float value : values) amax = std::max(amax, units(value));

  ExpectedBlock block;
  Integer factor = 1;  // scale * tensor scale in units of 2^shift
  int shift = 0;
  if (B.has_tensor_scale) {
    const Integer tensor = units(options.tensor_scale);
    block.scale = std::min(nearest(scaled(scale_table.midpoints(), 6 * tensor, 0), amax << 17), 0x7e);
    factor = scale_table.value(block.scale) * tensor;
    shift = -16;
  } else {
    const int exponent = scale_exponent(table, options.scale_rule, amax);
    block.scale = exponent + 127;
    shift = exponent - unit_exponent;
  }
  const int fixed_point = 64;
  const std::vector<Integer> midpoints = scaled(table.midpoints(), factor, fixed_point + shift - 17);
  for (const float value : values) {
    const Integer magnitude = units(value) << fixed_point;
    const int code = factor == 0 ? 0 : nearest(midpoints, magnitude);
    const int kept = std::min(code, table.max_code);
    block.overflow |= code > table.max_code;
    block.inexact |= magnitude != table.value(kept) * factor << (fixed_point + shift - 16);
    block.elements.push_back(std::signbit(value) ? kept + (1 << (B.element.width() - 1)) : kept);
  }
  return block;
}

/// Blocks whose values lie on the element format's numbers and midpoints, one float beside them, anywhere
/// within some octaves of the block's largest, or far below; at any place of the range of float.
class HardBlocks {
 public:
  explicit HardBlocks(std::uint64_t seed) : random_(seed) {}

  std::vector<float> next(const ElementTable& table, std::size_t size) {
    const int edge = random_.below(4);
    const int exponent = edge == 0   ? -149 + random_.below(40)
                         : edge == 1 ? 127 - random_.below(12)
                                     : -140 + random_.below(260);
    std::vector<float> values;
    for (std::size_t i = 0; i < size; ++i) values.push_back(value(table, exponent));
    return values;
  }
  int below(int bound) { return random_.below(bound); }
  std::uint64_t bits() { return random_.next(); }

  float number(int exponent) {
    const int digits = 1 + random_.below(24);
    const auto significand = static_cast<float>(random_.next() >> (64 - digits) | 1);
    return std::clamp(std::ldexp(significand, exponent - digits), 0.0f, std::numeric_limits<float>::max());
  }

 private:
  float value(const ElementTable& table, int exponent) {
    float magnitude = 0;
    switch (random_.below(5)) {
      case 0:
        break;
      case 1:
        magnitude = number(exponent - random_.below(30));
        break;
      case 2:
        magnitude = number(exponent);
        break;
      default: {
        const int code = random_.below(table.max_code + 1);
        const Integer near = table.value(code) + table.value(code + random_.below(2));
        const int top = static_cast<int>(msb(table.value(table.max_code))) + 1;
        magnitude = std::ldexp(static_cast<float>(static_cast<std::int64_t>(near)),
                               exponent - top - random_.below(2));
        if (std::isinf(magnitude)) magnitude = std::numeric_limits<float>::max();
        if (random_.below(3) == 0)
          magnitude = std::nextafter(magnitude, random_.below(2) == 0 ? 0.0f : 3e38f);
      }
    }
    return random_.below(2) == 0 ? magnitude : -magnitude;
  }

  oracle::RandomBits random_;
};

template <const BlockFormat& B>
void check_against_oracle(std::span<const float> values, const BlockOptions& options) {
  const Encoded<B> codes = encoded<B>(values, options);
  Flags expected_flags;
  std::vector<int> scales, elements;
  for (std::size_t first = 0; first < values.size(); first += B.block_size) {
    const std::size_t size = std::min<std::size_t>(B.block_size, values.size() - first);
    const ExpectedBlock block = expected_block<B>(values.subspan(first, size), options);
    scales.push_back(block.scale);
    elements.insert(elements.end(), block.elements.begin(), block.elements.end());
    expected_flags |= {.inexact = block.inexact, .overflow = block.overflow};
  }
  REQUIRE(std::vector<int>(codes.scales.begin(), codes.scales.end()) == scales);
  REQUIRE(std::vector<int>(codes.elements.begin(), codes.elements.end()) == elements);
  REQUIRE(codes.flags.inexact == expected_flags.inexact);
  REQUIRE(codes.flags.overflow == expected_flags.overflow);
  REQUIRE((!codes.flags.underflow || codes.flags.inexact));
  REQUIRE(!codes.flags.invalid);
}

TEST_CASE(
    "MX: boundary-weighted blocks and tails of every format and rule against comparison with midpoints") {
  HardBlocks blocks(31);
  for_each_block_format([&]<const BlockFormat & B>() {
    if constexpr (!B.has_tensor_scale) {
      for (const ScaleRule rule : scale_rules) {
        CAPTURE(B.name);
        CAPTURE(name_of(rule));
        for (int i = 0; i < 500; ++i) {
          const std::size_t size = i % 4 == 0 ? 1 + blocks.below(70) : 32;
          check_against_oracle<B>(blocks.next(element_table<B>(), size), {.scale_rule = rule});
        }
      }
    }
  });
}

TEST_CASE("NVFP4: boundary-weighted tensors against comparison with midpoints") {
  HardBlocks blocks(32);
  for (int i = 0; i < 3000; ++i) {
    // Blocks of one tensor differ in size down to where their scale is zero.
    std::vector<float> values;
    const int blocks_of_tensor = 1 + blocks.below(4);
    for (int b = 0; b < blocks_of_tensor; ++b) {
      const int octaves = b == 0 ? 0 : blocks.below(22);
      for (const float value : blocks.next(element_table<nvfp4>(), 16))
        values.push_back(std::ldexp(value, -octaves));
    }
    values.resize(values.size() - blocks.below(16));
    const float amax = absolute_maximum(values);
    float scale = amax == 0 ? 1.0f : amax / 2688.0f;
    if (scale == 0) scale = 0x1p-149f;
    REQUIRE(tensor_scale<nvfp4>(amax) == scale);
    check_against_oracle<nvfp4>(values, {.tensor_scale = scale});
    // Scales of few digits let quotients be exact, and ties.
    const float short_scale = std::ldexp(static_cast<float>(1 + blocks.below(4)), std::ilogb(scale));
    if (short_scale > 0) check_against_oracle<nvfp4>(values, {.tensor_scale = short_scale});
  }
}

/// cuBLAS, "1D Block Quantization": S = amax / max in binary32; its exponent, plus one where the significand
/// is not 1.
template <const BlockFormat& B>
void check_rceil_against_binary32(std::uint64_t seed) {
  oracle::RandomBits random(seed);
  int normal = 0;
  const auto largest = static_cast<float>(B.element.max());
  for (int i = 0; i < 100'000; ++i) {
    const float near_power = std::ldexp(largest, -140 + random.below(250));
    const float amax =
        i % 2 == 0 ? std::bit_cast<float>(static_cast<std::uint32_t>(random.next() >> 33))
                   : std::bit_cast<float>(std::bit_cast<std::uint32_t>(near_power) - 2 + random.below(5));
    const float quotient = amax / largest;
    if (!std::isnormal(quotient)) continue;
    ++normal;
    const int exponent = std::ilogb(quotient);
    const bool up = quotient != std::ldexp(1.0f, exponent);
    REQUIRE(block_scale<B>(amax, {.scale_rule = ScaleRule::rceil}) == exponent + up + 127);
  }
  CHECK(normal > 80'000);
}

TEST_CASE("rceil is what NVIDIA computes in binary32") {
  check_rceil_against_binary32<mxfp8_e4m3>(33);
  check_rceil_against_binary32<mxfp8_e5m2>(34);
  check_rceil_against_binary32<mxfp6_e2m3>(35);
  check_rceil_against_binary32<mxfp6_e3m2>(36);
  check_rceil_against_binary32<mxfp4>(37);
}

TEST_CASE("MX properties: ceil and rceil never saturate, encoding again loses nothing, scaling is exact") {
  HardBlocks blocks(38);
  for_each_block_format([&]<const BlockFormat & B>() {
    if constexpr (!B.has_tensor_scale) {
      CAPTURE(B.name);
      int saturated_by_floor = 0;
      for (int i = 0; i < 1000; ++i) {
        const std::vector<float> values = blocks.next(element_table<B>(), 32);
        for (const ScaleRule rule : scale_rules) {
          CAPTURE(name_of(rule));
          const BlockOptions options{.scale_rule = rule};
          const Encoded<B> once = encoded<B>(values, options);
          const bool may_saturate = rule == ScaleRule::floor || rule == ScaleRule::even;
          REQUIRE((may_saturate || !once.flags.overflow));
          saturated_by_floor += rule == ScaleRule::floor && once.flags.overflow;

          // A smaller largest magnitude can halve the scale; the values are numbers of that block as well.
          const std::vector<double> decoded = once.decoded();
          if (std::ranges::all_of(decoded, [](double x) { return std::fabs(x) < 0x1p128; })) {
            const Encoded<B> twice = encoded<B>(as_floats(decoded), options);
            REQUIRE(twice.decoded() == decoded);
            REQUIRE(twice.flags == Flags{});
          }
          const float amax = absolute_maximum(values);
          if (amax > 0x1p-80f && amax < 0x1p100f) {
            std::vector<float> larger = values;
            for (float& value : larger) value = std::ldexp(value, 10);
            if (std::ranges::all_of(values, [](float x) { return x == 0 || std::isnormal(x); })) {
              const Encoded<B> moved = encoded<B>(larger, options);
              REQUIRE(moved.scales[0] == once.scales[0] + 10);
              REQUIRE(moved.elements == once.elements);
            }
          }
        }
      }
      CHECK(saturated_by_floor > 100);
    }
  });
}

TEST_CASE("NVFP4 encoded again with its tensor scale loses nothing while block scales are normal or zero") {
  HardBlocks blocks(39);
  int compared = 0;
  for (int i = 0; i < 3000; ++i) {
    std::vector<float> values;
    for (int k = 0; k < 16; ++k) values.push_back(blocks.number(-blocks.below(24)));
    // With a power of two for a tensor scale, decoded values are floats.
    const float scale = std::ldexp(1.0f, std::ilogb(absolute_maximum(values)) - 11 + blocks.below(22));
    const auto once = encoded<nvfp4>(values, {.tensor_scale = scale});
    if (is_subnormal<e4m3>(once.scales[0])) continue;
    ++compared;
    const auto twice = encoded<nvfp4>(as_floats(once.decoded(scale)), {.tensor_scale = scale});
    REQUIRE(twice.scales == once.scales);
    REQUIRE(twice.elements == once.elements);
  }
  CHECK(compared > 2000);
}

TEST_CASE("a tail is a block filled up with zeros") {
  HardBlocks blocks(40);
  for_each_block_format([&]<const BlockFormat & B>() {
    const auto size = static_cast<std::size_t>(B.block_size);
    for (std::size_t n = 0; n <= 2 * size; ++n) {
      const std::vector<float> values = blocks.next(element_table<B>(), n);
      std::vector<float> padded = values;
      padded.resize(B.block_count(n) * size);
      const Encoded<B> codes = encoded<B>(values);
      Encoded<B> whole = encoded<B>(padded);
      whole.elements.resize(n);
      REQUIRE(codes == whole);
    }
  });
}

TEST_CASE("elements of MX round like a conversion of x / scale, with every attribute") {
  oracle::HardFloats cases(41);
  for_each_block_format([&]<const BlockFormat & B>() {
    if constexpr (!B.has_tensor_scale) {
      for (int i = 0; i < 20'000; ++i) {
        const auto mode = static_cast<Rounding>(i % 7);
        const auto bits = static_cast<std::uint32_t>((cases.next() & 0x87ffffff) | 0x38000000);
        // The random bits of a conversion from binary32 are 32.
        const std::uint32_t random = cases.uniform();
        const Attributes narrow{.rounding = mode, .random_bits = random, .saturate = true};
        const Attributes wide{.rounding = mode, .random_bits = std::uint64_t{random} << 32 | 0xffffffff};
        const auto x = std::bit_cast<float>(bits);
        const int exponent = static_cast<int>(i % 41) - 20;
        const auto expected = encode<B.element>(std::ldexp(x, -exponent), narrow);
        REQUIRE(encode_element<B>(x, static_cast<std::uint8_t>(127 + exponent), 1, wide) == expected);
      }
    }
  });
}

TEST_CASE("stochastic rounding sees 64 bits of a quotient that does not end") {
  // 1/3 lies at 2/3 between 0 and 0.5: floor(2/3 * 2^64) = 0xaaaaaaaaaaaaaaaa. The scale 0x44 is 3.
  const auto encode_third = [](std::uint64_t random_bits) {
    return encode_element<nvfp4>(1, 0x44, 1, {.rounding = Rounding::stochastic, .random_bits = random_bits})
        .bits;
  };
  CHECK(encode_third(0xaaaaaaaaaaaaaaa9) == 1);
  CHECK(encode_third(0xaaaaaaaaaaaaaaaa) == 0);

  const std::vector<float> values{6, 2.5f, 2.5f, -2.5f};
  const std::vector<std::uint64_t> random{0, (std::uint64_t{1} << 63) - 1, std::uint64_t{1} << 63, 0};
  const auto codes =
      encoded<nvfp4>(values, {.element = {.rounding = Rounding::stochastic}, .random_bits = random});
  CHECK(codes.elements == std::vector<std::uint8_t>{7, 5, 4, 0xd});
}

}  // namespace
}  // namespace fp16
