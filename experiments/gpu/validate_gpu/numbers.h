#pragma once
/// Codes as people read them: bits in hexadecimal digits, and the numbers that they stand for.

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "experiments/gpu/validate_gpu/domains.h"

namespace experiments::validate_gpu {

enum class NumberKind : std::uint8_t { floating_point, signed_integer, unsigned_integer };

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

}  // namespace experiments::validate_gpu
