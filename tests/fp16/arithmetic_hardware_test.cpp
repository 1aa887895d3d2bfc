/// The algorithms are written once for all formats: here binary32 and binary64 are held to the host's
/// arithmetic, in its four directions, with its flags.

#include <doctest/doctest.h>

#include <array>
#include <bit>
#include <cfenv>
#include <cmath>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

#include "fp16/arithmetic.h"
#include "fp16/codec.h"
#include "fp16/vector/environment.h"
#include "tests/oracle/agreement.h"
#include "tests/oracle/hard_cases.h"

namespace fp16 {
namespace {

struct HostDirection {
  Rounding mode;
  int environment;
};
constexpr std::array host_directions{HostDirection{Rounding::nearest_even, FE_TONEAREST},
                                     HostDirection{Rounding::toward_zero, FE_TOWARDZERO},
                                     HostDirection{Rounding::toward_positive, FE_UPWARD},
                                     HostDirection{Rounding::toward_negative, FE_DOWNWARD}};

class ScopedDirection {
 public:
  explicit ScopedDirection(int environment) { std::fesetround(environment); }
  ~ScopedDirection() { std::fesetround(FE_TONEAREST); }
};

Flags raised_flags() {
  const int raised = std::fetestexcept(FE_ALL_EXCEPT);
  return {.inexact = (raised & FE_INEXACT) != 0,
          .underflow = (raised & FE_UNDERFLOW) != 0,
          .overflow = (raised & FE_OVERFLOW) != 0,
          .divide_by_zero = (raised & FE_DIVBYZERO) != 0,
          .invalid = (raised & FE_INVALID) != 0};
}

unsigned as_number(Flags flags) {
  return flags.inexact | flags.underflow << 1 | flags.overflow << 2 | flags.divide_by_zero << 3 |
         flags.invalid << 4;
}

/// Holds the operations of one format to the host type Real. Which of several NaNs the host returns depends
/// on the operand order that the compiler chose, so NaN results count as equal; flags are compared always.
template <const Format& F, typename Real, typename Cases>
class HostComparison {
 public:
  HostComparison(std::string name, std::uint64_t seed) : comparison_(std::move(name)), cases_(seed) {}

  void run(int count) {
    for (const auto& [mode, environment] : host_directions) {
      const ScopedDirection direction(environment);
      for (int i = 0; i < count; ++i) compare_all(mode, i);
    }
    comparison_.finish(std::uint64_t{2} * 6 * 4 * count);
  }

 private:
  using Code = Bits<F>;

  void compare_all(Rounding mode, int index) {
    const Attributes attributes{.rounding = mode, .tininess = detail::processors_tininess};
    const Code a = cases_.next();
    const Code b = index % 4 < 2 ? cases_.next() : index % 4 == 2 ? cases_.near(a) : cases_.beside(a);
    // Volatile operands and results keep the operations at run time and between the reads of the flags.
    volatile Real x = std::bit_cast<Real>(a), y = std::bit_cast<Real>(b);
    compare("add", add<F>(a, b, attributes), [&] { return x + y; }, {a, b});
    compare("subtract", subtract<F>(a, b, attributes), [&] { return x - y; }, {a, b});
    compare("multiply", multiply<F>(a, b, attributes), [&] { return x * y; }, {a, b});
    compare("divide", divide<F>(a, b, attributes), [&] { return x / y; }, {a, b});
    compare("sqrt", sqrt<F>(a, attributes), [&] { return std::sqrt(static_cast<Real>(x)); }, {a});

    const Code product = multiply<F>(a, b).bits;
    const Code c = index % 3 == 0   ? cases_.next()
                   : index % 3 == 1 ? cases_.near(product)
                                    : cases_.beside(product);
    volatile Real z = std::bit_cast<Real>(c);
    // IEEE 754 leaves open whether an infinity times zero plus a quiet NaN is invalid.
    const bool is_invalid_product = is_nan<F>(product) && !is_nan<F>(a) && !is_nan<F>(b);
    const bool is_open = is_invalid_product && is_nan<F>(c) && !is_signalling_nan<F>(c);
    compare("fma", fma<F>(a, b, c, attributes),
            [&] { return std::fma(static_cast<Real>(x), static_cast<Real>(y), static_cast<Real>(z)); },
            {a, b, c}, {.invalid = is_open});
  }

  template <typename Compute>
  void compare(std::string_view operation, const Result<F>& got, Compute compute,
               std::initializer_list<std::uint64_t> operands, Flags open = {}) {
    std::feclearexcept(FE_ALL_EXCEPT);
    volatile Real result = compute();
    const Flags flags = raised_flags();
    const auto expected = std::bit_cast<Code>(static_cast<Real>(result));
    const bool both_nan = is_nan<F>(got.bits) && is_nan<F>(expected);
    comparison_.template equal<std::uint64_t>(both_nan ? expected : got.bits, expected, operation, operands);
    comparison_.template equal<std::uint64_t>(as_number(got.flags | open), as_number(flags | open), operation,
                                              operands);
  }

  oracle::Comparison comparison_;
  Cases cases_;
};

TEST_CASE("binary32 arithmetic equals the host's float: values and flags, four directions") {
  HostComparison<binary32, float, oracle::HardFloats>("binary32", 21).run(300'000);
}

TEST_CASE("binary64 arithmetic equals the host's double: values and flags, four directions") {
  HostComparison<binary64, double, oracle::HardDoubles>("binary64", 22).run(100'000);
}

TEST_CASE("double to float equals the host's conversion in four directions, float to double is exact") {
  constexpr int count = 500'000;
  oracle::Comparison narrowing("double to float"), widening("float to double");
  oracle::HardDoubles doubles(23);
  oracle::HardFloats floats(24);
  oracle::RandomBits random(25);
  for (const auto& [mode, environment] : host_directions) {
    const ScopedDirection direction(environment);
    for (int i = 0; i < count; ++i) {
      const std::uint32_t narrow = floats.next();
      const volatile float x = std::bit_cast<float>(narrow);
      const volatile double widened = x;
      const auto exact = std::bit_cast<std::uint64_t>(static_cast<double>(widened));
      widening.equal<std::uint64_t>(convert<binary64, binary32>(narrow).bits, exact, "", {narrow});

      const std::uint64_t wide = i % 2 == 0 ? doubles.next() : exact + random.below(1 << 30);
      const volatile double y = std::bit_cast<double>(wide);
      std::feclearexcept(FE_ALL_EXCEPT);
      const volatile float rounded = static_cast<float>(y);
      const Flags flags = raised_flags();
      const Result<binary32> got =
          convert<binary32, binary64>(wide, {.rounding = mode, .tininess = detail::processors_tininess});
      const auto expected = std::bit_cast<std::uint32_t>(static_cast<float>(rounded));
      narrowing.equal<std::uint64_t>(got.bits, expected, "", {wide});
      narrowing.equal<std::uint64_t>(as_number(got.flags), as_number(flags), "flags", {wide});
    }
  }
  widening.finish(4 * count);
  narrowing.finish(2 * 4 * count);
}

}  // namespace
}  // namespace fp16
