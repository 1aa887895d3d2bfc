#pragma once
/// Slow number formats of their own: what a format is stands in a table typed in from its specification,
/// values are exact fractions, and a result is rounded by looking for its two neighbours among the values of
/// all codes. It includes nothing of the library.

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace oracle {

__extension__ using Wide = unsigned __int128;

/// significand * 2^exponent
struct Dyadic {
  Wide significand = 0;
  int exponent = 0;
};

/// A format as its specification describes it. Codes are magnitudes, without the sign bit.
struct FormatFacts {
  std::string_view name;
  int width;
  std::uint64_t sign;  ///< the sign bit; 0: the format has none
  bool signed_zero = true;
  bool has_zero = true;
  std::uint64_t codes_per_binade;
  double smallest, smallest_normal, largest;
  std::uint64_t largest_code;
  std::uint64_t infinity = 0;   ///< 0: the format has none
  std::uint64_t nan = 0;        ///< the quiet NaN without payload; 0: the format has none
  std::uint64_t quiet_bit = 0;  ///< 0: NaNs have no payload
  bool signed_nan = true;
  std::array<std::uint64_t, 3> default_nans{};  ///< with the sign, one for each NanChoice
};

enum class Mode {
  nearest_even,
  nearest_away,
  toward_zero,
  toward_positive,
  toward_negative,
  to_odd,
  stochastic
};
enum class NanChoice { first_operand, nvidia, riscv };

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

class ExactFormat {
 public:
  explicit ExactFormat(const FormatFacts& facts);

  const FormatFacts& facts() const { return facts_; }
  std::uint64_t codes() const { return std::uint64_t{1} << facts_.width; }  ///< not for 64 bits
  std::uint64_t magnitude(std::uint64_t code) const { return code & ~facts_.sign; }
  bool is_negative(std::uint64_t code) const { return (code & facts_.sign) != 0; }
  bool is_nan(std::uint64_t code) const;
  bool is_signalling(std::uint64_t code) const;
  bool is_infinity(std::uint64_t code) const;
  bool is_zero(std::uint64_t code) const;
  bool is_subnormal(std::uint64_t code) const;
  /// Infinities and NaNs become those of double; the value is exact.
  double value(std::uint64_t code) const;
  /// The value of a finite magnitude; of the code after the largest, what would be the next number.
  Dyadic dyadic(std::uint64_t magnitude) const;
  /// The operand as it is read where subnormal numbers are zeros.
  std::uint64_t without_subnormals(std::uint64_t code) const;
  /// -0 becomes +0 where there is no other.
  std::uint64_t with_sign(std::uint64_t magnitude, bool negative) const;
  std::uint64_t negated(std::uint64_t code) const;

 private:
  Dyadic hardware_value(std::uint64_t magnitude) const;

  FormatFacts facts_;
  std::vector<Dyadic> values_;  ///< of formats of up to 16 bits
};

/// By its name in the literature, in lower case: "binary16", "e4m3_fnuz" ...
const ExactFormat& exact_format(std::string_view name);
const std::vector<ExactFormat>& exact_formats();

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
