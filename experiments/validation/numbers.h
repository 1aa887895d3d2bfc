#pragma once
/// Codes as people read them: bits in hexadecimal digits, and the numbers that they stand for.

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "experiments/validation/domains.h"
#include "fp16/format.h"

namespace experiments::validation {

enum class NumberKind : std::uint8_t {
  floating_point,  ///< IEEE 754's of that many bits
  signed_integer,
  unsigned_integer,
  bfloat16,         ///< one in 16 bits, several side by side in more, the first in the lowest
  alternative_half  ///< Arm's, without infinities and NaNs
};

/// Arm's alternative half precision: what are infinities and NaNs in binary16 are numbers up to 131008.
inline constexpr fp16::Format alternative_half{
    .exponent_bits = 5, .precision = 11, .encoding = fp16::Encoding::finite};

/// What a code stands for.
struct NumberType {
  NumberKind kind = NumberKind::floating_point;
  int bits = 16;
};

inline constexpr NumberType half_number{};
inline constexpr NumberType truth{NumberKind::unsigned_integer, 1};

/// False of integers.
bool is_nan(NumberType type, std::uint64_t code);

/// 0x and the digits of all bits.
std::string bits_text(NumberType type, std::uint64_t code);

/// The shortest decimal that reads back to the same number; nan, inf and -inf by these names.
std::string value_text(NumberType type, std::uint64_t code);

/// With thousands separated by commas.
std::string long_number(std::uint64_t number);

/// A result that is not the expected one, for people: operands a, b and c, result, expected, as bits and as
/// numbers; empty for operands that there are not. Two lanes stand side by side.
struct Example {
  /// What it is that differs: value, NaN or rounding; of tensor cores held to themselves with the derived product's
  /// number, as "value, variant 3".
  std::string kind;
  std::array<std::string, 5> bits;
  std::array<std::string, 5> values;

  friend bool operator==(const Example&, const Example&) = default;
};

/// One lane of one.
struct ExampleLane {
  Operands operands;
  std::optional<std::uint64_t> result, expected;  ///< none where the first lane's is that of both
};

struct ExampleTypes {
  NumberType operand, result;
  int operand_count;
};

/// Puts another lane beside those that the example has.
void append_lane(Example& example, const ExampleTypes& types, const ExampleLane& lane);

/// An example of kind "repetition": the same inputs gave one digest of the answers, and before another.
Example repetition_example(std::uint64_t digest, std::uint64_t before);

}  // namespace experiments::validation
