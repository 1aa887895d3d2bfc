/// C++ exceptions as exceptions of the page: `throw` calls a function of JavaScript with what(), which throws an Error and so
/// leaves all functions on the stack. Nothing is destroyed on the way; who calls the engine sets its stack back
/// (engine.js) and loses what the call had allocated.

#include <cstddef>
#include <cstdlib>
#include <exception>
#include <typeinfo>

extern "C" {

[[noreturn]] __attribute__((import_module("page"), import_name("raise"))) void page_raise(const char* what);

void* __cxa_allocate_exception(std::size_t size) noexcept {
  return std::malloc(size);
}

void __cxa_free_exception(void* exception) noexcept {
  std::free(exception);
}

/// Everything that the library throws is a std::exception.
[[noreturn]] void __cxa_throw(void* exception, std::type_info*, void (*)(void*)) {
  page_raise(static_cast<std::exception*>(exception)->what());
}
}
