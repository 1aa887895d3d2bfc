#include "sim/trainer/lock_step.h"

#include <condition_variable>
#include <exception>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>

#include "sim/tensor/allocation_trace.h"

namespace sim {

/// Whose turn it is; nobody's outside of run().
struct LockStep::Turn {
  std::mutex mutex;
  std::condition_variable changed;
  std::optional<std::size_t> rank;
  std::exception_ptr error;
  bool is_given_up = false;  ///< before any rank began, as not all can
};

LockStep::LockStep(std::size_t ranks) : ranks_(ranks), turn_(std::make_unique<Turn>()) {}

LockStep::~LockStep() = default;

void LockStep::run(const std::function<void(std::size_t)>& compute) {
  turn_->rank = 0;
  turn_->error = nullptr;
  turn_->is_given_up = false;
  {
    AllocationTrace* const trace = AllocationTrace::innermost();
    std::vector<std::jthread> others;
    for (std::size_t rank = 1; rank < ranks_; ++rank) {
      try {
        others.emplace_back([this, rank, trace, &compute] {
          const AllocationTrace::Continued continued(trace);
          run_rank(rank, compute);
        });
      } catch (const std::system_error& error) {
        give_up(rank, error);
        break;
      }
    }
    if (!turn_->is_given_up) run_rank(0, compute);
  }
  turn_->rank.reset();
  if (turn_->error) std::rethrow_exception(turn_->error);
}

bool LockStep::is_running() const {
  return turn_->rank.has_value();
}

std::vector<double> LockStep::gather(std::size_t rank, std::span<const double> own) {
  if (rank == 0) shown_.clear();
  shown_.insert(shown_.end(), own.begin(), own.end());
  if (rank + 1 == ranks_) gathered_ = shown_;
  pass_on(rank);
  wait_for(rank);
  return gathered_;
}

void LockStep::run_rank(std::size_t rank, const std::function<void(std::size_t)>& compute) {
  try {
    wait_for(rank);
    compute(rank);
  } catch (const Stopped&) {
  } catch (...) {
    turn_->error = std::current_exception();
  }
  pass_on(rank);
}

void LockStep::give_up(std::size_t started, const std::system_error& error) {
  const std::scoped_lock lock(turn_->mutex);
  turn_->error = std::make_exception_ptr(std::runtime_error(
      std::to_string(ranks_) + " ranks that gather need as many threads at once, and the system starts " +
      std::to_string(started) + " (" + error.code().message() + "); allowed: fewer ranks"));
  turn_->is_given_up = true;
  turn_->changed.notify_all();
}

void LockStep::pass_on(std::size_t rank) {
  const std::scoped_lock lock(turn_->mutex);
  turn_->rank = (rank + 1) % ranks_;
  turn_->changed.notify_all();
}

void LockStep::wait_for(std::size_t rank) {
  std::unique_lock lock(turn_->mutex);
  turn_->changed.wait(lock, [&] { return turn_->rank == rank || turn_->is_given_up; });
  if (turn_->error) throw Stopped{};
}

}  // namespace sim
