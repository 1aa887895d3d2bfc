#pragma once
/// Codes of formats that are chosen at run time: what fp16's templates say of them.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "fp16/formats.h"
#include "fp16/rounding.h"
#include "tools/halflab/show/exact_number.h"
#include "tools/halflab/show/expression.h"

namespace halflab::show {

/// A code and the exceptions that making it raised.
struct Rounded {
  std::uint64_t code = 0;
  fp16::Flags flags = {};
};

/// A code in words.
struct Description {
  std::uint64_t code = 0;
  std::string code_text;    ///< "0x3c00", all digits
  std::string fields;       ///< "0 01111 0000000000"
  std::string kind;         ///< "normal", "subnormal", "zero", "infinity", "quiet NaN", "signalling NaN"
  std::string shortest;     ///< as fp16::to_shortest
  std::string exact;        ///< as fp16::to_exact
  std::string hexadecimal;  ///< as fp16::to_hex
  std::string brief;  ///< exact where that is short, else as many digits as tell the format's numbers apart
};

Description describe(const fp16::Format& format, std::uint64_t code);

/// The text rounded once. It is a number.
Rounded read(const fp16::Format& format, std::string_view text, const fp16::Attributes& attributes = {});

/// Zeros keep the number's sign.
Rounded round(const fp16::Format& format, const ExactNumber& number, const fp16::Attributes& attributes = {});

/// The result of a node that is no literal on operands that are codes; `exact` is what exact_result says of these. Throws
/// std::invalid_argument for a format without arithmetic.
Rounded apply(const fp16::Format& format, const Node& node, std::span<const std::uint64_t> operands,
              const std::optional<ExactNumber>& exact, const fp16::Attributes& attributes = {});

/// What `to` makes of a code that is no finite number.
Rounded convert(const fp16::Format& to, const fp16::Format& from, std::uint64_t code);

/// The value of a finite code.
std::optional<ExactNumber> exact_value(const fp16::Format& format, std::uint64_t code);

/// What the operation would give were nothing rounded; none for operands or results that are no finite numbers.
std::optional<ExactNumber> exact_result(const fp16::Format& format, const Node& node,
                                        std::span<const std::uint64_t> operands);

/// The codes next to one: none next to a NaN or beyond an infinity, and none in a format without arithmetic.
std::optional<std::uint64_t> next_down(const fp16::Format& format, std::uint64_t code);
std::optional<std::uint64_t> next_up(const fp16::Format& format, std::uint64_t code);

/// The exponent of the unit in the last place of numbers with this leading exponent.
int ulp_exponent(const fp16::Format& format, int leading_exponent);

/// "inexact, underflow"; "none".
std::string text_of(fp16::Flags flags);

}  // namespace halflab::show
