#include "tests/emulator/module.h"

#include <cstring>

#include "tests/emulator/memory.h"

namespace emulator {

Module::Module(std::string_view ptx) : text_(without_comments(ptx)), parts_(parse_module(text_)) {
  for (const Function& function : parts_.functions) {
    const Function*& known = functions_[function.name];
    if (known == nullptr || known->body.empty()) known = &function;
  }
  for (const Variable& variable : parts_.variables) {
    variables_[variable.name] = &variable;
    if (variable.space == Space::global || variable.space == Space::constant) place(variable);
  }
  // After all have places, since one may hold another's address.
  for (const Variable& variable : parts_.variables) {
    if (const auto found = addresses_.find(variable.name); found != addresses_.end())
      initialize(variable, found->second);
  }
}

void Module::place(const Variable& variable) {
  addresses_[variable.name] = global_memory().allocate(variable.size, variable.space == Space::constant
                                                                          ? GlobalMemory::Owner::constant
                                                                          : GlobalMemory::Owner::variable);
}

void Module::initialize(const Variable& variable, std::byte* bytes) {
  std::memset(bytes, 0, variable.size);
  const auto element = static_cast<std::uint64_t>(bytes_of(variable.type));
  std::uint64_t at = 0;
  for (const Initializer& initializer : variable.initializers) {
    auto value = static_cast<std::uint64_t>(initializer.value);
    if (!initializer.symbol.empty()) value += reinterpret_cast<std::uint64_t>(address_of(initializer.symbol));
    if (at + element > variable.size)
      throw Unsupported("PTX: variable " + std::string(variable.name) + " has too many initial values");
    std::memcpy(bytes + at, &value, element);
    at += element;
  }
}

const Program& Module::kernel(const std::string& name) {
  if (const auto found = programs_.find(name); found != programs_.end()) return found->second;
  const Function* function = find_function(name);
  if (function == nullptr || !function->is_entry) throw Unsupported("the PTX has no kernel " + name);
  return programs_.emplace(name, compile(*this, *function)).first->second;
}

const Function* Module::find_function(std::string_view name) const {
  const auto found = functions_.find(name);
  return found == functions_.end() ? nullptr : found->second;
}

const Variable* Module::find_variable(std::string_view name) const {
  const auto found = variables_.find(name);
  return found == variables_.end() ? nullptr : found->second;
}

std::byte* Module::address_of(std::string_view variable) const {
  const auto found = addresses_.find(variable);
  if (found == addresses_.end())
    throw Unsupported("PTX: no variable " + std::string(variable) + " has an address");
  return found->second;
}

bool Module::has_kernel(std::string_view name) const {
  const Function* function = find_function(name);
  return function != nullptr && function->is_entry;
}

}  // namespace emulator
