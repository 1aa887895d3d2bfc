#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <system_error>
#include <vector>

namespace sim {

/// Ranks in one process that wait for each other wherever they gather numbers. Each is on a thread of its own, of which
/// one runs at a time, from one gathering to the next, in ascending order: what they compute and allocate does not
/// depend on the machine.
class LockStep {
 public:
  explicit LockStep(std::size_t ranks);
  ~LockStep();

  /// Calls compute(rank) for every rank. Rethrows what one of them has thrown, after which the others end where they
  /// wait. Throws std::runtime_error where the system starts fewer threads than there are ranks.
  void run(const std::function<void(std::size_t)>& compute);
  bool is_running() const;

  /// Within run(), from `rank`: the numbers of all ranks, one rank's after another's.
  std::vector<double> gather(std::size_t rank, std::span<const double> own);

 private:
  struct Stopped {};  ///< thrown where a rank waits and another has failed
  struct Turn;

  void run_rank(std::size_t rank, const std::function<void(std::size_t)>& compute);
  void give_up(std::size_t started, const std::system_error& error);
  void pass_on(std::size_t rank);
  void wait_for(std::size_t rank);

  std::size_t ranks_;
  std::unique_ptr<Turn> turn_;
  std::vector<double> shown_, gathered_;
};

}  // namespace sim
