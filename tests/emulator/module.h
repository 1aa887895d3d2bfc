#pragma once
/// A module of PTX that was registered: its variables in memory, its kernels as programs.

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>

#include "tests/emulator/program.h"
#include "tests/emulator/ptx_text.h"

namespace emulator {

class Module {
 public:
  /// Splits the text and places its global and constant variables in memory.
  explicit Module(std::string_view ptx);

  /// The kernel, compiled when it is first asked for. Throws Unsupported.
  const Program& kernel(const std::string& name);
  /// nullptr if there is no such function.
  const Function* find_function(std::string_view name) const;
  const Variable* find_variable(std::string_view name) const;
  /// Where a global or constant variable is.
  std::byte* address_of(std::string_view variable) const;
  bool has_kernel(std::string_view name) const;

 private:
  void place(const Variable& variable);
  void initialize(const Variable& variable, std::byte* bytes);

  std::string text_;
  ModuleText parts_;
  std::unordered_map<std::string_view, const Function*> functions_;
  std::unordered_map<std::string_view, const Variable*> variables_;
  std::unordered_map<std::string_view, std::byte*> addresses_;
  std::map<std::string, Program> programs_;
};

/// The program of an entry, with all functions that it calls.
Program compile(const Module& module, const Function& entry);

}  // namespace emulator
