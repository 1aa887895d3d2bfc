#pragma once
/// The families of instructions. A further one is a file with its list, and a line in families.cpp.

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "experiments/cpu/instructions/instruction.h"

namespace experiments::validate_cpu {

struct Family {
  std::string_view name;     ///< for options and files
  std::string_view meaning;  ///< for people
  std::string_view
      processor;  ///< as `uname -m` names it: it stands in the name of the program that executes them
  std::string_view emulator;  ///< the command before that program on another processor; empty for none
  std::string_view rules;     ///< the document that the rules of its rows are from
  /// The family's rows, the same in the same order in every program; `execute` is there in one for the processor alone.
  const std::vector<Instruction>& (*instructions)();
  /// Whether the present processor has what Instruction::needs names. Only for programs of `processor`.
  bool (*has)(std::string_view feature);
};

std::span<const Family> families();

/// What the family's rows need, each once.
std::vector<std::string_view> features_of(const Family& family);

/// A hash of what the rows mean: names, numbers, modes, lanes, domains, and what is right for some of their inputs. Programs
/// and files with another one are of another version.
std::string identity_of(std::span<const Instruction> rows);
std::string list_identity(const Family& family);

/// Null for another name.
const Family* family_called(std::string_view name);

/// The processor that this program is for, as Family::processor.
std::string_view this_processor();

/// "Bochs 3.0, an emulator, not silicon", as every row of an emulator says.
std::string emulator_called(std::string_view name);

/// What the present processor calls itself, or the emulator that stands for it; only of those in families().
std::string processor_model();

/// processor_model(), or "QEMU as Cortex-A76, an emulator, not silicon", where QEMU runs this program alone. Of an emulator of
/// a whole machine, which calls itself a processor, nothing is seen.
std::string processor_name();

// The lists, each in the file of its family.
const std::vector<Instruction>& aarch64_instructions();
bool aarch64_has(std::string_view feature);
const std::vector<Instruction>& riscv64_instructions();
bool riscv64_has(std::string_view feature);
const std::vector<Instruction>& f16c_instructions();
bool f16c_has(std::string_view feature);
const std::vector<Instruction>& avx512_fp16_instructions();
bool avx512_fp16_has(std::string_view feature);

}  // namespace experiments::validate_cpu
