#pragma once
/// The time that a part of a run may take.

#include <chrono>
#include <optional>

namespace experiments::validate_gpu {

using Seconds = std::chrono::duration<double>;

/// Of so many seconds from now on; endless for nothing.
class Budget {
 public:
  explicit Budget(std::optional<double> seconds) : seconds_(seconds) {}

  /// Whether what takes as long as `next` would end within it.
  bool allows(Seconds next = Seconds(0)) const {
    return !seconds_ || Seconds(std::chrono::steady_clock::now() - start_) + next < Seconds(*seconds_);
  }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  std::optional<double> seconds_;
};

}  // namespace experiments::validate_gpu
