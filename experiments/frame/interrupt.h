#pragma once
/// Ctrl-C as an exception: the handler sets a flag, the loops of a run poll it, and unwinding cleans up.

#include <csignal>
#include <stdexcept>
#include <string>

namespace experiments {

struct Interrupted : std::runtime_error {
  explicit Interrupted(const std::string& what = "interrupted; nothing was written")
      : std::runtime_error(what) {}
};

/// Whether SIGINT, SIGTERM or SIGHUP has arrived under an InterruptGuard.
bool is_interrupted();

/// Throws Interrupted where is_interrupted().
void throw_if_interrupted();

/// While it lives, the first SIGINT, SIGTERM or SIGHUP is only noted; a second one ends the process as usual. A
/// SIGHUP that is ignored (nohup) stays ignored.
class InterruptGuard {
 public:
  InterruptGuard();
  ~InterruptGuard();
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;

 private:
  struct sigaction old_interrupt_;
  struct sigaction old_terminate_;
  struct sigaction old_hang_up_;
};

}  // namespace experiments
