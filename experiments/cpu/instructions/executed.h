#pragma once
/// The loop around an instruction, for every processor: operands are loaded, exceptions cleared and read.

#include <cstddef>
#include <cstring>
#include <tuple>
#include <utility>

#include "experiments/cpu/instructions/instruction.h"

namespace experiments::validate_cpu {

/// `Register` holds as many operands as there are lanes.
template <class Register>
Register load_register(const std::byte* place) {
  Register content;
  std::memcpy(&content, place, sizeof content);
  return content;
}

/// What a lambda takes.
template <class Function>
struct ArgumentsOf;
template <class Class, class Result, class... Registers>
struct ArgumentsOf<Result (Class::*)(Registers...) const> {
  using Tuple = std::tuple<Registers...>;
};

/// Calls `instruction`, a lambda of registers, on groups of `lanes` operands. `Control` sets the control register to a
/// mode while it lives, and clears and reads the exceptions; of these nothing may be moved past the instruction, so
/// that all of them are volatile assembler.
template <class Control, std::size_t lanes, auto instruction>
void executed(const Batch& batch, const Mode& mode) {
  using Operands = typename ArgumentsOf<decltype(&decltype(instruction)::operator())>::Tuple;
  const Control control(mode);
  for (std::size_t first = 0; first < batch.count; first += lanes) {
    const std::size_t group = first / lanes;
    const auto operands = [&]<std::size_t... place>(std::index_sequence<place...>) {
      return Operands{load_register<std::tuple_element_t<place, Operands>>(
          batch.operands[place] + group * sizeof(std::tuple_element_t<place, Operands>))...};
    }
    (std::make_index_sequence<std::tuple_size_v<Operands>>());
    if (batch.exceptions != nullptr) control.clear();
    const auto result = std::apply(instruction, operands);
    if (batch.exceptions != nullptr) std::memset(batch.exceptions + first, control.raised(), lanes);
    std::memcpy(batch.results + group * sizeof result, &result, sizeof result);
  }
}

}  // namespace experiments::validate_cpu
