#pragma once
/// A rank in a child process, so that somebody is left to tell how it ended.

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>

namespace experiments {

/// What a rank tells of itself as it goes on.
struct RankProgress {
  static constexpr std::uint64_t none = ~std::uint64_t{0};
  std::atomic<std::uint64_t> step = none;          ///< that is under way
  std::atomic<std::uint64_t> calls = 0;            ///< of the MPI library, begun and ended: odd in one
  std::atomic<std::uint64_t> allowed_seconds = 0;  ///< from one call to the next; 0: any time
};

/// A call of the MPI library, which may wait for other ranks.
class CallUnderWay {
 public:
  explicit CallUnderWay(RankProgress& progress) : calls_(progress.calls) { ++calls_; }
  ~CallUnderWay() { ++calls_; }
  CallUnderWay(const CallUnderWay&) = delete;
  CallUnderWay& operator=(const CallUnderWay&) = delete;

 private:
  std::atomic<std::uint64_t>& calls_;
};

/// How long a rank has neither begun nor ended a call. A second counts where it is told of: none passes while all processes
/// are suspended.
class Silence {
 public:
  explicit Silence(bool is_first) : is_first_(is_first) {}

  /// One more second has passed. Returns what is wrong with the rank, or nothing. A rank that waits is not what holds the
  /// others up; where nobody says who does, the first rank does in twice the time.
  std::string add_second(const RankProgress& progress, bool is_stopped);

 private:
  bool is_first_;
  std::uint64_t calls_ = 0, seconds_ = 0;
};

/// Returns in a child process, which the rest of the program runs in, with what it is to keep up to date. This process waits
/// for its end, hands signals on to it and ends with its exit code. Where it is killed by a signal that was not handed on, or
/// silent for longer than it is allowed, this process writes the line of that and ends with exit code 1, upon which a launcher
/// ends the other ranks. Where it is stopped, there is a line as well. The child ends with this process. Throws
/// std::runtime_error where there can be none.
RankProgress& continue_in_child(
    bool is_first, const std::function<std::string(const std::string& what, const RankProgress&)>& line);

}  // namespace experiments
