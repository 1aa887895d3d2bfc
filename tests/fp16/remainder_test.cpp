#include "fp16/remainder.h"

#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <string>

#include "fp16/codec.h"
#include "tests/fp16/operations.h"
#include "tests/oracle/format_agreement.h"

namespace fp16 {
namespace {

using oracle::Options;

static_assert(remainder<binary16>(0x4500, 0x4000).bits == 0x3c00);  // 5 - 2 * 2
static_assert(remainder<binary16>(0x4700, 0x4000).bits == 0xbc00);  // 7 - 2 * 4
static_assert(fmod<binary16>(0x4700, 0x4000).bits == 0x3c00);
static_assert(remainder<binary16>(0xc400, 0x4000).bits == 0x8000);
static_assert(remainder<binary16>(0x3c00, 0x7c00).bits == 0x3c00);
static_assert(remainder<binary16>(0x0001, 0x7c00, {.flush_to_zero = true}) ==
              Result<binary16>{0x0000, {.inexact = true, .underflow = true}});
static_assert(remainder<binary16>(0x7c00, 0x3c00) == Result<binary16>{0xfe00, {.invalid = true}});
static_assert(remainder<binary16>(0x3c00, 0x0001, {.denormals_are_zero = true}).flags.invalid);
static_assert(remainder<binary64>(0x7fefffffffffffff, 0x0000000000000003).bits == 0x8000000000000001);

/// std::remainder and std::fmod are exact in double.
template <const Format& F>
void compare_pair_of(oracle::Comparison& comparison, std::uint64_t a, std::uint64_t b,
                     const Options& options) {
  const oracle::ExactFormat& format = oracle::exact<F>();
  const std::uint64_t p = oracle::operand<F>(options, a), q = oracle::operand<F>(options, b);
  const auto ideal = [&](double (*compute)(double, double)) {
    if (format.is_nan(p) || format.is_nan(q)) return oracle::add(format, p, q);
    if (format.is_infinity(p) || format.is_zero(q))
      return oracle::Ideal{.kind = oracle::Ideal::Kind::invalid};
    return oracle::from_double(compute(format.value(p), format.value(q)));
  };
  const auto x = static_cast<Bits<F>>(a), y = static_cast<Bits<F>>(b);
  oracle::agree<F>(comparison, ideal(std::remainder), options, {a, b},
                   [&](const Attributes& attributes) { return remainder<F>(x, y, attributes); });
  oracle::agree<F>(comparison, ideal(std::fmod), options, {a, b, 'f'},
                   [&](const Attributes& attributes) { return fmod<F>(x, y, attributes); });
}

TEST_CASE("remainders of all pairs of the formats of at most 8 bits") {
  for_each_small_format([]<const Format & F>() {
    oracle::Comparison comparison("remainder in " + std::string(name_of(F)));
    constexpr std::uint64_t codes = std::uint64_t{1} << F.width();
    for (std::uint64_t pair = 0; pair < codes * codes; ++pair) {
      for (std::uint64_t i = 0; i < 3; ++i)
        compare_pair_of<F>(comparison, pair / codes, pair % codes, Options::of_case(3 * pair + i));
    }
    comparison.finish(codes * codes * 3 * 2 * 11);
  });
}

/// The processor's NaN is any NaN; an invalid operation must be one and nothing else may.
template <const Format& F, typename Float>
void compare_bits(oracle::Comparison& comparison, Bits<F> a, Bits<F> b) {
  const auto x = std::bit_cast<Float>(a), y = std::bit_cast<Float>(b);
  const auto check = [&](const Result<F>& got, Float expected, std::string_view name) {
    const bool nan = is_nan<F>(got.bits) && std::isnan(expected);
    comparison.equal<std::uint64_t>(got.bits, nan ? got.bits : std::bit_cast<Bits<F>>(expected), name,
                                    {a, b});
  };
  // glibc 2.36 gets the sign of some zeros wrong where y is among the smallest numbers.
  const Float reference = std::remainder(x, y);
  check(remainder<F>(a, b), reference == 0 ? std::copysign(reference, x) : reference, "remainder");
  check(fmod<F>(a, b), std::fmod(x, y), "fmod");
}

TEST_CASE("remainders of boundary-weighted floats and doubles against the C++ library") {
  constexpr std::uint64_t pairs = 200'000;
  oracle::HardFloats floats(91);
  oracle::HardDoubles doubles(92);
  oracle::Comparison comparison("remainder");
  for (std::uint64_t i = 0; i < pairs; ++i) {
    const std::uint32_t a = floats.next();
    compare_bits<binary32, float>(comparison, a,
                                  i % 3 == 0   ? floats.next()
                                  : i % 3 == 1 ? floats.near(a)
                                               : floats.beside(a));
    const std::uint64_t b = doubles.next();
    compare_bits<binary64, double>(comparison, b,
                                   i % 3 == 0   ? doubles.next()
                                   : i % 3 == 1 ? doubles.near(b)
                                                : doubles.beside(b));
  }
  comparison.finish(pairs * 4);
}

TEST_CASE("remainders of boundary-weighted halves and bfloat16 numbers, ties included") {
  constexpr std::uint64_t pairs = 100'000;
  oracle::HardHalves halves(93);
  oracle::HardCases<std::uint16_t, 7> brains(94);
  oracle::RandomBits random(95);
  oracle::Comparison comparison("remainder in 16 bits");
  // a = b * (n + 1/2), where that is a number, is a tie.
  const auto tie = [&](double b) { return b * (random.below(64) + 0.5); };
  for (std::uint64_t i = 0; i < pairs; ++i) {
    const Options options = i % 8 == 0 ? Options::of_case(i) : Options(0);
    const std::uint16_t b = halves.next(), d = brains.next();
    compare_pair_of<binary16>(
        comparison, i % 2 == 0 ? encode<binary16>(tie(decode<binary16>(b))).bits : halves.next(), b, options);
    compare_pair_of<bfloat16>(
        comparison, i % 2 == 0 ? encode<bfloat16>(tie(decode<bfloat16>(d))).bits : brains.next(), d, options);
  }
  comparison.finish(pairs * 2 * 2 * 11);
}

}  // namespace
}  // namespace fp16
