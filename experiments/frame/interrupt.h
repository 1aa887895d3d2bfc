#pragma once
/// Ctrl-C as an exception: the handler sets a flag, the loops of a run poll it, and unwinding cleans up. Schedulers ask in
/// the same way for what a run can go on from, by SIGUSR1.

#include <csignal>
#include <stdexcept>
#include <string>

namespace experiments {

struct Interrupted : std::runtime_error {
  explicit Interrupted(const std::string& what = "interrupted; nothing was written")
      : std::runtime_error(what) {}
};

/// Whether SIGINT, SIGTERM or SIGHUP has arrived under an InterruptGuard, or SIGUSR1 under a CheckpointGuard.
bool is_interrupted();

/// Whether SIGUSR1 has arrived under a CheckpointGuard: whoever can go on later writes down from where before it ends.
bool is_checkpoint_asked();

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

/// While it lives, within the life of an InterruptGuard, SIGUSR1 interrupts and asks for checkpoints; another one changes
/// nothing, as it may reach a process twice, from a scheduler and from the script that the scheduler runs.
class CheckpointGuard {
 public:
  CheckpointGuard();
  ~CheckpointGuard();
  CheckpointGuard(const CheckpointGuard&) = delete;
  CheckpointGuard& operator=(const CheckpointGuard&) = delete;

 private:
  struct sigaction old_;
};

}  // namespace experiments
