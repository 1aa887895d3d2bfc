#include "fp16/comparison.h"

#include <doctest/doctest.h>
#include <math.h>

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <utility>

#include "tests/oracle/compilers_half.h"
#include "tests/oracle/format_agreement.h"

namespace fp16 {
namespace {

static_assert(compare_quiet<binary16>(0x7e00, Predicate::unordered, 0x3c00) == Comparison{true, {}});
static_assert(compare_quiet<binary16>(0x7d00, Predicate::less, 0x3c00) ==
              Comparison{false, {.invalid = true}});
static_assert(compare_signalling<binary16>(0x7e00, Predicate::not_less, 0x3c00) ==
              Comparison{true, {.invalid = true}});
static_assert(compare_quiet<binary16>(0x0001, Predicate::equal, 0x8000, {.denormals_are_zero = true}).holds);
static_assert(total_order<binary16>(0x8000, 0x0000) && !total_order<binary16>(0x0000, 0x8000));
static_assert(total_order<e4m3_fnuz>(0x80, 0xff) && !total_order<e4m3_fnuz>(0xff, 0x80));
static_assert(total_order<e8m0>(0xfe, 0xff));

/// The predicates as the language has them, and those that it only has negated. Not inlined: GCC 12.2 at -O3
/// threads jumps through the unrolled comparisons with NaN, and one of them comes out wrong.
[[gnu::noinline]] std::array<std::pair<Predicate, bool>, 12> expected_predicates(double x, double y) {
  return {{{Predicate::equal, x == y},
           {Predicate::not_equal, x != y},
           {Predicate::less, x < y},
           {Predicate::less_equal, x <= y},
           {Predicate::greater, x > y},
           {Predicate::greater_equal, x >= y},
           {Predicate::less_unordered, !(x >= y)},
           {Predicate::not_greater, !(x > y)},
           {Predicate::greater_unordered, !(x <= y)},
           {Predicate::not_less, !(x < y)},
           {Predicate::ordered, !std::isunordered(x, y)},
           {Predicate::unordered, std::isunordered(x, y)}}};
}

/// The operands' values are `x` and `y`; returns how many answers are wrong.
template <const Format& F>
int wrong_predicates(Bits<F> a, Bits<F> b, double x, double y, bool signalling,
                     const Attributes& attributes) {
  int wrong = 0;
  for (const auto& [predicate, holds] : expected_predicates(x, y)) {
    wrong += compare_quiet<F>(a, predicate, b, attributes) != Comparison{holds, {.invalid = signalling}};
    wrong += compare_signalling<F>(a, predicate, b, attributes) !=
             Comparison{holds, {.invalid = std::isunordered(x, y)}};
  }
  const std::partial_ordering order = compare<F>(a, b);
  if (!attributes.denormals_are_zero) wrong += order != (x <=> y);
  return wrong;
}

TEST_CASE("all predicates on all pairs of the formats of at most 8 bits") {
  for_each_format([]<const Format & F>() {
    if constexpr (F.width() <= 8) {
      CAPTURE(name_of(F));
      const oracle::ExactFormat& format = oracle::exact<F>();
      int wrong = 0;
      for (std::uint64_t a = 0; a < format.codes(); ++a) {
        for (std::uint64_t b = 0; b < format.codes(); ++b) {
          const bool signalling = format.is_signalling(a) || format.is_signalling(b);
          const auto p = static_cast<Bits<F>>(a), q = static_cast<Bits<F>>(b);
          wrong += wrong_predicates<F>(p, q, format.value(a), format.value(b), signalling, {});
          wrong += wrong_predicates<F>(p, q, format.value(format.without_subnormals(a)),
                                       format.value(format.without_subnormals(b)), signalling,
                                       {.denormals_are_zero = true});
        }
      }
      CHECK(wrong == 0);
    }
  });
}

TEST_CASE("all predicates on boundary-weighted pairs of the wide formats against the processor") {
  oracle::HardHalves halves(51);
  oracle::HardFloats floats(52);
  oracle::HardDoubles doubles(53);
  int wrong = 0;
  for (int i = 0; i < 200'000; ++i) {
    const std::uint16_t a = halves.next(), b = i % 2 == 0 ? halves.next() : halves.beside(a);
    wrong += wrong_predicates<binary16>(a, b, static_cast<double>(std::bit_cast<oracle::CompilersHalf>(a)),
                                        static_cast<double>(std::bit_cast<oracle::CompilersHalf>(b)),
                                        is_signalling_nan<binary16>(a) || is_signalling_nan<binary16>(b), {});
    const std::uint32_t c = floats.next(), d = i % 2 == 0 ? floats.next() : floats.beside(c);
    wrong += wrong_predicates<binary32>(c, d, std::bit_cast<float>(c), std::bit_cast<float>(d),
                                        is_signalling_nan<binary32>(c) || is_signalling_nan<binary32>(d), {});
    const std::uint64_t e = doubles.next(), f = i % 2 == 0 ? doubles.next() : doubles.beside(e);
    wrong += wrong_predicates<binary64>(e, f, std::bit_cast<double>(e), std::bit_cast<double>(f),
                                        is_signalling_nan<binary64>(e) || is_signalling_nan<binary64>(f), {});
  }
  CHECK(wrong == 0);
}

/// IEEE 754-2019 clause 5.10, sentence by sentence.
bool comes_first(const oracle::ExactFormat& format, std::uint64_t a, std::uint64_t b) {
  const double x = format.value(a), y = format.value(b);
  const bool a_negative = format.is_negative(a), b_negative = format.is_negative(b);
  if (x < y) return true;
  if (x > y) return false;
  if (x == y) return x != 0 || a_negative || !b_negative;
  if (!format.is_nan(b)) return a_negative;
  if (!format.is_nan(a)) return !b_negative;
  if (a_negative != b_negative) return a_negative;
  const bool signalling_first = format.is_signalling(a) && !format.is_signalling(b);
  const bool quiet_first = !format.is_signalling(a) && format.is_signalling(b);
  if (signalling_first || quiet_first) return signalling_first != a_negative;
  return a_negative ? format.magnitude(a) >= format.magnitude(b) : format.magnitude(a) <= format.magnitude(b);
}

TEST_CASE("total order of all pairs of the formats of at most 8 bits") {
  for_each_format([]<const Format & F>() {
    if constexpr (F.width() <= 8) {
      CAPTURE(name_of(F));
      const oracle::ExactFormat& format = oracle::exact<F>();
      const auto size = [&](std::uint64_t code) {
        return format.is_nan(code) && !format.facts().signed_nan ? code : format.magnitude(code);
      };
      int wrong = 0;
      for (std::uint64_t a = 0; a < format.codes(); ++a) {
        for (std::uint64_t b = 0; b < format.codes(); ++b) {
          const auto p = static_cast<Bits<F>>(a), q = static_cast<Bits<F>>(b);
          wrong += total_order<F>(p, q) != comes_first(format, a, b);
          wrong += total_order_mag<F>(p, q) != comes_first(format, size(a), size(b));
        }
      }
      CHECK(wrong == 0);
    }
  });
}

TEST_CASE("total order of boundary-weighted doubles against the C library") {
  oracle::HardDoubles cases(54);
  int wrong = 0;
  for (int i = 0; i < 500'000; ++i) {
    const std::uint64_t a = cases.next(), b = i % 2 == 0 ? cases.next() : cases.beside(a);
    const auto x = std::bit_cast<double>(a), y = std::bit_cast<double>(b);
    wrong += total_order<binary64>(a, b) != (::totalorder(&x, &y) != 0);
    wrong += total_order_mag<binary64>(a, b) != (::totalordermag(&x, &y) != 0);
  }
  CHECK(wrong == 0);
}

}  // namespace
}  // namespace fp16
