#pragma once
/// Slow number formats of their own: what a format is stands in a table typed in from its specification, and
/// values are exact fractions. It includes nothing of the library.

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "tests/oracle/dyadic.h"

namespace oracle {

enum class NanChoice { first_operand, nvidia, riscv };

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

}  // namespace oracle
