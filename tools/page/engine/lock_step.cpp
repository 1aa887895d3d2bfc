/// In the place of sim/trainer/lock_step.cpp where there are no threads: one rank, which waits for nobody.

#include "sim/trainer/lock_step.h"

#include <stdexcept>

namespace sim {

struct LockStep::Turn {
  bool is_taken = false;
};

LockStep::LockStep(std::size_t ranks) : ranks_(ranks), turn_(std::make_unique<Turn>()) {}

LockStep::~LockStep() = default;

void LockStep::run(const std::function<void(std::size_t)>& compute) {
  if (ranks_ > 1) throw std::invalid_argument("ranks that wait for each other need threads");
  turn_->is_taken = true;
  compute(0);
  turn_->is_taken = false;
}

bool LockStep::is_running() const {
  return turn_->is_taken;
}

std::vector<double> LockStep::gather(std::size_t, std::span<const double> own) {
  return {own.begin(), own.end()};
}

}  // namespace sim
