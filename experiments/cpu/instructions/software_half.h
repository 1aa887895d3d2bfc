#pragma once
/// What the models of all families are made of: operations of fp16/ on operands as they come, as outcomes.

#include "experiments/cpu/instructions/instruction.h"
#include "fp16/bits.h"
#include "fp16/rounding.h"
#include "fp16/unpacked.h"

namespace experiments::validate_cpu {

/// An operation of fp16/ on codes of F, as a template argument.
template <const fp16::Format& F>
using Unary = fp16::Result<F> (*)(fp16::Code<F>, const fp16::Attributes&);
template <const fp16::Format& F>
using Binary = fp16::Result<F> (*)(fp16::Code<F>, fp16::Code<F>, const fp16::Attributes&);

template <const fp16::Format& F>
fp16::Bits<F> code_of(std::uint64_t operand) {
  return static_cast<fp16::Bits<F>>(operand);
}

/// `software` is what fp16/ gives before the rules of a processor.
template <const fp16::Format& F>
Outcome outcome_of(const fp16::Result<F>& result, const fp16::Result<F>& software) {
  return {.value = result.bits, .exceptions = exceptions_of(result.flags), .is_by_rule = result != software};
}

}  // namespace experiments::validate_cpu
