#pragma once
/// From the text of functions to a program: inside of compile().

#include <map>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/emulator/builder.h"
#include "tests/emulator/module.h"

namespace emulator {

constexpr std::uint64_t round_up(std::uint64_t value, std::uint64_t alignment) {
  return (value + alignment - 1) / alignment * alignment;
}

struct NamedSpecial {
  std::string_view name;
  Special special;
  Type type = Type::u32;
};

/// Where a called function's code begins, and its parameters and results in local memory.
struct Callee {
  const Function* function = nullptr;
  std::uint32_t place = 0;
  std::vector<std::uint64_t> parameters;
  std::vector<std::uint64_t> results;
};

/// What the functions of one program share.
class ProgramCompiler {
 public:
  ProgramCompiler(const Module& module, std::uint64_t dynamic_shared)
      : module_(module), dynamic_(dynamic_shared) {}

  Program compile(const Function& entry);
  bool uses_dynamic_shared() const { return uses_dynamic_; }

  Program& program() { return program_; }
  const Module& module() const { return module_; }
  Slot new_register(Type type);
  Slot constant(int bytes, std::uint64_t bits);
  Slot special(const NamedSpecial& special);
  std::uint64_t place_local(std::uint64_t size, std::uint64_t alignment);
  std::uint64_t place_shared(const Variable& variable);
  /// Where a module's shared variable is; it is placed when first asked for.
  std::uint64_t shared_address(const Variable& variable);
  Callee& callee(std::string_view name);
  void call_at(std::size_t code_index, std::string_view name) { calls_.push_back({code_index, name}); }

 private:
  struct PendingCall {
    std::size_t code_index;
    std::string_view function;
  };

  const Module& module_;
  std::uint64_t dynamic_;
  bool uses_dynamic_ = false;
  Program program_;
  std::map<std::pair<int, std::uint64_t>, Slot> constants_;
  std::map<Special, Slot> specials_;
  std::map<std::string_view, std::uint64_t> shared_;
  std::map<std::string_view, Callee> callees_;
  std::vector<std::string_view> to_compile_;
  std::vector<PendingCall> calls_;
};

class FunctionCompiler : public Names {
 public:
  FunctionCompiler(ProgramCompiler& compiler, const Function& function)
      : compiler_(compiler), function_(function) {
    scopes_.emplace_back();
  }

  void declare(std::string_view variable, Place place) { scopes_.back().variables[variable] = place; }
  void compile();

  Slot new_register(Type type) override { return compiler_.new_register(type); }
  Slot constant(int bytes, std::uint64_t bits) override { return compiler_.constant(bytes, bits); }
  std::optional<Register> find_register(std::string_view name) override;
  Place address_of(std::string_view variable) override;
  void jump_to(std::string_view label) override { jump_label_ = label; }
  std::uint32_t branch_targets_of(std::string_view label) override;
  void emit_before(Instruction instruction) override { before_.push_back(std::move(instruction)); }
  void emit_after(Instruction instruction) override { after_.push_back(std::move(instruction)); }
  Call call(std::string_view function, std::span<const Operand> arguments,
            std::span<const Operand> results) override;

 private:
  struct Range {
    Type type;
    std::uint32_t count;
    Slot first;
  };
  /// A place that is written into an instruction's immediate, or into a list of targets.
  struct Use {
    std::string_view label;
    std::size_t code_index = 0;
    std::optional<std::pair<std::size_t, std::size_t>> target{};
  };
  struct Scope {
    std::map<std::string_view, Register> registers;
    std::map<std::string_view, Range> ranges;
    std::map<std::string_view, Place> variables;
    std::map<std::string_view, std::uint32_t> labels;
    std::vector<Use> uses;
  };

  std::uint32_t here() const { return static_cast<std::uint32_t>(compiler_.program().code.size()); }
  void directive(Scanner& scanner);
  bool label(Scanner& scanner);
  void declare_registers(Scanner& scanner);
  void declare_variable(const Variable& variable);
  void branch_target_list(Scanner& scanner, std::string_view label);
  void statement(std::string_view text);
  void emit(Instruction instruction, const Instruction& guarded_as);
  void close_scope();
  std::vector<std::uint64_t> addresses(std::span<const Operand> operands);

  ProgramCompiler& compiler_;
  const Function& function_;
  std::vector<Scope> scopes_;
  std::map<std::string_view, std::uint32_t> target_lists_;
  std::vector<Instruction> before_, after_;
  std::string_view jump_label_;
  std::string_view called_;
};

}  // namespace emulator
