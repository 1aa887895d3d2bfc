#include "experiments/gpu/vendor/shared_library.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <stdexcept>

namespace experiments {

SharedLibrary::SharedLibrary(std::span<const char* const> names) {
  for (const char* name : names) {
    handle_ = dlopen(name, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (handle_ == nullptr) continue;
    name_ = name;
    return;
  }
  throw std::runtime_error(fmt::format("no library {} can be loaded", fmt::join(names, ", ")));
}

void* SharedLibrary::address(const char* symbol) const {
  void* found = dlsym(handle_, symbol);
  if (found == nullptr) throw std::runtime_error(fmt::format("library {} has no function {}", name_, symbol));
  return found;
}

}  // namespace experiments
