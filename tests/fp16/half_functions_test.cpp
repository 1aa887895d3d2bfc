#include "fp16/half_functions.h"

#include <doctest/doctest.h>

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <string_view>
#include <type_traits>

#include "tests/oracle/agreement.h"
#include "tests/oracle/hard_cases.h"

/// Every result of these functions on halves is a half, so <cmath>'s on float are an oracle.
namespace without_math_h {

template <typename... Values>
concept gives_halves = (std::is_same_v<Values, fp16::half> && ...);
template <typename Half>
concept is_never_c_s = requires(Half x) {
  requires gives_halves<
      decltype(exp(x)), decltype(exp2(x)), decltype(exp10(x)), decltype(expm1(x)), decltype(log(x)),
      decltype(log2(x)), decltype(log10(x)), decltype(log1p(x)), decltype(sin(x)), decltype(cos(x)),
      decltype(tan(x)), decltype(asin(x)), decltype(acos(x)), decltype(atan(x)), decltype(sinh(x)),
      decltype(cosh(x)), decltype(tanh(x)), decltype(asinh(x)), decltype(acosh(x)), decltype(atanh(x)),
      decltype(cbrt(x)), decltype(erf(x)), decltype(erfc(x)), decltype(tgamma(x)), decltype(lgamma(x)),
      decltype(pow(x, x)), decltype(hypot(x, x)), decltype(atan2(x, x))>;
};
static_assert(is_never_c_s<fp16::half>);

}  // namespace without_math_h

namespace fp16 {
namespace {

std::uint64_t bits_of(half a) {
  return isnan(a) ? 0x7e00u : a.bits();
}

template <typename OnHalf, typename OnFloat>
void check_unary(std::string_view name, OnHalf on_half, OnFloat on_float) {
  oracle::Comparison comparison{std::string(name)};
  for (std::uint32_t code = 0; code < 0x10000; ++code) {
    const half a = half::from_bits(static_cast<std::uint16_t>(code));
    comparison.equal<std::uint64_t>(bits_of(on_half(a)), bits_of(half(on_float(static_cast<float>(a)))), "",
                                    {code});
  }
  comparison.finish(0x10000);
}

TEST_CASE("unary functions and parts of numbers are those of float, for all halves") {
  check_unary(
      "fabs", [](half a) { return fabs(a); }, [](float a) { return std::fabs(a); });
  check_unary(
      "floor", [](half a) { return floor(a); }, [](float a) { return std::floor(a); });
  check_unary(
      "ceil", [](half a) { return ceil(a); }, [](float a) { return std::ceil(a); });
  check_unary(
      "trunc", [](half a) { return trunc(a); }, [](float a) { return std::trunc(a); });
  check_unary(
      "round", [](half a) { return round(a); }, [](float a) { return std::round(a); });
  check_unary(
      "roundeven", [](half a) { return roundeven(a); }, [](float a) { return std::nearbyint(a); });
  check_unary(
      "rint", [](half a) { return rint(a); }, [](float a) { return std::nearbyint(a); });
  check_unary(
      "nearbyint", [](half a) { return nearbyint(a); }, [](float a) { return std::nearbyint(a); });
  check_unary(
      "logb", [](half a) { return logb(a); }, [](float a) { return std::logb(a); });
  check_unary(
      "isnormal", [](half a) { return half(isnormal(a)); },
      [](float a) { return std::isnormal(a) && std::fabs(a) >= 0x1p-14f ? 1.0f : 0.0f; });
  check_unary(
      "fpclassify", [](half a) { return half(fpclassify(a)); },
      [](float a) {
        const bool subnormal = a != 0 && std::fabs(a) < 0x1p-14f;
        return static_cast<float>(subnormal ? FP_SUBNORMAL : std::fpclassify(a));
      });
  check_unary(
      "ilogb", [](half a) { return half(isfinite(a) && a != half(0.0f) ? ilogb(a) : 0); },
      [](float a) { return std::isfinite(a) && a != 0 ? static_cast<float>(std::ilogb(a)) : 0.0f; });
  const auto fraction = [](auto a) {
    int exponent = 0;
    return frexp(a, &exponent);
  };
  check_unary("frexp", fraction, [](float a) {
    int exponent = 0;
    return std::frexp(a, &exponent);
  });
  check_unary(
      "exponent of frexp",
      [](half a) {
        int exponent = 0;
        frexp(a, &exponent);
        return half(isfinite(a) ? exponent : 0);
      },
      [](float a) {
        int exponent = 0;
        std::frexp(a, &exponent);
        return std::isfinite(a) ? static_cast<float>(exponent) : 0.0f;
      });
  check_unary(
      "modf",
      [](half a) {
        half integral;
        return modf(a, &integral);
      },
      [](float a) {
        float integral = 0;
        return std::modf(a, &integral);
      });
  check_unary(
      "integral part of modf",
      [](half a) {
        half integral;
        modf(a, &integral);
        return integral;
      },
      [](float a) {
        float integral = 0;
        std::modf(a, &integral);
        return integral;
      });
}

template <typename OnHalf, typename OnFloat>
void check_binary(std::string_view name, OnHalf on_half, OnFloat on_float) {
  constexpr std::uint64_t pairs = 300'000;
  oracle::Comparison comparison{std::string(name)};
  oracle::HardHalves cases(51);
  for (std::uint64_t i = 0; i < pairs; ++i) {
    const half a = half::from_bits(cases.next());
    half b = half::from_bits(i % 2 == 0 ? cases.next() : cases.beside(a.bits()));
    // Which of two zeros is the smaller one differs between libraries, and the sign of some zero remainders.
    if (a == b || b == half(0.0f)) b = half(0.5f);
    const half expected(on_float(static_cast<float>(a), static_cast<float>(b)));
    comparison.equal<std::uint64_t>(bits_of(on_half(a, b)), bits_of(expected), "", {a.bits(), b.bits()});
  }
  comparison.finish(pairs);
}

TEST_CASE("binary functions are those of float where these are halves") {
  check_binary(
      "copysign", [](half a, half b) { return copysign(a, b); },
      [](float a, float b) { return std::copysign(a, b); });
  check_binary(
      "fmin", [](half a, half b) { return fmin(a, b); }, [](float a, float b) { return std::fmin(a, b); });
  check_binary(
      "fmax", [](half a, half b) { return fmax(a, b); }, [](float a, float b) { return std::fmax(a, b); });
  check_binary(
      "fminimum", [](half a, half b) { return fminimum(a, b); },
      [](float a, float b) { return std::isnan(a) || std::isnan(b) ? NAN : std::fmin(a, b); });
  check_binary(
      "fmaximum", [](half a, half b) { return fmaximum(a, b); },
      [](float a, float b) { return std::isnan(a) || std::isnan(b) ? NAN : std::fmax(a, b); });
  check_binary(
      "fmod", [](half a, half b) { return fmod(a, b); }, [](float a, float b) { return std::fmod(a, b); });
  check_binary(
      "remainder", [](half a, half b) { return remainder(a, b); },
      [](float a, float b) {
        return std::copysign(std::remainder(a, b), std::remainder(a, b) == 0 ? a : std::remainder(a, b));
      });
}

TEST_CASE("neighbours and scaling of values worked out by hand") {
  const half one(1.0f), tiny = half::from_bits(1), largest = half::from_bits(0x7bff);
  CHECK(nextup(one).bits() == 0x3c01);
  CHECK(nextdown(one).bits() == 0x3bff);
  CHECK(nextdown(tiny).bits() == 0x0000);
  CHECK(isinf(nextup(largest)));
  CHECK(nextafter(one, half(0.0f)).bits() == 0x3bff);
  CHECK(nextafter(one, largest).bits() == 0x3c01);
  CHECK(scalbn(half(3.0f), -25).bits() == 0x0002);  // 1.5 * 2^-24, a tie
  CHECK(ldexp(half(3.0f), 14).bits() == 0x7a00);
  CHECK(isinf(ldexp(half(3.0f), 15)));
}

}  // namespace
}  // namespace fp16
