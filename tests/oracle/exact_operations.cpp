#include "tests/oracle/exact_operations.h"

#include <algorithm>
#include <bit>
#include <boost/multiprecision/cpp_int.hpp>
#include <cmath>
#include <initializer_list>
#include <sstream>
#include <stdexcept>
#include <utility>

namespace oracle {
namespace {

using Wider = boost::multiprecision::uint512_t;

/// The sign of |ideal| - bound.
int order_of(const Ideal& ideal, const Dyadic& bound) {
  if (ideal.kind == Ideal::Kind::square_root) {
    const Wider square = Wider(bound.significand) * Wider(bound.significand);
    return order<Wider>(Wider(ideal.numerator), ideal.exponent, Wider(square * Wider(ideal.denominator)),
                        2 * bound.exponent);
  }
  return order(ideal.numerator, ideal.exponent, product(bound.significand, ideal.denominator),
               bound.exponent);
}

Ideal number(bool negative, const Dyadic& magnitude) {
  return {.negative = negative, .numerator = magnitude.significand, .exponent = magnitude.exponent};
}
Ideal infinity(bool negative, bool divide_by_zero = false) {
  return {.kind = Ideal::Kind::infinity, .negative = negative, .divide_by_zero = divide_by_zero};
}
Ideal invalid() {
  return {.kind = Ideal::Kind::invalid};
}

bool any_nan(const ExactFormat& format, std::initializer_list<std::uint64_t> operands) {
  return std::ranges::any_of(operands, [&](std::uint64_t code) { return format.is_nan(code); });
}

Ideal first_nan(const ExactFormat& format, std::initializer_list<std::uint64_t> operands) {
  const auto nan = [&](std::uint64_t code) { return format.is_nan(code); };
  const auto signalling = [&](std::uint64_t code) { return format.is_signalling(code); };
  return {.kind = Ideal::Kind::nan,
          .nan = *std::ranges::find_if(operands, nan) | format.facts().quiet_bit,
          .signalling = std::ranges::any_of(operands, signalling)};
}

Ideal sum(const Ideal& a, const Ideal& b) {
  const Dyadic x{a.numerator, a.exponent}, y{b.numerator, b.exponent};
  if (a.negative == b.negative) return number(a.negative, combined(x, y, false));
  const int difference = order(x.significand, x.exponent, y.significand, y.exponent);
  if (difference == 0) return {.cancelled = true};
  return difference > 0 ? number(a.negative, combined(x, y, true)) : number(b.negative, combined(y, x, true));
}

Ideal number(const ExactFormat& format, std::uint64_t code) {
  return number(format.is_negative(code), format.dyadic(format.magnitude(code)));
}

}  // namespace

Ideal add(const ExactFormat& format, std::uint64_t a, std::uint64_t b) {
  if (any_nan(format, {a, b})) return first_nan(format, {a, b});
  if (format.is_infinity(a) && format.is_infinity(b))
    return a == b ? infinity(format.is_negative(a)) : invalid();
  if (format.is_infinity(a)) return infinity(format.is_negative(a));
  if (format.is_infinity(b)) return infinity(format.is_negative(b));
  return sum(number(format, a), number(format, b));
}

Ideal subtract(const ExactFormat& format, std::uint64_t a, std::uint64_t b) {
  if (any_nan(format, {a, b})) return first_nan(format, {a, b});
  return add(format, a, format.negated(b));
}

Ideal multiply(const ExactFormat& format, std::uint64_t a, std::uint64_t b) {
  if (any_nan(format, {a, b})) return first_nan(format, {a, b});
  const bool negative = format.is_negative(a) != format.is_negative(b);
  if (format.is_infinity(a) || format.is_infinity(b))
    return format.is_zero(a) || format.is_zero(b) ? invalid() : infinity(negative);
  const Ideal x = number(format, a), y = number(format, b);
  return number(negative, {product(x.numerator, y.numerator), x.exponent + y.exponent});
}

Ideal divide(const ExactFormat& format, std::uint64_t a, std::uint64_t b) {
  if (any_nan(format, {a, b})) return first_nan(format, {a, b});
  const bool negative = format.is_negative(a) != format.is_negative(b);
  if ((format.is_zero(a) && format.is_zero(b)) || (format.is_infinity(a) && format.is_infinity(b)))
    return invalid();
  if (format.is_infinity(a)) return infinity(negative);
  if (format.is_infinity(b)) return {.negative = negative};
  if (format.is_zero(b)) return infinity(negative, true);
  const Ideal x = number(format, a), y = number(format, b);
  return {.negative = negative,
          .numerator = x.numerator,
          .denominator = y.numerator,
          .exponent = x.exponent - y.exponent};
}

Ideal square_root(const ExactFormat& format, std::uint64_t a) {
  if (format.is_nan(a)) return first_nan(format, {a});
  Ideal root = number(format, format.is_infinity(a) ? 0 : a);
  if (format.is_zero(a)) return root;
  if (format.is_negative(a)) return invalid();
  if (format.is_infinity(a)) return infinity(false);
  root.kind = Ideal::Kind::square_root;
  return root;
}

Ideal fma(const ExactFormat& format, std::uint64_t a, std::uint64_t b, std::uint64_t c) {
  if (any_nan(format, {a, b, c})) return first_nan(format, {a, b, c});
  const Ideal ab = multiply(format, a, b);
  if (ab.kind == Ideal::Kind::invalid) return ab;
  if (format.is_infinity(c)) {
    const bool opposite = ab.kind == Ideal::Kind::infinity && ab.negative != format.is_negative(c);
    return opposite ? invalid() : infinity(format.is_negative(c));
  }
  return ab.kind == Ideal::Kind::infinity ? ab : sum(ab, number(format, c));
}

Ideal convert(const ExactFormat& to, const ExactFormat& from, std::uint64_t a) {
  const bool negative = from.is_negative(a);
  if (from.is_infinity(a)) return negative && to.facts().sign == 0 ? invalid() : infinity(negative);
  if (!from.is_nan(a)) return number(from, a);
  if (to.facts().nan == 0) return invalid();
  std::uint64_t payload = 0;
  if (from.facts().quiet_bit != 0 && to.facts().quiet_bit != 0) {
    // The quiet bits, the first of the payload, come to lie on each other.
    const int shift = std::countr_zero(to.facts().quiet_bit) - std::countr_zero(from.facts().quiet_bit);
    const std::uint64_t all = from.magnitude(a) - from.facts().infinity;
    payload = shift >= 0 ? all << shift : all >> -shift;
  }
  const bool keeps_sign = negative && from.facts().signed_nan && to.facts().signed_nan;
  return {.kind = Ideal::Kind::nan,
          .nan = to.facts().nan | payload | (keeps_sign ? to.facts().sign : 0),
          .signalling = from.is_signalling(a)};
}

Ideal from_double(double value, int scale) {
  if (std::isinf(value)) return infinity(value < 0);
  Dyadic magnitude = dyadic_of(std::fabs(value));
  magnitude.exponent += scale;
  return number(std::signbit(value), magnitude);
}

Ideal from_integer(bool negative, std::uint64_t magnitude) {
  return number(negative, shortest({.significand = magnitude}));
}

Placed::Placed(const ExactFormat& format, const Ideal& ideal) : format_(&format), ideal_(ideal) {
  const bool is_number = ideal.kind == Ideal::Kind::number || ideal.kind == Ideal::Kind::square_root;
  if (!is_number || ideal.numerator == 0) return;
  const std::uint64_t largest = format.facts().largest_code;
  beyond_ = order_of(ideal, format.dyadic(largest + 1)) >= 0;
  if (beyond_ || order_of(ideal, format.dyadic(0)) < 0) return;
  std::uint64_t low = 0, high = largest;
  while (low < high) {
    const std::uint64_t middle = high - (high - low) / 2;
    if (order_of(ideal, format.dyadic(middle)) >= 0) {
      low = middle;
    } else {
      high = middle - 1;
    }
  }
  lower_ = low;
  exact_ = order_of(ideal, format.dyadic(low)) == 0;
}

Placed::Gap Placed::gap_above(std::uint64_t magnitude) const {
  const Dyadic lower = format_->dyadic(magnitude);
  const Dyadic ulp = combined(format_->dyadic(magnitude + 1), lower, true);
  if (ulp.significand != 1) throw std::logic_error("the spacing of a format must be a power of two");
  return {.units = shifted(lower.significand, lower.significand == 0 ? 0 : lower.exponent - ulp.exponent),
          .ulp_exponent = ulp.exponent,
          .odd = magnitude % 2 == 1};
}

/// Whether the number is at least units + numerator / 2^digits units.
bool Placed::reaches(const Gap& gap, Wide numerator, int digits) const {
  return order_of(ideal_, {shifted(gap.units, digits) + numerator, gap.ulp_exponent - digits}) >= 0;
}

/// The number lies strictly within the gap.
bool Placed::moves_away(const Gap& gap, const Settings& settings) const {
  switch (settings.mode) {
    case Mode::nearest_even: {
      if (!reaches(gap, 1, 1)) return false;
      const bool tie = order_of(ideal_, {shifted(gap.units, 1) + 1, gap.ulp_exponent - 1}) == 0;
      return !tie || gap.odd;
    }
    case Mode::nearest_away:
      return reaches(gap, 1, 1);
    case Mode::toward_zero:
      return false;
    case Mode::toward_positive:
      return !ideal_.negative;
    case Mode::toward_negative:
      return ideal_.negative;
    case Mode::to_odd:
      return !gap.odd;
    case Mode::stochastic: {
      // floor(f * 2^n) > r is the same as f >= (r + 1) / 2^n.
      const int n = settings.random_width;
      const std::uint64_t r = settings.random_bits & (~std::uint64_t{0} >> (64 - n));
      return reaches(gap, Wide{r} + 1, n);
    }
  }
  return false;
}

std::uint64_t Placed::fraction_bits() const {
  if (!lower_ || exact_) return 0;
  const Gap gap = gap_above(*lower_);
  std::uint64_t found = 0;
  for (std::uint64_t bit = std::uint64_t{1} << 63; bit != 0; bit >>= 1) {
    if (reaches(gap, found | bit, 64)) found |= bit;
  }
  return found;
}

/// After rounding: without a smallest exponent, the spacing below the smallest normal number would be half of
/// that above it, and the last number there all ones.
bool Placed::is_tiny(const Settings& settings) const {
  const FormatFacts& facts = format_->facts();
  if (!facts.has_zero || order_of(ideal_, dyadic_of(facts.smallest_normal)) >= 0) return false;
  if (settings.tiny_before_rounding) return true;
  const Dyadic subnormal_ulp = dyadic_of(facts.smallest);
  const Gap last{
      .units = 2 * Wide{facts.codes_per_binade} - 1, .ulp_exponent = subnormal_ulp.exponent - 1, .odd = true};
  const bool within = order_of(ideal_, {last.units, last.ulp_exponent}) > 0;
  return !within || !moves_away(last, settings);
}

Answer Placed::nan(const Settings& settings) const {
  const FormatFacts& facts = format_->facts();
  const bool first = ideal_.kind == Ideal::Kind::nan && settings.nan == NanChoice::first_operand;
  return {.bits = first ? ideal_.nan : facts.default_nans[static_cast<std::size_t>(settings.nan)],
          .invalid = ideal_.kind != Ideal::Kind::nan || ideal_.signalling};
}

Answer Placed::infinite(const Settings& settings, Answer flags) const {
  const FormatFacts& facts = format_->facts();
  if (facts.infinity == 0 || settings.saturate) flags.inexact = flags.overflow = true;
  if (settings.saturate || facts.nan == 0) {
    flags.bits = format_->with_sign(facts.largest_code, ideal_.negative);
  } else if (facts.infinity != 0) {
    flags.bits = format_->with_sign(facts.infinity, ideal_.negative);
  } else {
    flags.bits = facts.nan | (facts.signed_nan && ideal_.negative ? facts.sign : 0);
  }
  return flags;
}

Answer Placed::overflowed(const Settings& settings) const {
  const Answer flags{.inexact = true, .overflow = true};
  const bool inward = settings.mode == Mode::toward_zero || settings.mode == Mode::to_odd ||
                      settings.mode == (ideal_.negative ? Mode::toward_positive : Mode::toward_negative);
  if (!inward) return infinite(settings, flags);
  Answer largest = flags;
  largest.bits = format_->with_sign(format_->facts().largest_code, ideal_.negative);
  return largest;
}

Answer Placed::rounded(const Settings& settings) const {
  const FormatFacts& facts = format_->facts();
  if (ideal_.kind == Ideal::Kind::nan || ideal_.kind == Ideal::Kind::invalid) return nan(settings);
  if (ideal_.kind == Ideal::Kind::infinity)
    return infinite(settings, {.divide_by_zero = ideal_.divide_by_zero});
  if (ideal_.numerator == 0) {
    const bool negative = ideal_.cancelled ? settings.mode == Mode::toward_negative : ideal_.negative;
    return {
        .bits = format_->with_sign(0, negative), .inexact = !facts.has_zero, .underflow = !facts.has_zero};
  }
  if (ideal_.negative && facts.sign == 0)
    return {.bits = facts.default_nans[static_cast<std::size_t>(settings.nan)], .invalid = true};
  if (beyond_) return overflowed(settings);
  if (!lower_) return {.bits = 0, .inexact = true, .underflow = true};

  const std::uint64_t chosen = *lower_ + (!exact_ && moves_away(gap_above(*lower_), settings));
  if (chosen > facts.largest_code) return overflowed(settings);
  const bool tiny = (!exact_ || settings.flush_to_zero) && is_tiny(settings);
  return {.bits = format_->with_sign(tiny && settings.flush_to_zero ? 0 : chosen, ideal_.negative),
          .inexact = !exact_ || tiny,
          .underflow = tiny};
}

std::string text(const Answer& answer) {
  std::ostringstream stream;
  stream << std::hex << answer.bits;
  for (const auto& [set, name] :
       std::initializer_list<std::pair<bool, const char*>>{{answer.inexact, " inexact"},
                                                           {answer.underflow, " underflow"},
                                                           {answer.overflow, " overflow"},
                                                           {answer.divide_by_zero, " divide_by_zero"},
                                                           {answer.invalid, " invalid"}}) {
    if (set) stream << name;
  }
  return stream.str();
}

}  // namespace oracle
