#pragma once
/// Independent runs side by side.

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <exception>
#include <thread>
#include <vector>

namespace experiments {

/// How many of so many bodies parallel_for_each() runs at one time.
inline std::size_t runs_at_one_time(std::size_t count, int threads) {
  return std::min(count, static_cast<std::size_t>(std::max(threads, 1)));
}

/// While it lives, its thread is one of so many that do the same at one time, and share what there is of memory.
class SideBySide {
 public:
  explicit SideBySide(std::size_t count) : outer_(current) { current = count; }
  ~SideBySide() { current = outer_; }
  SideBySide(const SideBySide&) = delete;
  SideBySide& operator=(const SideBySide&) = delete;

  /// The number of the innermost one of this thread; 1 without.
  static std::size_t count() { return current; }

 private:
  std::size_t outer_;
  inline static thread_local std::size_t current = 1;
};

/// Calls body(0) .. body(count - 1), each once, on up to `threads` threads (at least one; the calling thread
/// is among them). The indices are handed out in ascending order as threads become free; a body that writes
/// only to the slot of its own index leaves results that do not depend on the number of threads. After an
/// exception no further index is started; of all exceptions the one with the lowest index is rethrown, which
/// is the one that a single thread would have met.
template <typename Body>
void parallel_for_each(std::size_t count, int threads, Body&& body) {
  std::atomic<std::size_t> next = 0;
  std::atomic<bool> failed = false;
  std::vector<std::exception_ptr> errors(count);
  const std::size_t wanted = runs_at_one_time(count, threads);
  const auto work = [&] {
    const SideBySide bodies(wanted);
    while (!failed) {
      const std::size_t index = next++;
      if (index >= count) return;
      try {
        body(index);
      } catch (...) {
        errors[index] = std::current_exception();
        failed = true;
      }
    }
  };
  {
    std::vector<std::jthread> helpers;
    for (std::size_t helper = 1; helper < wanted; ++helper) helpers.emplace_back(work);
    work();
  }
  for (const std::exception_ptr& error : errors) {
    if (error) std::rethrow_exception(error);
  }
}

}  // namespace experiments
