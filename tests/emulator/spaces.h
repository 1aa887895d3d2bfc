#pragma once
/// The words of opcodes that name a state space, a memory order or a scope.

#include "tests/emulator/builder.h"

namespace emulator {

inline Space take_space(Opcode& opcode) {
  if (opcode.take("global")) return Space::global;
  if (opcode.take("shared") || opcode.take("shared::cta")) return Space::shared;
  if (opcode.take("const")) return Space::constant;
  if (opcode.take("local")) return Space::local;
  if (opcode.take("param") || opcode.take("param::entry") || opcode.take("param::func"))
    return Space::parameter;
  return Space::generic;
}

/// Whether the access is one that may meet another thread's without a barrier.
inline bool take_ordering(Opcode& opcode) {
  opcode.ignore({"weak", "cta", "cluster", "gpu", "sys"});
  bool strong = false;
  for (const std::string_view word : {"volatile", "relaxed", "acquire", "release", "acq_rel", "mmio"})
    strong |= opcode.take(word);
  return strong;
}

}  // namespace emulator
