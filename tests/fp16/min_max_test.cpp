#include "fp16/min_max.h"

#include <doctest/doctest.h>
#include <math.h>

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <string_view>

#include "tests/oracle/format_agreement.h"

namespace fp16 {
namespace {

static_assert(minimum<binary16>(0x0000, 0x8000).bits == 0x8000);
static_assert(maximum<binary16>(0x7e01, 0x3c00).bits == 0x7e01);
static_assert(maximum_number<binary16>(0x7d01, 0x3c00) == Result<binary16>{0x3c00, {.invalid = true}});
static_assert(max_num<binary16>(0x7d01, 0x3c00) == Result<binary16>{0x7f01, {.invalid = true}});
static_assert(maximum_magnitude<binary16>(0x3c00, 0xc000).bits == 0xc000);
static_assert(minimum_magnitude<binary16>(0x3c00, 0xbc00).bits == 0xbc00);

enum class Nan { propagates, is_missing, is_missing_if_quiet };

template <const Format& F>
struct Kind {
  std::string_view name;
  Result<F> (*compute)(Code<F>, Code<F>, const Attributes&);
  Nan nan;
  bool larger, by_magnitude;
};

template <const Format& F>
constexpr std::array<Kind<F>, 12> kinds{
    {{"minimum", minimum<F>, Nan::propagates, false, false},
     {"maximum", maximum<F>, Nan::propagates, true, false},
     {"minimum_number", minimum_number<F>, Nan::is_missing, false, false},
     {"maximum_number", maximum_number<F>, Nan::is_missing, true, false},
     {"min_num", min_num<F>, Nan::is_missing_if_quiet, false, false},
     {"max_num", max_num<F>, Nan::is_missing_if_quiet, true, false},
     {"minimum_magnitude", minimum_magnitude<F>, Nan::propagates, false, true},
     {"maximum_magnitude", maximum_magnitude<F>, Nan::propagates, true, true},
     {"minimum_magnitude_number", minimum_magnitude_number<F>, Nan::is_missing, false, true},
     {"maximum_magnitude_number", maximum_magnitude_number<F>, Nan::is_missing, true, true},
     {"min_num_mag", min_num_mag<F>, Nan::is_missing_if_quiet, false, true},
     {"max_num_mag", max_num_mag<F>, Nan::is_missing_if_quiet, true, true}}};

/// Which of two numbers, as the standard words it.
std::uint64_t expected_number(const oracle::ExactFormat& format, std::uint64_t a, std::uint64_t b,
                              bool larger, bool by_magnitude) {
  const double x = format.value(a), y = format.value(b);
  if (by_magnitude && std::fabs(x) != std::fabs(y)) return (std::fabs(x) < std::fabs(y)) != larger ? a : b;
  if (x != y) return (x < y) != larger ? a : b;
  return format.is_negative(a) != larger ? a : b;
}

template <const Format& F>
oracle::Answer expected(std::uint64_t a, std::uint64_t b, const Kind<F>& kind) {
  const oracle::ExactFormat& format = oracle::exact<F>();
  if (!format.is_nan(a) && !format.is_nan(b))
    return {.bits = expected_number(format, a, b, kind.larger, kind.by_magnitude)};
  const bool invalid = format.is_signalling(a) || format.is_signalling(b);
  const bool both = format.is_nan(a) && format.is_nan(b);
  const bool becomes_nan =
      both || kind.nan == Nan::propagates || (kind.nan == Nan::is_missing_if_quiet && invalid);
  const std::uint64_t nan = (format.is_nan(a) ? a : b) | format.facts().quiet_bit;
  return {.bits = becomes_nan ? nan : format.is_nan(a) ? b : a, .invalid = invalid};
}

TEST_CASE("all kinds on all pairs of the formats of at most 8 bits") {
  for_each_format([]<const Format & F>() {
    if constexpr (F.width() <= 8) {
      const oracle::ExactFormat& format = oracle::exact<F>();
      for (const Kind<F>& kind : kinds<F>) {
        oracle::Comparison comparison(std::string(kind.name) + " in " + std::string(name_of(F)));
        for (std::uint64_t a = 0; a < format.codes(); ++a) {
          for (std::uint64_t b = 0; b < format.codes(); ++b) {
            const auto p = static_cast<Bits<F>>(a), q = static_cast<Bits<F>>(b);
            comparison.equal(oracle::as_answer<F>(kind.compute(p, q, {})), expected<F>(a, b, kind), "",
                             {a, b});
            comparison.equal(oracle::as_answer<F>(kind.compute(p, q, {.denormals_are_zero = true})),
                             expected<F>(format.without_subnormals(a), format.without_subnormals(b), kind),
                             "daz", {a, b});
          }
        }
        comparison.finish(2 * format.codes() * format.codes());
      }
    }
  });
}

TEST_CASE("a NaN result follows the NaN policy") {
  CHECK(minimum<binary16>(0xfd01, 0x3c00, {.nan_policy = NanPolicy::canonical_nvidia}) ==
        Result<binary16>{0x7fff, {.invalid = true}});
  CHECK(max_num<binary16>(0x7e01, 0xfe02, {.nan_policy = NanPolicy::canonical_riscv}).bits == 0x7e00);
  CHECK(max_num<binary16>(0x7e01, 0x3c00, {.nan_policy = NanPolicy::canonical_riscv}).bits == 0x3c00);
}

using DoubleFunction = double (*)(double, double);
constexpr std::array<DoubleFunction, 12> library_functions{
    ::fminimum,     ::fmaximum,     ::fminimum_num,     ::fmaximum_num,     ::fmin,    ::fmax,
    ::fminimum_mag, ::fmaximum_mag, ::fminimum_mag_num, ::fmaximum_mag_num, ::fminmag, ::fmaxmag};

TEST_CASE("all kinds on boundary-weighted doubles against the C library") {
  constexpr int pairs = 100'000;
  oracle::HardDoubles cases(55);
  for (std::size_t i = 0; i < library_functions.size(); ++i) {
    const Kind<binary64>& kind = kinds<binary64>[i];
    oracle::Comparison comparison(std::string(kind.name) + " in binary64");
    for (int j = 0; j < pairs; ++j) {
      const std::uint64_t a = cases.next();
      const std::uint64_t b = j % 3 == 0   ? cases.next()
                              : j % 3 == 1 ? cases.beside(a)
                                           : a ^ sign_mask<binary64>;
      std::uint64_t got = kind.compute(a, b, {}).bits;
      std::uint64_t reference = std::bit_cast<std::uint64_t>(
          library_functions[i](std::bit_cast<double>(a), std::bit_cast<double>(b)));
      // The C library's choice of NaN is its own, and so is that of 2008's kinds between -0 and +0.
      const bool free_zero =
          kind.nan == Nan::is_missing_if_quiet && is_zero<binary64>(a) && is_zero<binary64>(b);
      if ((is_nan<binary64>(got) && is_nan<binary64>(reference)) || free_zero) reference = got;
      comparison.equal<std::uint64_t>(got, reference, "", {a, b});
    }
    comparison.finish(pairs);
  }
}

}  // namespace
}  // namespace fp16
