#include "sim/trainer/exchange.h"

#include <algorithm>
#include <utility>

#include "sim/trainer/lock_step.h"

namespace sim {

class VirtualRanks::Gathering final : public ShardGathering {
 public:
  Gathering(LockStep& lock_step, std::size_t rank, std::size_t ranks)
      : lock_step_(lock_step), rank_(rank), ranks_(ranks) {}

  std::vector<double> gather(std::span<const double> own) override {
    if (lock_step_.is_running()) return lock_step_.gather(rank_, own);
    std::vector<double> likes;
    for (std::size_t i = 0; i < ranks_; ++i) likes.insert(likes.end(), own.begin(), own.end());
    return likes;
  }

 private:
  LockStep& lock_step_;
  std::size_t rank_, ranks_;
};

VirtualRanks::VirtualRanks(std::size_t ranks) : lock_step_(std::make_unique<LockStep>(ranks)) {
  for (std::size_t rank = 0; rank < ranks; ++rank)
    gatherings_.push_back(std::make_unique<Gathering>(*lock_step_, rank, ranks));
}

VirtualRanks::~VirtualRanks() = default;

std::vector<float> VirtualRanks::all_reduce(std::span<const std::span<const float>> own,
                                            const AllReduce& how) {
  return all_reduce_mean(own, how).values;
}

double VirtualRanks::maximum(std::span<const double> own) {
  return std::ranges::max(own);
}

void VirtualRanks::in_lock_step(const std::function<void(std::size_t)>& compute) {
  lock_step_->run(compute);
}

ShardGathering& VirtualRanks::gathering(std::size_t i) {
  return *gatherings_[i];
}

}  // namespace sim
