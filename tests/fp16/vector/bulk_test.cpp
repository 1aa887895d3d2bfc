#include "fp16/bulk.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <span>
#include <stdexcept>
#include <string_view>
#include <vector>

#include "fp16/codec.h"
#include "fp16/comparison.h"
#include "fp16/half.h"
#include "fp16/integral.h"
#include "fp16/remainder.h"
#include "tests/fp16/vector/hard_operands.h"
#include "tests/oracle/hard_cases.h"

namespace fp16 {
namespace {

/// 2^22 floats of every class (about half of them in the range of half), every half, every tie and its
/// neighbours.
std::vector<float> hard_floats() {
  std::vector<float> floats;
  oracle::HardFloats cases(31);
  oracle::RandomBits random(32);
  for (int i = 0; i < 1 << 21; ++i) {
    floats.push_back(std::bit_cast<float>(cases.next()));
    const std::uint32_t in_range = 0x32000000 + random.below(0x48000000 - 0x32000000);
    floats.push_back(std::bit_cast<float>(in_range | static_cast<std::uint32_t>(random.below(2)) << 31));
  }
  for (std::uint32_t code = 0; code < 0x10000; ++code) {
    const float value = half_bits_to_float(static_cast<std::uint16_t>(code));
    const float next = half_bits_to_float(static_cast<std::uint16_t>(code + 1));
    const float tie = (value + next) / 2;
    floats.insert(floats.end(), {value, tie, std::nextafter(tie, -1e9f), std::nextafter(tie, 1e9f)});
  }
  for (std::uint32_t payload = 1; payload < 1u << 23; payload += 1 + payload / 64) {
    floats.push_back(std::bit_cast<float>(0x7f800000 | payload));
    floats.push_back(std::bit_cast<float>(0xff800000 | payload));
  }
  return floats;
}

/// Written from the definitions in bulk.h, on the values.
RoundingCounts recount(std::span<const float> in) {
  RoundingCounts counts;
  for (const float before : in) {
    const double after = decode<binary16>(float_to_half_bits(before));
    const bool overflowed = std::isfinite(before) && std::isinf(after);
    const bool inexact = std::isfinite(after) && after != static_cast<double>(before);
    counts.overflowed += overflowed;
    counts.inexact += inexact;
    counts.exact += !overflowed && !inexact;
    counts.flushed += before != 0 && after == 0;
    counts.subnormal += after != 0 && std::abs(after) < 0x1p-14;
  }
  return counts;
}

bool same_bits(std::span<const float> a, std::span<const float> b) {
  return std::ranges::equal(a, b, {}, std::bit_cast<std::uint32_t, float>,
                            std::bit_cast<std::uint32_t, float>);
}

TEST_CASE("float to half: every path has the bits of the scalar conversion and counts what it did") {
  const std::vector<float> in = hard_floats();
  CHECK(in.size() >= 1u << 22);
  std::vector<std::uint16_t> expected(in.size());
  std::ranges::transform(in, expected.begin(), float_to_half_bits);
  const RoundingCounts expected_counts = recount(in);
  CHECK(expected_counts.flushed > 0);
  CHECK(expected_counts.overflowed > 0);

  for (const VectorPath path : available_vector_paths()) {
    CAPTURE(name_of(path));
    std::vector<std::uint16_t> out(in.size());
    float_to_half(in, out, {}, {.path = path});
    CHECK(out == expected);

    std::ranges::fill(out, 0x1234);
    RoundingCounts counts{.exact = 5};
    float_to_half(in, out, {}, {.path = path, .counts = &counts});
    CHECK(out == expected);
    RoundingCounts from_five{.exact = 5};
    CHECK(counts == (from_five += expected_counts));
  }
}

TEST_CASE("half to float: every path has the bits of the scalar conversion for all 65,536 halves") {
  std::vector<std::uint16_t> in(0x10000);
  for (std::size_t i = 0; i < in.size(); ++i) in[i] = static_cast<std::uint16_t>(i);
  std::vector<float> expected(in.size());
  std::ranges::transform(in, expected.begin(), half_bits_to_float);
  for (const VectorPath path : available_vector_paths()) {
    CAPTURE(name_of(path));
    std::vector<float> out(in.size());
    half_to_float(in, out, {.path = path});
    CHECK(same_bits(out, expected));
  }
}

TEST_CASE("any length and any start: only the span is written") {
  oracle::HardFloats cases(33);
  std::vector<float> floats(80);
  for (float& value : floats) value = std::bit_cast<float>(cases.next());
  std::vector<std::uint16_t> expected(floats.size());
  std::ranges::transform(floats, expected.begin(), float_to_half_bits);

  for (const VectorPath path : available_vector_paths()) {
    CAPTURE(name_of(path));
    for (std::size_t start = 0; start < 9; ++start) {
      for (std::size_t length = 0; length < 70; ++length) {
        constexpr std::uint16_t untouched = 0x5aa5;
        std::vector<std::uint16_t> halves(floats.size(), untouched);
        float_to_half(std::span(floats).subspan(start, length), std::span(halves).subspan(start, length), {},
                      {.path = path});
        std::vector<float> back(floats.size(), -1.0f);
        half_to_float(std::span(expected).subspan(start, length), std::span(back).subspan(start, length),
                      {.path = path});
        bool right = true;
        for (std::size_t i = 0; i < halves.size(); ++i) {
          const bool inside = i >= start && i < start + length;
          const float widened = inside ? half_bits_to_float(expected[i]) : -1.0f;
          right &= halves[i] == (inside ? expected[i] : untouched);
          right &= std::bit_cast<std::uint32_t>(back[i]) == std::bit_cast<std::uint32_t>(widened);
        }
        CAPTURE(start);
        CAPTURE(length);
        CHECK(right);
      }
    }
  }
}

TEST_CASE("counts of values worked out by hand") {
  const float infinity = std::numeric_limits<float>::infinity();
  const std::vector<float> in{0.0f,      -0.0f,           1.0f,     0x1p-24f, 0x1.8p-24f, 0x1p-25f,
                              -1e-30f,   0x1.000002p-25f, 65519.0f, 65520.0f, -1e30f,     infinity,
                              -infinity, std::nanf(""),   0.1f};
  std::vector<std::uint16_t> out(in.size());
  RoundingCounts counts;
  float_to_half(in, out, {}, {.counts = &counts});
  // Exact: two zeros, 1, 2^-24, two infinities, NaN. Inexact: 1.5 * 2^-24, 2^-25, -1e-30, next after 2^-25,
  // 65519, 0.1.
  CHECK(counts == RoundingCounts{.exact = 7, .inexact = 6, .subnormal = 3, .flushed = 2, .overflowed = 2});
}

TEST_CASE("calls without a path give the same bits") {
  const std::vector<float> in{1.0f, 0.1f, 1e-7f, 1e6f, -3.0f};
  std::vector<std::uint16_t> out(in.size());
  float_to_half(in, out);
  CHECK(out == std::vector<std::uint16_t>{0x3c00, 0x2e66, 0x0002, 0x7c00, 0xc200});
  std::vector<float> back(in.size());
  half_to_float(out, back);
  CHECK(back ==
        std::vector<float>{1.0f, 0x1.998p-4f, 0x1p-23f, std::numeric_limits<float>::infinity(), -3.0f});
}

/// Values of every class, half of them within the range of F.
template <const Format& F>
std::vector<float> hard_floats_for(std::size_t count) {
  std::vector<float> floats;
  oracle::HardFloats cases(41);
  oracle::RandomBits random(42);
  const int range = F.emax() - F.emin_subnormal() + 4;
  while (floats.size() < count) {
    floats.push_back(std::bit_cast<float>(cases.next()));
    const std::uint32_t noise = random.below(2) == 0 ? cases.next() : cases.next() << 20;
    const float significand = std::bit_cast<float>((noise & 0x807fffff) | 0x3f800000);
    floats.push_back(std::ldexp(significand, F.emin_subnormal() - 2 + random.below(range)));
  }
  return floats;
}

template <const Format& F>
void check_encoding(std::span<const float> in, std::span<const std::uint32_t> random_bits,
                    const Attributes& attributes) {
  std::vector<Bits<F>> expected(in.size());
  RoundingCounts expected_counts;
  transform<F>([](float value, const Attributes& each) { return encode<F>(value, each); },
               std::span(expected), attributes, {.counts = &expected_counts, .random_bits_32 = random_bits},
               in);
  for (const VectorPath path : available_vector_paths()) {
    CAPTURE(name_of(path));
    std::vector<Bits<F>> out(in.size());
    RoundingCounts counts;
    encode<F>(in, out, attributes, {.path = path, .random_bits_32 = random_bits});
    CHECK(out == expected);
    encode<F>(in, out, attributes,
              {.path = path, .threads = 3, .counts = &counts, .random_bits_32 = random_bits});
    CHECK(out == expected);
    CHECK(counts == expected_counts);
  }
}

TEST_CASE("float to every format: all directions, attributes and paths have the scalar bits and counts") {
  for_each_format([]<const Format & F>() {
    if constexpr (F.width() <= 32) {
      CAPTURE(name_of(F));
      const std::vector<float> in = hard_floats_for<F>(20'011);
      oracle::RandomBits random(43);
      std::vector<std::uint32_t> random_bits(in.size());
      for (std::uint32_t& bits : random_bits) bits = static_cast<std::uint32_t>(random.next());
      for (const Rounding rounding : every_rounding) {
        CAPTURE(static_cast<int>(rounding));
        for (Attributes attributes : border_attributes) {
          attributes.rounding = rounding;
          check_encoding<F>(in, random_bits, attributes);
        }
      }
    }
  });
}

// Each but the last two has something that the float kernels cannot do.
constexpr Format wide_precision{.exponent_bits = 5, .precision = 24};
constexpr Format wide_range{.exponent_bits = 9, .precision = 5};
constexpr Format wide_fnuz{.exponent_bits = 8, .precision = 8, .encoding = Encoding::fnuz};
constexpr Format long_significand{.exponent_bits = 3, .precision = 27};
constexpr Format narrow{.exponent_bits = 8, .precision = 23};
constexpr Format odd_width{.exponent_bits = 6, .precision = 6};

template <const Format& F>
void check_unnamed_format() {
  const std::vector<float> in = hard_floats_for<F>(20'011);
  for (const Rounding rounding : every_rounding) {
    if (rounding != Rounding::stochastic) check_encoding<F>(in, {}, {.rounding = rounding});
  }
}

TEST_CASE("float to formats that are no row of the table") {
  check_unnamed_format<wide_precision>();
  check_unnamed_format<wide_range>();
  check_unnamed_format<wide_fnuz>();
  check_unnamed_format<long_significand>();
  check_unnamed_format<narrow>();
  check_unnamed_format<odd_width>();
}

template <const Format& F>
void check_decoding() {
  oracle::RandomBits random(44);
  std::vector<Bits<F>> in;
  for (std::uint64_t i = 0; i < std::min(std::uint64_t{1} << F.width(), std::uint64_t{1} << 16); ++i)
    in.push_back(static_cast<Bits<F>>(F.width() <= 16 ? i : random.next() >> (64 - F.width())));
  std::vector<float> expected(in.size());
  std::ranges::transform(in, expected.begin(),
                         [](Bits<F> bits) { return std::bit_cast<float>(convert<binary32, F>(bits).bits); });
  for (const VectorPath path : available_vector_paths()) {
    CAPTURE(name_of(path));
    std::vector<float> out(in.size());
    decode<F>(in, out, {.path = path, .threads = 2});
    CHECK(same_bits(out, expected));
    // Few at a time, so that no special code has others on another way.
    for (std::size_t i = 0; i < in.size(); i += 5) {
      const std::size_t count = std::min<std::size_t>(5, in.size() - i);
      decode<F>(std::span(in).subspan(i, count), std::span(out).subspan(i, count), {.path = path});
    }
    CHECK(same_bits(out, expected));
  }
}

TEST_CASE("every format to float: all codes, or 2^16 of them, on every path") {
  for_each_format([]<const Format & F>() {
    if constexpr (F.width() <= 32) {
      CAPTURE(name_of(F));
      check_decoding<F>();
    }
  });
}

constexpr Format shorter_half{.exponent_bits = 5, .precision = 3, .encoding = Encoding::finite_nan};
constexpr Format all_finite{.exponent_bits = 5, .precision = 2, .encoding = Encoding::finite};
constexpr Format small_ieee{.exponent_bits = 4, .precision = 4};
constexpr Format tiny_fnuz{.exponent_bits = 2, .precision = 2, .encoding = Encoding::fnuz};
constexpr Format one_exponent_bit{.exponent_bits = 1, .precision = 4, .encoding = Encoding::finite};

TEST_CASE("formats that are no row of the table to float") {
  check_decoding<wide_precision>();
  check_decoding<wide_fnuz>();
  check_decoding<narrow>();
  check_decoding<odd_width>();
  check_decoding<shorter_half>();
  check_decoding<all_finite>();
  check_decoding<small_ieee>();
  check_decoding<tiny_fnuz>();
  check_decoding<one_exponent_bit>();
}

using Codes = std::span<const std::uint16_t>;

TEST_CASE("empty arrays are nothing to do, an operand may come twice, an exception of a thread arrives") {
  float_to_half({}, {}, {}, {.threads = 4});
  const Operands<binary16> in = hard_operands<binary16>(5'000);
  std::vector<std::uint16_t> out(in.a.size());
  fma<binary16>(in.a, in.b, in.a, out);
  for (std::size_t i = 0; i < out.size(); ++i) {
    if (out[i] != fma<binary16>(in.a[i], in.b[i], in.a[i]).bits) FAIL_CHECK("element " << i);
  }
  const auto fails_late = [](std::uint16_t a, const Attributes&) -> Result<binary16> {
    if (a == 0x1234) throw std::runtime_error("found");
    return {.bits = a, .flags = {}};
  };
  std::vector<half> a(3, half(5)), b(3, half(3)), rest(3);
  transform<binary16>(remainder<binary16>, bits_of(rest), {}, {}, bits_of(a), bits_of(b));
  CHECK(rest == std::vector(3, half(-1)));
  std::vector<std::uint16_t> marked(in.a.size(), 0);
  marked.back() = 0x1234;
  CHECK_THROWS_WITH_AS(transform<binary16>(fails_late, std::span(out), {}, {.threads = 3}, Codes(marked)),
                       "found", std::runtime_error);
}

TEST_CASE("arrays of integers and of answers to predicates") {
  const Operands<binary16> in = hard_operands<binary16>(5'000);
  std::vector<std::int8_t> integers(in.a.size());
  const Flags flags =
      transform_values(to_integer_exact<std::int8_t, binary16>, std::span(integers),
                       {.rounding = Rounding::toward_zero, .saturate = true}, {.threads = 2}, Codes(in.a));
  CHECK(flags == Flags{.inexact = true, .invalid = true});
  for (std::size_t i = 0; i < in.a.size(); ++i) {
    const float value = half_bits_to_float(in.a[i]);
    const float kept = std::isnan(value) ? 0 : std::clamp(std::trunc(value), -128.0f, 127.0f);
    if (integers[i] != static_cast<int>(kept)) FAIL_CHECK("element " << i);
  }

  const auto less = [](std::uint16_t a, std::uint16_t b, const Attributes& attributes) {
    return compare_quiet<binary16>(a, Predicate::less, b, attributes);
  };
  std::vector<std::uint8_t> answers(in.a.size());
  transform_values(less, std::span(answers), {}, {}, Codes(in.a), Codes(in.b));
  for (std::size_t i = 0; i < in.a.size(); ++i) {
    const bool expected = half_bits_to_float(in.a[i]) < half_bits_to_float(in.b[i]);
    if (answers[i] != expected) FAIL_CHECK("element " << i);
  }
}

TEST_CASE("32 random bits serve operations too, with probabilities right to 2^-32") {
  constexpr std::size_t count = 100'000;
  const std::vector<std::uint16_t> one(count, 0x3c00), quarter_ulp(count, 0x0c00);  // 2^-12
  std::vector<std::uint16_t> out(count);
  std::vector<std::uint32_t> random_bits(count);
  for (std::size_t i = 0; i < count; ++i)
    random_bits[i] = static_cast<std::uint32_t>(i * 0x100000000 / count);
  add<binary16>(one, quarter_ulp, out, {Rounding::stochastic}, {.random_bits_32 = random_bits});
  CHECK(std::ranges::count(out, 0x3c01) == count / 4);
  CHECK(std::ranges::count(out, 0x3c00) == 3 * count / 4);
}

TEST_CASE("conversions between arrays of two formats, and a union of flags") {
  const std::vector<std::uint16_t> halves{0x3c00, 0x0001, 0x7bff, 0xfc00};
  std::vector<std::uint8_t> bytes(halves.size());
  convert<e4m3, binary16>(halves, bytes, {.saturate = true}, {.threads = 2});
  CHECK(bytes == std::vector<std::uint8_t>{0x38, 0x00, 0x7e, 0xfe});
  const Flags flags =
      transform<e4m3>([](std::uint16_t half,
                         const Attributes& attributes) { return convert<e4m3, binary16>(half, attributes); },
                      std::span(bytes), {}, {}, Codes(halves));
  CHECK(flags == Flags{.inexact = true, .underflow = true, .overflow = true});
  CHECK(bytes == std::vector<std::uint8_t>{0x38, 0x00, 0x7f, 0xff});
}

template <const Format& To, const Format& From>
void check_conversion(std::span<const Bits<From>> in, const Attributes& attributes,
                      const ArrayOptions& options) {
  std::vector<Bits<To>> expected(in.size()), out(in.size());
  RoundingCounts expected_counts, counts;
  ArrayOptions scalar = options, counting = options;
  scalar.counts = &expected_counts;
  counting.counts = &counts;
  // A pointer, so that there is one loop for all formats of a width, as a loop for each pair is long to compile.
  Result<To> (*const converted)(Bits<From>, const Attributes&) = [](Bits<From> bits, const Attributes& each) {
    return convert<To, From>(bits, each);
  };
  transform<To>(converted, std::span(expected), attributes, scalar, in);
  convert<To, From>(in, out, attributes, options);
  CHECK(out == expected);
  convert<To, From>(in, out, attributes, counting);
  CHECK(out == expected);
  CHECK(counts == expected_counts);
}

TEST_CASE("between any two formats: all codes, or 2^16 of them, have the scalar bits and counts") {
  for_each_format([]<const Format & From>() {
    oracle::RandomBits random(47);
    std::vector<Bits<From>> in;
    std::vector<std::uint32_t> random_bits;
    const int width = From.width();
    for (std::uint64_t i = 0; i < std::min(std::uint64_t{1} << std::min(width, 16), std::uint64_t{1} << 16);
         ++i) {
      in.push_back(static_cast<Bits<From>>(width <= 16 ? i : random.next() >> (64 - width)));
      random_bits.push_back(static_cast<std::uint32_t>(random.next()));
    }
    for_each_format([&]<const Format & To>() {
      CAPTURE(name_of(From));
      CAPTURE(name_of(To));
      check_conversion<To, From>(in, {}, {.threads = 2});
      check_conversion<To, From>(in, {.rounding = Rounding::toward_negative, .saturate = true}, {});
      check_conversion<To, From>(in, {.nan_policy = NanPolicy::canonical_nvidia}, {});
      check_conversion<To, From>(in, {.flush_to_zero = true, .denormals_are_zero = true}, {});
      check_conversion<To, From>(in, {Rounding::stochastic}, {.random_bits_32 = random_bits});
    });
  });
}

TEST_CASE("stochastic rounding without as many random numbers, and no threads, are refused") {
  const std::vector<float> floats(8, 0.1f);
  const std::vector<std::uint32_t> random_bits(7);
  std::vector<std::uint16_t> halves(8);
  CHECK_THROWS_WITH_AS(float_to_half(floats, halves, {Rounding::stochastic}),
                       "random_bits_32: has 0 elements; must have 8, as the other arrays",
                       std::invalid_argument);
  CHECK_THROWS_WITH_AS(float_to_half(floats, halves, {Rounding::stochastic}, {.random_bits_32 = random_bits}),
                       "random_bits_32: has 7 elements; must have 8, as the other arrays",
                       std::invalid_argument);
  const std::vector<std::uint64_t> wide_bits(8, ~std::uint64_t{0});
  float_to_half(floats, halves, {Rounding::stochastic}, {.random_bits_64 = wide_bits});
  CHECK(halves == std::vector<std::uint16_t>(8, 0x2e66));  // never away from zero
  const std::vector<std::uint32_t> enough_bits(8);
  CHECK_THROWS_WITH_AS(float_to_half(floats, halves, {Rounding::stochastic},
                                     {.random_bits_32 = enough_bits, .random_bits_64 = wide_bits}),
                       "random_bits_32, random_bits_64, random: 2 are given; one of them is allowed",
                       std::invalid_argument);
  CHECK_THROWS_AS(float_to_half(floats, halves, {Rounding::stochastic},
                                {.random_bits_32 = enough_bits, .random = PhiloxSequence{}}),
                  std::invalid_argument);
  CHECK_THROWS_WITH_AS(float_to_half(floats, halves, {}, {.threads = 0}),
                       "threads: 0 is not allowed; at least 1", std::invalid_argument);
}

TEST_CASE("bits drawn as it goes are those of the generator, whatever the path, the threads and the start") {
  const PhiloxSequence random{{.key = 0x0123456789abcdef, .stream = 77}, (std::uint64_t{1} << 40) - 5};
  for_each_format([&]<const Format & F>() {
    if constexpr (F.has_arithmetic() && F.width() <= 19) {
      CAPTURE(name_of(F));
      const std::vector<float> floats = hard_floats_for<F>(10001);
      for (const std::size_t begin : {0, 1, 2, 3, 4097}) {
        const std::span<const float> in = std::span(floats).subspan(begin);
        std::vector<std::uint32_t> bits(in.size());
        for (std::size_t i = 0; i < bits.size(); ++i) bits[i] = random.generator.bits(random.first + i);
        std::vector<Bits<F>> expected(in.size()), out(in.size());
        RoundingCounts expected_counts, counts;
        transform<F>([](float value, const Attributes& each) { return encode<F>(value, each); },
                     std::span(expected), {Rounding::stochastic},
                     {.counts = &expected_counts, .random_bits_32 = bits}, in);
        for (const VectorPath path : available_vector_paths()) {
          CAPTURE(name_of(path));
          counts = {};
          encode<F>(in, out, {Rounding::stochastic},
                    {.path = path, .threads = 3, .counts = &counts, .random = random});
          CHECK(out == expected);
          CHECK(counts == expected_counts);
        }
      }
    }
  });
  const std::vector<std::uint16_t> one(9, 0x3c00), less(9, 0x1234);
  std::vector<std::uint16_t> drawn(9), given(9);
  std::vector<std::uint32_t> bits(9);
  fill_bits(random.generator, random.first, bits);
  add<binary16>(one, less, given, {Rounding::stochastic}, {.random_bits_32 = bits});
  add<binary16>(one, less, drawn, {Rounding::stochastic}, {.random = random});
  CHECK(drawn == given);
}

TEST_CASE("spans of different lengths are refused before anything is written") {
  const std::vector<float> floats(8, 1.0f);
  const std::vector<std::uint16_t> halves(8, 0x3c00);
  std::vector<std::uint16_t> short_out(7, 0);
  std::vector<float> long_out(9, 0.0f);
  RoundingCounts counts;
  CHECK_THROWS_WITH_AS(float_to_half(floats, short_out),
                       "out: has 7 elements; must have 8, as the other arrays", std::invalid_argument);
  CHECK_THROWS_AS(float_to_half(floats, short_out, {}, {.counts = &counts}), std::invalid_argument);
  CHECK_THROWS_AS(half_to_float(halves, long_out), std::invalid_argument);
  CHECK(short_out == std::vector<std::uint16_t>(7, 0));
  CHECK(counts == RoundingCounts{});
}

}  // namespace
}  // namespace fp16
