#pragma once
/// Holds results of the library to the oracle, and reports the first differences of a long comparison.

#include <doctest/doctest.h>

#include <array>
#include <cstdint>
#include <initializer_list>
#include <iomanip>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>

#include "fp16/unpacked.h"
#include "tests/oracle/exact_half.h"

namespace oracle {

/// The library's name of each Direction, in its order.
inline constexpr std::array<fp16::Rounding, direction_count> roundings{
    fp16::Rounding::nearest_even,    fp16::Rounding::nearest_away,    fp16::Rounding::toward_zero,
    fp16::Rounding::toward_positive, fp16::Rounding::toward_negative, fp16::Rounding::to_odd};
inline constexpr std::array<std::string_view, direction_count> direction_names{
    "nearest_even", "nearest_away", "toward_zero", "toward_positive", "toward_negative", "to_odd"};

inline Outcome as_outcome(const fp16::Result<fp16::binary16>& result) {
  return {.bits = result.bits,
          .inexact = result.flags.inexact,
          .underflow = result.flags.underflow,
          .overflow = result.flags.overflow,
          .divide_by_zero = result.flags.divide_by_zero,
          .invalid = result.flags.invalid};
}

inline std::string text(std::uint64_t bits) {
  std::ostringstream stream;
  stream << std::hex << std::setfill('0') << std::setw(4) << bits;
  return stream.str();
}

inline std::string text(const Outcome& outcome) {
  return text(std::uint64_t{outcome.bits}) + (outcome.inexact ? " inexact" : "") +
         (outcome.underflow ? " underflow" : "") + (outcome.overflow ? " overflow" : "") +
         (outcome.divide_by_zero ? " divide_by_zero" : "") + (outcome.invalid ? " invalid" : "");
}

/// Counts comparisons cheaply and prints the first differences; `finish` makes the test fail if there were
/// any.
class Comparison {
 public:
  explicit Comparison(std::string name) : name_(std::move(name)) {}

  template <typename Value>
  void equal(const Value& got, const Value& expected, std::string_view detail,
             std::initializer_list<std::uint64_t> operands) {
    ++count_;
    if (got == expected) return;
    if (++differences_ > 5) return;
    std::ostringstream line;
    line << name_ << ' ' << detail;
    for (const std::uint64_t operand : operands) line << ' ' << text(operand);
    line << ": got " << text(got) << ", expected " << text(expected);
    if (differences_ == 1) first_difference_ = line.str();
    MESSAGE(line.str());
  }

  /// Compares `compute(attributes)` with the oracle in all six directions.
  template <typename Compute>
  void equal_in_all_directions(const Outcomes& expected, std::initializer_list<std::uint64_t> operands,
                               Compute compute) {
    for (std::size_t i = 0; i < direction_count; ++i) {
      equal(as_outcome(compute(fp16::Attributes{.rounding = roundings[i]})), expected[i], direction_names[i],
            operands);
    }
  }

  std::uint64_t count() const { return count_; }
  /// Empty: there is none.
  const std::string& first_difference() const { return first_difference_; }

  void finish(std::uint64_t expected_count) const {
    CAPTURE(name_);
    CHECK(differences_ == 0);
    CHECK(count_ == expected_count);
  }

 private:
  std::string name_;
  std::uint64_t count_ = 0;
  std::uint64_t differences_ = 0;
  std::string first_difference_;
};

}  // namespace oracle
