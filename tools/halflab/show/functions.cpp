#include "tools/halflab/show/functions.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <stdexcept>

#include "fp16/codec.h"
#include "fp16/formats.h"

namespace halflab::show {
namespace {

/// Fractional bits of what is computed with: the results' 192, three times, so that two orders of a function that is near to a
/// short number are seen before what is cut off, and some for its errors.
constexpr int fraction_bits = 704;
/// What is left out below this much of a number does not reach the bits that are shown.
constexpr int tiny = -194;
/// tanh and its kin come this near to what they never reach.
constexpr double saturated = 160;

ExactNumber number(double x) {
  return ExactNumber(fp16::unpack<fp16::binary64, std::uint64_t>(std::bit_cast<std::uint64_t>(x)));
}

ExactNumber cut(const ExactNumber& x) {
  return x.cut_below(-fraction_bits);
}

ExactNumber over(const ExactNumber& a, const ExactNumber& b) {
  return quotient(a, b, fraction_bits);
}

ExactNumber scaled(const ExactNumber& x, int exponent) {
  return x * ExactNumber(false, {1}, exponent);
}

/// first + first * ratio / (divisors of k = 1) + ...: each term is the one before times `ratio`, over what `divisor` says of k.
ExactNumber series(const ExactNumber& first, const ExactNumber& ratio, double (*divisor)(int)) {
  ExactNumber sum = first, term = first;
  for (int k = 1; !term.is_zero(); ++k) {
    term = cut(over(term * ratio, number(divisor(k))));
    sum = sum + term;
  }
  return sum;
}

/// The inverse tangent of 1/n, or hyperbolic tangent where `sign` is 1: the sum of sign^k / ((2k + 1) n^(2k + 1)).
ExactNumber inverse_tangent_of_reciprocal(double n, int sign) {
  ExactNumber power = cut(over(number(1), number(n))), sum;
  for (int k = 0; !power.is_zero(); ++k) {
    sum = sum + cut(over(power, number(2 * k + 1)));
    power = cut(over(power, number(sign * n * n)));
  }
  return sum;
}

const ExactNumber& ln2() {
  static const ExactNumber value = number(2) * inverse_tangent_of_reciprocal(3, 1);
  return value;
}

/// Machin's formula.
const ExactNumber& half_pi() {
  static const ExactNumber value =
      number(8) * inverse_tangent_of_reciprocal(5, -1) + number(-2) * inverse_tangent_of_reciprocal(239, -1);
  return value;
}

/// x less the multiple of `period` next to it.
struct Reduced {
  double multiple;
  ExactNumber rest;
};

/// The name is the function's, for what is too large.
Reduced reduce(const ExactNumber& x, const ExactNumber& period, std::string_view name) {
  constexpr double largest = 65536;
  const double as_double = ratio(x, number(1));
  if (std::fabs(as_double) > largest)
    throw std::invalid_argument(
        fmt::format("{:.6g} is too large for {}: allowed are -{} to {}", as_double, name, largest, largest));
  const double multiple = std::nearbyint(ratio(x, period));
  return {multiple, cut(x + number(-multiple) * period)};
}

/// To fraction_bits significant ones.
ExactNumber exponential(const ExactNumber& x) {
  constexpr int halvings = 8;
  const Reduced reduced = reduce(x, ln2(), "exp");
  ExactNumber power = series(number(1), scaled(reduced.rest, -halvings), [](int k) { return double(k); });
  for (int i = 0; i < halvings; ++i) power = cut(power * power);
  return scaled(power, static_cast<int>(reduced.multiple));
}

/// Each step triples the digits of a double's logarithm.
ExactNumber logarithm(double x) {
  ExactNumber y = number(std::log(x));
  for (int step = 0; step < 3; ++step) {
    const ExactNumber factor = number(x) * exponential(-y);
    y = cut(y + number(2) * over(factor + number(-1), factor + number(1)));
  }
  return y;
}

struct SineAndCosine {
  ExactNumber sine, cosine;
};

SineAndCosine sine_and_cosine(double x) {
  const auto [multiple, rest] = reduce(number(x), half_pi(), "sin, cos and tan");
  const ExactNumber square = -cut(rest * rest);
  const ExactNumber sine = series(rest, square, [](int k) { return 2.0 * k * (2 * k + 1); });
  const ExactNumber cosine = series(number(1), square, [](int k) { return 2.0 * k * (2 * k - 1); });
  switch (static_cast<int>(multiple) & 3) {
    case 0:
      return {sine, cosine};
    case 1:
      return {cosine, -sine};
    case 2:
      return {-sine, -cosine};
    default:
      return {-cosine, sine};
  }
}

ExactNumber leading_bits(const ExactNumber& x) {
  return x.cut_behind(ExactNumber::leading_bit_count, true);
}

/// x and less than any bit that is shown, outward or toward zero.
ExactNumber next_to(double x, bool is_outward) {
  const ExactNumber exact = number(x);
  if (is_outward) return leading_bits(exact);
  const ExactNumber last(x < 0, {1}, exact.leading_exponent() - ExactNumber::leading_bit_count);
  return leading_bits(exact + -last);
}

bool is_below(double x, int exponent) {
  return std::fabs(x) < std::ldexp(1.0, exponent);
}

ExactNumber exp(double x) {
  return is_below(x, tiny) ? next_to(1, x > 0) : leading_bits(exponential(number(x)));
}

ExactNumber exp2(double x) {
  if (x == std::nearbyint(x) && is_below(x, 17)) return ExactNumber(false, {1}, static_cast<int>(x));
  return is_below(x, tiny) ? next_to(1, x > 0) : leading_bits(exponential(cut(number(x) * ln2())));
}

std::optional<ExactNumber> log(double x) {
  if (x < 0) return std::nullopt;
  return x == 1 ? ExactNumber() : leading_bits(logarithm(x));
}

std::optional<ExactNumber> log2(double x) {
  if (x < 0) return std::nullopt;
  int exponent = 0;
  if (std::frexp(x, &exponent) == 0.5) return number(exponent - 1);
  return leading_bits(over(logarithm(x), ln2()));
}

ExactNumber sin(double x) {
  return is_below(x, tiny / 2) ? next_to(x, false) : leading_bits(sine_and_cosine(x).sine);
}

ExactNumber cos(double x) {
  return is_below(x, tiny / 2) ? next_to(1, false) : leading_bits(sine_and_cosine(x).cosine);
}

ExactNumber tan(double x) {
  if (is_below(x, tiny / 2)) return next_to(x, true);
  const auto [sine, cosine] = sine_and_cosine(x);
  return leading_bits(over(sine, cosine));
}

ExactNumber tanh(double x) {
  if (is_below(x, tiny / 2)) return next_to(x, false);
  if (std::fabs(x) > saturated) return next_to(std::copysign(1.0, x), false);
  const ExactNumber power = exponential(number(2 * x));
  return leading_bits(over(power + number(-1), power + number(1)));
}

/// 1 + e^-x, to fraction_bits significant ones.
ExactNumber inverse_sigmoid(double x) {
  return (number(1) + exponential(number(-x))).cut_behind(fraction_bits, false);
}

ExactNumber sigmoid(double x) {
  if (is_below(x, tiny)) return next_to(0.5, x > 0);
  return x > saturated ? next_to(1, false) : leading_bits(over(number(1), inverse_sigmoid(x)));
}

ExactNumber silu(double x) {
  if (is_below(x, tiny)) return leading_bits(scaled(next_to(x, x > 0), -1));
  return x > saturated ? next_to(x, false) : leading_bits(over(number(x), inverse_sigmoid(x)));
}

/// 2 / sqrt(pi) e^(-x^2) times the sum of 2^k x^(2k + 1) / (1 * 3 * ... * (2k + 1)), whose terms are all of one sign.
ExactNumber erf(double x) {
  if (std::fabs(x) > std::sqrt(saturated)) return next_to(std::copysign(1.0, x), false);
  const ExactNumber square = number(x) * number(x);
  // The sum's error is relative, however small x is.
  const ExactNumber sum = series(number(1), number(2) * square, [](int k) { return 2.0 * k + 1; });
  const ExactNumber root = square_root(scaled(half_pi(), 1), fraction_bits);
  return leading_bits(over(number(2 * x) * sum * exponential(-square), root));
}

/// The function as a Function has it, which is defined everywhere.
template <ExactNumber (*function)(double)>
std::optional<ExactNumber> everywhere(double x) {
  return function(x);
}

constexpr std::array all{
    Function{"exp", everywhere<exp>, [](double x) { return std::exp(x); }},
    Function{"exp2", everywhere<exp2>, [](double x) { return std::exp2(x); }},
    Function{"log", log, [](double x) { return std::log(x); }},
    Function{"log2", log2, [](double x) { return std::log2(x); }},
    Function{"sin", everywhere<sin>, [](double x) { return std::sin(x); }},
    Function{"cos", everywhere<cos>, [](double x) { return std::cos(x); }},
    Function{"tan", everywhere<tan>, [](double x) { return std::tan(x); }},
    Function{"tanh", everywhere<tanh>, [](double x) { return std::tanh(x); }},
    Function{"sigmoid", everywhere<sigmoid>, [](double x) { return 1 / (1 + std::exp(-x)); }},
    Function{"silu", everywhere<silu>,
             [](double x) { return std::isinf(x) && x < 0 ? -0.0 : x / (1 + std::exp(-x)); }},
    Function{"erf", everywhere<erf>, [](double x) { return std::erf(x); }},
};

}  // namespace

std::span<const Function> functions() {
  return all;
}

const Function* function_named(std::string_view name) {
  const auto found = std::ranges::find(all, name, &Function::name);
  return found == all.end() ? nullptr : &*found;
}

}  // namespace halflab::show
