#include "sim/ops/operation_options.h"

#include <cxxabi.h>

#include <cstdlib>
#include <stdexcept>
#include <string>

namespace sim {
namespace {

std::string name_of(const std::type_info& type) {
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> name(
      abi::__cxa_demangle(type.name(), nullptr, nullptr, &status), &std::free);
  return status == 0 ? name.get() : type.name();
}

}  // namespace

void OperationOptions::refuse(const std::type_info& held, const std::type_info& asked_for) {
  throw std::logic_error("options of an operation: " + name_of(held) + " given, " + name_of(asked_for) +
                         " expected");
}

}  // namespace sim
