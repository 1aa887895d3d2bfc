#pragma once
/// A rank in a child process, so that somebody is left to tell how it ended.

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>

namespace experiments {

/// What is known of a rank that was killed.
struct RankProgress {
  static constexpr std::uint64_t none = ~std::uint64_t{0};
  std::atomic<std::uint64_t> step = none;  ///< that is under way
};

/// Returns in a child process, which the rest of the program runs in, with what it is to keep up to date. This process waits
/// for its end, hands signals on to it and ends with its exit code; where it was killed by a signal that was not handed on, with
/// the line of that signal and exit code 1, upon which a launcher ends the other ranks. The child ends with this process. Throws std::runtime_error
/// where there can be none.
RankProgress& continue_in_child(const std::function<std::string(int signal, const RankProgress&)>& line);

}  // namespace experiments
