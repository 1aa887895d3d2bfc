#pragma once
/// An instruction of a processor in one of its modes: what it is tried on, what is right, and how it is executed.

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "experiments/validation/domains.h"
#include "experiments/validation/numbers.h"
#include "fp16/rounding.h"

namespace experiments::validate_cpu {

using validation::Domain;
using validation::NumberType;
using validation::Operands;

/// Exceptions as bits: those of fp16::Flags, and one that IEEE 754 does not have.
using Exceptions = std::uint8_t;
inline constexpr Exceptions inexact = 1, underflow = 2, overflow = 4, divide_by_zero = 8, invalid = 16,
                            subnormal_operand = 32;

constexpr Exceptions exceptions_of(fp16::Flags flags) {
  return static_cast<Exceptions>(flags.inexact * inexact | flags.underflow * underflow |
                                 flags.overflow * overflow | flags.divide_by_zero * divide_by_zero |
                                 flags.invalid * invalid);
}

/// "invalid inexact", or "none".
std::string exceptions_text(Exceptions exceptions);

struct Outcome {
  std::uint64_t value = 0;
  Exceptions exceptions = 0;
  bool is_by_rule = false;  ///< a documented rule of the processor gives other than the software half

  friend bool operator==(const Outcome&, const Outcome&) = default;
};

/// How the control register stands.
struct Mode {
  std::string_view name = {};  ///< none for the state after a reset
  fp16::Rounding rounding = fp16::Rounding::nearest_even;
  bool flushes_halves = false;      ///< subnormal halves are zeros, as operands and as results
  bool reads_wide_as_zero = false;  ///< operands of 32 and 64 bits that are subnormal are zeros
  bool flushes_wide = false;        ///< likewise results
  bool default_nan = false;
  bool alternative_half = false;

  friend bool operator==(const Mode&, const Mode&) = default;
};

/// What is right in the mode.
using Model = Outcome (*)(const Operands& operands, const Mode& mode);

/// Operands, and room for results and exceptions, side by side in the widths of stored_bytes.
struct Batch {
  std::array<const std::byte*, 3> operands;
  std::byte* results;
  Exceptions* exceptions;  ///< null where nobody asks
  std::size_t count;       ///< a multiple of Instruction::lanes
};

using Execute = void (*)(const Batch& batch, const Mode& mode);

struct Instruction {
  std::string name;        ///< as assemblers write it, with its mode; unique in the family
  std::string_view group;  ///< arithmetic, comparison, ...
  const Domain* domain;
  Model model;
  Mode mode = {};
  std::array<NumberType, 3> operands = {};
  NumberType result = {};
  int lanes = 1;                ///< neighbours that are computed, and raise exceptions, together
  Execute execute = nullptr;    ///< null in programs for other processors
  std::string_view needs = {};  ///< a name that Family::has knows
  std::string_view rule =
      {};  ///< what is documented that the software half does otherwise; empty for nothing
};

/// The bytes that an operand or a result takes in a batch.
constexpr std::size_t stored_bytes(NumberType type) {
  return type.bits <= 16 ? 2 : type.bits <= 32 ? 4 : 8;
}

}  // namespace experiments::validate_cpu
