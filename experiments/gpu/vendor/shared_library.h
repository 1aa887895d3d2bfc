#pragma once
/// Shared libraries that are opened while the program runs, so that it starts where they are missing.

#include <span>
#include <string>

namespace experiments {

/// Stays loaded until the program ends: CUDA's libraries have work to do at exit.
class SharedLibrary {
 public:
  /// Opens the first of these file names that the dynamic loader finds (dlopen(3)). Throws
  /// std::runtime_error, one line, if there is none.
  explicit SharedLibrary(std::span<const char* const> names);

  /// The name that was found.
  const std::string& name() const { return name_; }

  /// Throws std::runtime_error, one line, where the library has no such function, as an older one may.
  template <typename Function>
  void find(const char* symbol, Function*& function) const {
    function = reinterpret_cast<Function*>(address(symbol));
  }

 private:
  void* address(const char* symbol) const;

  void* handle_ = nullptr;
  std::string name_;
};

}  // namespace experiments
