#include <cctype>
#include <string>

#include "tests/emulator/compiler.h"

namespace emulator {

namespace {

constexpr NamedSpecial special_registers[] = {
    {"%tid.x", Special::tid_x},
    {"%tid.y", Special::tid_y},
    {"%tid.z", Special::tid_z},
    {"%ntid.x", Special::ntid_x},
    {"%ntid.y", Special::ntid_y},
    {"%ntid.z", Special::ntid_z},
    {"%ctaid.x", Special::ctaid_x},
    {"%ctaid.y", Special::ctaid_y},
    {"%ctaid.z", Special::ctaid_z},
    {"%nctaid.x", Special::nctaid_x},
    {"%nctaid.y", Special::nctaid_y},
    {"%nctaid.z", Special::nctaid_z},
    {"%laneid", Special::laneid},
    {"%warpid", Special::warpid},
    {"%nwarpid", Special::nwarpid},
    {"%smid", Special::smid},
    {"%nsmid", Special::nsmid},
    {"%gridid", Special::gridid, Type::u64},
    {"%lanemask_eq", Special::lanemask_eq},
    {"%lanemask_le", Special::lanemask_le},
    {"%lanemask_lt", Special::lanemask_lt},
    {"%lanemask_ge", Special::lanemask_ge},
    {"%lanemask_gt", Special::lanemask_gt},
    {"%dynamic_smem_size", Special::dynamic_smem_size},
    {"%total_smem_size", Special::total_smem_size},
};

}  // namespace

std::optional<Names::Register> FunctionCompiler::find_register(std::string_view name) {
  std::string_view prefix = name;
  while (!prefix.empty() && std::isdigit(static_cast<unsigned char>(prefix.back()))) prefix.remove_suffix(1);
  for (auto scope = scopes_.rbegin(); scope != scopes_.rend(); ++scope) {
    if (const auto found = scope->registers.find(name); found != scope->registers.end()) return found->second;
    if (prefix.size() == name.size()) continue;
    const auto range = scope->ranges.find(prefix);
    if (range == scope->ranges.end()) continue;
    const auto index = static_cast<std::uint32_t>(std::stoul(std::string(name.substr(prefix.size()))));
    const auto& [type, count, first] = range->second;
    if (index < count) return Register{first + index * std::max<std::uint32_t>(slot_bytes(type), 8), type};
  }
  for (const NamedSpecial& special : special_registers) {
    if (special.name == name) return Register{compiler_.special(special), special.type};
  }
  return std::nullopt;
}

Names::Place FunctionCompiler::address_of(std::string_view variable) {
  for (auto scope = scopes_.rbegin(); scope != scopes_.rend(); ++scope) {
    if (const auto found = scope->variables.find(variable); found != scope->variables.end())
      return found->second;
  }
  const Variable* found = compiler_.module().find_variable(variable);
  if (found == nullptr) throw Unsupported("PTX: " + std::string(variable) + " is not declared");
  if (found->space == Space::shared) return {Space::shared, compiler_.shared_address(*found)};
  return {found->space, reinterpret_cast<std::uint64_t>(compiler_.module().address_of(variable))};
}

std::uint32_t FunctionCompiler::branch_targets_of(std::string_view label) {
  const auto found = target_lists_.find(label);
  if (found == target_lists_.end())
    throw Unsupported("PTX: " + std::string(label) + " is no list of targets");
  return found->second;
}

std::vector<std::uint64_t> FunctionCompiler::addresses(std::span<const Operand> operands) {
  std::vector<std::uint64_t> result;
  for (const Operand& operand : operands) result.push_back(address_of(operand.name).address);
  return result;
}

Names::Call FunctionCompiler::call(std::string_view name, std::span<const Operand> arguments,
                                   std::span<const Operand> results) {
  const Callee& callee = compiler_.callee(name);
  if (arguments.size() != callee.parameters.size() || results.size() != callee.results.size())
    throw Unsupported("PTX: call of " + std::string(name) + " with a wrong number of parameters");
  const std::vector<std::uint64_t> from = addresses(arguments), to = addresses(results);
  auto& copies = compiler_.program().copies;
  std::vector<LocalCopy> in, out;
  for (std::size_t i = 0; i < from.size(); ++i)
    in.push_back({from[i], callee.parameters[i], callee.function->parameters[i].size});
  for (std::size_t i = 0; i < to.size(); ++i)
    out.push_back({callee.results[i], to[i], callee.function->results[i].size});
  copies.push_back(std::move(in));
  copies.push_back(std::move(out));
  called_ = name;
  return {static_cast<std::uint32_t>(copies.size() - 2), static_cast<std::uint32_t>(copies.size() - 1)};
}

void FunctionCompiler::declare_registers(Scanner& scanner) {
  std::string_view word = scanner.name();
  const Type type = type_named(word.substr(1));
  if (type == Type::none)
    throw Unsupported("the emulator does not know registers of type " + std::string(word));
  do {
    const std::string_view name = scanner.name();
    if (scanner.accept("<")) {
      const auto count = static_cast<std::uint32_t>(scanner.integer());
      scanner.expect(">");
      Slot first = no_slot;
      for (std::uint32_t i = 0; i < count; ++i) {
        const Slot slot = compiler_.new_register(type);
        if (i == 0) first = slot;
      }
      scopes_.back().ranges[name] = {type, count, first};
    } else {
      scopes_.back().registers[name] = {compiler_.new_register(type), type};
    }
  } while (scanner.accept(","));
  scanner.expect(";");
}

void FunctionCompiler::declare_variable(const Variable& variable) {
  if (variable.space == Space::shared) {
    declare(variable.name, {Space::shared, compiler_.place_shared(variable)});
  } else if (variable.space == Space::local || variable.space == Space::parameter) {
    declare(variable.name, {Space::local, compiler_.place_local(variable.size, variable.alignment)});
  } else {
    throw Unsupported("the emulator does not know variables of this space within functions");
  }
}

void FunctionCompiler::directive(Scanner& scanner) {
  const std::string_view word = scanner.name();
  if (word == ".reg") return declare_registers(scanner);
  if (word == ".loc") return scanner.skip_line();
  if (word == ".pragma") {
    scanner.until(';');
    return;
  }
  const Space space = word == ".shared"  ? Space::shared
                      : word == ".local" ? Space::local
                      : word == ".param" ? Space::parameter
                                         : Space::generic;
  if (space == Space::generic)
    throw Unsupported("the emulator does not know the directive " + std::string(word));
  do declare_variable(parse_variable(scanner, space));
  while (scanner.accept(","));
  scanner.expect(";");
}

void FunctionCompiler::branch_target_list(Scanner& scanner, std::string_view label) {
  auto& lists = compiler_.program().branch_targets;
  target_lists_[label] = static_cast<std::uint32_t>(lists.size());
  lists.emplace_back();
  do {
    scopes_.back().uses.push_back(
        {.label = scanner.name(), .target = std::pair{lists.size() - 1, lists.back().size()}});
    lists.back().push_back(0);
  } while (scanner.accept(","));
  scanner.expect(";");
}

bool FunctionCompiler::label(Scanner& scanner) {
  if (scanner.peek() == '@') return false;
  Scanner ahead = scanner;
  const std::string_view name = ahead.name();
  if (!ahead.accept(":")) return false;
  scanner = ahead;
  if (scanner.accept(".branchtargets"))
    branch_target_list(scanner, name);
  else if (scanner.accept(".callprototype"))
    scanner.until(';');
  else
    scopes_.back().labels[name] = here();
  return true;
}

void FunctionCompiler::emit(Instruction instruction, const Instruction& guarded_as) {
  instruction.guard = guarded_as.guard;
  instruction.guard_negated = guarded_as.guard_negated;
  instruction.text = guarded_as.text;
  compiler_.program().code.push_back(std::move(instruction));
}

void FunctionCompiler::statement(std::string_view text) {
  const Statement statement = parse_statement(text);
  if (statement.opcode.empty()) return;
  Instruction out;
  out.text = text;
  before_.clear();
  after_.clear();
  jump_label_ = called_ = {};
  try {
    if (!statement.guard.empty()) {
      const auto guard = find_register(statement.guard);
      if (!guard || guard->type != Type::pred) throw Unsupported("the guard is no predicate");
      out.guard = guard->slot;
      out.guard_negated = statement.guard_negated;
    }
    Builder builder(statement, *this, out);
    out.execute = build(builder);
  } catch (const Unsupported& error) {
    throw Unsupported("PTX \"" + std::string(text.substr(text.find_first_not_of(" \t\n"))) +
                      "\": " + error.what());
  }
  for (Instruction& instruction : before_) emit(std::move(instruction), out);
  const std::size_t index = compiler_.program().code.size();
  if (!jump_label_.empty()) scopes_.back().uses.push_back({.label = jump_label_, .code_index = index});
  if (!called_.empty()) compiler_.call_at(index, called_);
  emit(out, out);
  for (Instruction& instruction : after_) emit(std::move(instruction), out);
}

/// A label may stand behind its use, in the scope of the use or around it.
void FunctionCompiler::close_scope() {
  Scope closed = std::move(scopes_.back());
  scopes_.pop_back();
  Program& program = compiler_.program();
  for (const Use& use : closed.uses) {
    if (const auto found = closed.labels.find(use.label); found != closed.labels.end()) {
      if (use.target)
        program.branch_targets[use.target->first][use.target->second] = found->second;
      else
        program.code[use.code_index].immediate = found->second;
    } else if (scopes_.empty()) {
      throw Unsupported("PTX: label " + std::string(use.label) + " is missing");
    } else {
      scopes_.back().uses.push_back(use);
    }
  }
}

void FunctionCompiler::compile() {
  Scanner scanner(function_.body);
  while (!scanner.at_end()) {
    if (scanner.accept("{")) {
      scopes_.emplace_back();
    } else if (scanner.accept("}")) {
      close_scope();
    } else if (scanner.peek() == '.') {
      directive(scanner);
    } else if (scanner.accept(";")) {
      continue;
    } else if (!label(scanner)) {
      statement(scanner.until(';'));
    }
  }
  statement("ret");
  close_scope();
}

}  // namespace emulator
