#pragma once
/// Independent runs side by side.

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <exception>
#include <thread>
#include <vector>

namespace experiments {

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
  const auto work = [&] {
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
    const std::size_t wanted = std::min(count, static_cast<std::size_t>(std::max(threads, 1)));
    for (std::size_t helper = 1; helper < wanted; ++helper) helpers.emplace_back(work);
    work();
  }
  for (const std::exception_ptr& error : errors) {
    if (error) std::rethrow_exception(error);
  }
}

}  // namespace experiments
