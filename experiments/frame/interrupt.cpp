#include "experiments/frame/interrupt.h"

#include <atomic>

namespace experiments {
namespace {

std::atomic<bool> interrupted = false;
std::atomic<bool> checkpoint_asked = false;
static_assert(std::atomic<bool>::is_always_lock_free);

}  // namespace

bool is_interrupted() {
  return interrupted.load(std::memory_order_acquire);  // what it was for is then known, too
}

bool is_checkpoint_asked() {
  return checkpoint_asked.load(std::memory_order_relaxed);
}

void throw_if_interrupted() {
  if (is_interrupted()) throw Interrupted();
}

InterruptGuard::InterruptGuard() {
  interrupted = false;
  struct sigaction action {};
  action.sa_handler = [](int) { interrupted = true; };
  action.sa_flags = static_cast<int>(SA_RESETHAND) | SA_RESTART;
  sigaction(SIGINT, &action, &old_interrupt_);
  sigaction(SIGTERM, &action, &old_terminate_);
  sigaction(SIGHUP, nullptr, &old_hang_up_);
  if (old_hang_up_.sa_handler != SIG_IGN) sigaction(SIGHUP, &action, nullptr);
}

InterruptGuard::~InterruptGuard() {
  sigaction(SIGINT, &old_interrupt_, nullptr);
  sigaction(SIGTERM, &old_terminate_, nullptr);
  sigaction(SIGHUP, &old_hang_up_, nullptr);
}

CheckpointGuard::CheckpointGuard() {
  checkpoint_asked = false;
  struct sigaction action {};
  action.sa_handler = [](int) {
    checkpoint_asked = true;
    interrupted = true;
  };
  action.sa_flags = SA_RESTART;
  sigaction(SIGUSR1, &action, &old_);
}

CheckpointGuard::~CheckpointGuard() {
  sigaction(SIGUSR1, &old_, nullptr);
}

}  // namespace experiments
