#pragma once
/// What `halflab show` is asked about: a number, a code, or operations on such.

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tools/halflab/show/functions.h"

namespace halflab::show {

enum class Operator {
  number,  ///< a text that is rounded to the format
  code,
  negate,  ///< of the sign bit; rounds nothing
  add,
  subtract,
  multiply,
  divide,
  square_root,
  fused_multiply_add,
  function  ///< of functions.h
};

/// A part of an expression.
struct Node {
  Operator operation;
  std::vector<std::size_t> operands = {};  ///< places of nodes before it
  std::string text = {};                   ///< of a number, as fp16::parse reads it
  std::uint64_t code = 0;
  const Function* function = nullptr;
};

/// The last node is the whole.
using Expression = std::vector<Node>;

/// What an expression may call: "sqrt(a), fma(a, b, c), exp(a), ...".
std::string calls();

/// Numbers as fp16::parse reads them (with a "p" behind 0x) and powers of two such as 2^-24; 0x without "p": a code; + - * /,
/// parentheses, and calls(). Throws std::invalid_argument, with the place, for anything else.
Expression parse_expression(std::string_view text);

}  // namespace halflab::show
