#pragma once
/// Whether other ranks of this host are still there, which MPI does not tell.

#include <atomic>
#include <functional>
#include <string>
#include <thread>
#include <vector>

namespace experiments {

/// A process of this host whose end would be the end of all.
struct WatchedProcess {
  std::size_t rank;
  int process;
};

/// While it lives, a thread waits for the end of the others. The lowest rank that is left says so in a line, and ends with
/// exit code 1: a library whose call waits for a rank that has ended may never return. Where a rank has said itself why it
/// ends (speak_for_all), the others say nothing.
class Watch {
 public:
  /// `line`: what is said of a rank that has ended; called on the thread.
  Watch(std::vector<WatchedProcess> others, std::size_t own_rank,
        std::function<std::string(std::size_t rank)> line);
  ~Watch();
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;

  /// Before this process ends with a line of its own.
  void speak_for_all() const;

 private:
  void wait();

  std::vector<WatchedProcess> others_;
  std::vector<int>
      handles_;  ///< of each, and at last what wakes the thread when there is nothing more to wait for
  std::size_t own_rank_;
  std::function<std::string(std::size_t)> line_;
  std::jthread thread_;
};

}  // namespace experiments
