#pragma once
/// What `halflab show` finds of a value, a code or an expression.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tools/halflab/show/numbers.h"

namespace halflab::show {

/// A number with the part it plays: "a", "result", "next above".
struct Part {
  std::string name;
  Description number;
};

/// An operation of the expression, on values as they were rounded before.
struct Step {
  std::string text;  ///< "2048 + 1"
  std::optional<ExactNumber> exact;
  Description result;
  fp16::Flags flags;
};

/// What the rounding of a finite number, not zero, leaves out: the bits below the last place.
struct Discarded {
  int ulp_exponent;
  std::string kept;  ///< in binary, down to the last place
  bool guard;        ///< the first bit that is left out
  bool round;        ///< the second
  bool sticky;       ///< whether any further bit is set
  double fraction;   ///< of a unit in the last place

  bool is_tie() const { return guard && !round && !sticky; }
};

struct RoundedSo {
  std::string_view rounding;
  Description result;
  fp16::Flags flags;
  double chance;  ///< 1, but of stochastic rounding
};

struct InFormat {
  std::string_view format;
  Description number;
  fp16::Flags flags;
  std::optional<double> relative_error;  ///< none where either is no finite number, or the exact one is zero
};

struct Findings {
  std::string input;
  std::string_view format_name;
  const fp16::Format* format;
  Node last;                ///< what gives the result
  std::vector<Step> steps;  ///< all operations; the last one gives the result
  std::vector<std::string>
      rounded_first;  ///< numbers among their operands, as given, that the format does not hold
  std::vector<Part> operands;
  Description result;
  fp16::Flags flags;
  /// What is rounded to the result; none where that is no finite number.
  std::optional<ExactNumber> exact;
  std::string exact_text;              ///< in decimal, as it was given or in full; empty where there is none
  std::optional<Discarded> discarded;  ///< of what is rounded
  std::optional<int> ulp_exponent;     ///< of a finite result
  std::optional<Description> below, above;
  std::vector<RoundedSo>
      roundings;  ///< of what is rounded: all seven, stochastic with both of its results where these differ
  std::vector<InFormat> formats;  ///< what is rounded, or the code's value, in each

  bool is_rounded() const { return last.operation != Operator::code && last.operation != Operator::negate; }
  bool is_finite() const { return ulp_exponent.has_value(); }
  /// result - exact in units of the result's last place; the exact number is there and the result finite.
  double error_in_ulps() const;
};

std::vector<std::uint64_t> operands_of(const Findings& found);

/// The result, were it rounded so.
Rounded rounded_again(const Findings& found, const fp16::Attributes& attributes);

/// Throws std::invalid_argument for a code that the format does not have.
Findings measure(const std::string& input, const fp16::NamedFormat& format);

}  // namespace halflab::show
