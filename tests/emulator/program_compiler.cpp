#include <cxxabi.h>

#include <algorithm>
#include <cstdlib>
#include <string>

#include "tests/emulator/compiler.h"

namespace emulator {

namespace {

/// A function's name as in its source.
std::string readable(std::string_view name) {
  int status = 0;
  char* const text = abi::__cxa_demangle(std::string(name).c_str(), nullptr, nullptr, &status);
  const std::string result = status == 0 ? text : std::string(name);
  std::free(text);
  return result;
}

}  // namespace

Slot ProgramCompiler::new_register(Type type) {
  const Slot slot = program_.register_bytes;
  program_.register_bytes += std::max<std::uint32_t>(slot_bytes(type), 8);
  return slot;
}

Slot ProgramCompiler::constant(int bytes, std::uint64_t bits) {
  const auto [found, is_new] = constants_.try_emplace({bytes, bits}, no_slot);
  if (is_new) {
    const Type type = bytes < 0    ? Type::pred
                      : bytes == 1 ? Type::b8
                      : bytes == 2 ? Type::b16
                      : bytes == 4 ? Type::b32
                                   : Type::b64;
    found->second = new_register(type);
    program_.constants.push_back({found->second, bytes, bits});
  }
  return found->second;
}

Slot ProgramCompiler::special(const NamedSpecial& special) {
  const auto [found, is_new] = specials_.try_emplace(special.special, no_slot);
  if (is_new) {
    found->second = new_register(special.type);
    program_.specials.push_back({found->second, special.special});
  }
  return found->second;
}

std::uint64_t ProgramCompiler::place_local(std::uint64_t size, std::uint64_t alignment) {
  const std::uint64_t offset = round_up(program_.local_bytes, std::max<std::uint64_t>(alignment, 8));
  program_.local_bytes = round_up(offset + size, 16);
  return offset;
}

std::uint64_t ProgramCompiler::place_shared(const Variable& variable) {
  const std::uint64_t offset = round_up(program_.static_shared_bytes, variable.alignment);
  program_.static_shared_bytes = offset + variable.size;
  return offset;
}

std::uint64_t ProgramCompiler::shared_address(const Variable& variable) {
  if (variable.size == 0) {
    uses_dynamic_ = true;
    return round_up(dynamic_, std::max<std::uint64_t>(variable.alignment, 16));
  }
  const auto [found, is_new] = shared_.try_emplace(variable.name, 0);
  if (is_new) found->second = place_shared(variable);
  return found->second;
}

Callee& ProgramCompiler::callee(std::string_view name) {
  Callee& result = callees_[name];
  if (result.function != nullptr) return result;
  result.function = module_.find_function(name);
  if (result.function == nullptr || result.function->body.empty())
    throw Unsupported("the emulator does not know the function " + std::string(name));
  for (const Variable& parameter : result.function->parameters)
    result.parameters.push_back(place_local(parameter.size, parameter.alignment));
  for (const Variable& value : result.function->results)
    result.results.push_back(place_local(value.size, value.alignment));
  to_compile_.push_back(name);
  return result;
}

Program ProgramCompiler::compile(const Function& entry) {
  program_.name = readable(entry.name);
  program_.max_threads = entry.max_threads;
  FunctionCompiler main(*this, entry);
  for (const Variable& parameter : entry.parameters) {
    const std::uint64_t offset = round_up(program_.parameter_bytes, parameter.alignment);
    program_.parameters.push_back({offset, parameter.size});
    program_.parameter_bytes = offset + parameter.size;
    main.declare(parameter.name, {Space::parameter, offset});
  }
  main.compile();
  while (!to_compile_.empty()) {
    Callee& callee = callees_[to_compile_.back()];
    to_compile_.pop_back();
    callee.place = static_cast<std::uint32_t>(program_.code.size());
    FunctionCompiler function(*this, *callee.function);
    for (std::size_t i = 0; i < callee.parameters.size(); ++i)
      function.declare(callee.function->parameters[i].name, {Space::local, callee.parameters[i]});
    for (std::size_t i = 0; i < callee.results.size(); ++i)
      function.declare(callee.function->results[i].name, {Space::local, callee.results[i]});
    function.compile();
  }
  for (const PendingCall& call : calls_)
    program_.code[call.code_index].immediate = callees_[call.function].place;
  return std::move(program_);
}

Program compile(const Module& module, const Function& entry) {
  ProgramCompiler first(module, 0);
  Program program = first.compile(entry);
  if (!first.uses_dynamic_shared()) return program;
  // Dynamic shared memory lies behind the static, whose size is known only now.
  ProgramCompiler second(module, program.static_shared_bytes);
  program = second.compile(entry);
  program.static_shared_bytes = round_up(program.static_shared_bytes, 16);
  return program;
}

}  // namespace emulator
