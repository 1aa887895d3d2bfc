#pragma once
/// What operations on exact_format.h's formats mean; a result is rounded by looking for its two neighbours
/// among the values of all codes. It includes nothing of the library.

#include <cstdint>
#include <optional>
#include <string>

#include "tests/oracle/exact_format.h"

namespace oracle {

enum class Mode {
  nearest_even,
  nearest_away,
  toward_zero,
  toward_positive,
  toward_negative,
  to_odd,
  stochastic
};

struct Settings {
  Mode mode = Mode::nearest_even;
  std::uint64_t random_bits = 0;
  int random_width = 64;  ///< how many of the random bits, from the lowest, are compared
  bool saturate = false;
  bool flush_to_zero = false;
  bool tiny_before_rounding = false;
  NanChoice nan = NanChoice::first_operand;
};

struct Answer {
  std::uint64_t bits = 0;
  bool inexact = false;
  bool underflow = false;
  bool overflow = false;
  bool divide_by_zero = false;
  bool invalid = false;

  friend bool operator==(const Answer&, const Answer&) = default;
};

/// What an operation means, before it is rounded.
struct Ideal {
  enum class Kind { number, square_root, infinity, nan, invalid };
  Kind kind = Kind::number;
  bool negative = false;
  bool cancelled = false;  ///< a zero sum of terms of both signs
  bool divide_by_zero = false;
  /// The magnitude is numerator / denominator * 2^exponent, or the square root of that.
  Wide numerator = 0;
  Wide denominator = 1;
  int exponent = 0;
  std::uint64_t nan = 0;  ///< the first NaN operand, quieted
  bool signalling = false;
};

/// Operands are codes of `format`, whose numbers have at most 11 digits and lie within 2^-24 .. 2^16.
Ideal add(const ExactFormat& format, std::uint64_t a, std::uint64_t b);
Ideal subtract(const ExactFormat& format, std::uint64_t a, std::uint64_t b);
Ideal multiply(const ExactFormat& format, std::uint64_t a, std::uint64_t b);
Ideal divide(const ExactFormat& format, std::uint64_t a, std::uint64_t b);
Ideal square_root(const ExactFormat& format, std::uint64_t a);
Ideal fma(const ExactFormat& format, std::uint64_t a, std::uint64_t b, std::uint64_t c);
/// Any two formats.
Ideal convert(const ExactFormat& to, const ExactFormat& from, std::uint64_t a);
/// `value` times 2^scale, rounded into `format` later; no NaN.
Ideal from_double(double value, int scale = 0);
Ideal from_integer(bool negative, std::uint64_t magnitude);

/// An exact result and its place among the numbers of a format, to be rounded in many ways.
class Placed {
 public:
  Placed(const ExactFormat& format, const Ideal& ideal);

  Answer rounded(const Settings& settings) const;
  /// floor(fraction * 2^64), the fraction of the gap between its neighbours at which a number lies; 0 for
  /// everything else.
  std::uint64_t fraction_bits() const;

 private:
  /// A place between units * 2^ulp_exponent and the next unit.
  struct Gap {
    Wide units = 0;
    int ulp_exponent = 0;
    bool odd = false;
  };
  Gap gap_above(std::uint64_t magnitude) const;
  bool moves_away(const Gap& gap, const Settings& settings) const;
  bool reaches(const Gap& gap, Wide numerator, int digits) const;
  bool is_tiny(const Settings& settings) const;
  Answer nan(const Settings& settings) const;
  Answer infinite(const Settings& settings, Answer flags) const;
  Answer overflowed(const Settings& settings) const;

  const ExactFormat* format_;
  Ideal ideal_;
  std::optional<std::uint64_t> lower_;  ///< none below the smallest number
  bool exact_ = false;
  bool beyond_ = false;  ///< at or beyond what would follow the largest number
};

std::string text(const Answer& answer);

}  // namespace oracle
