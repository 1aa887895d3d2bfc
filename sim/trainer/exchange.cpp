#include "sim/trainer/exchange.h"

#include <algorithm>
#include <utility>

#include "sim/trainer/lock_step.h"

namespace sim {
namespace {

/// What is gathered of `ranks` that all show the same.
std::vector<double> of_likes(std::span<const double> own, std::size_t ranks) {
  std::vector<double> likes;
  for (std::size_t i = 0; i < ranks; ++i) likes.insert(likes.end(), own.begin(), own.end());
  return likes;
}

}  // namespace

class VirtualRanks::Gathering final : public ShardGathering {
 public:
  Gathering(LockStep& lock_step, std::size_t rank, std::size_t ranks)
      : lock_step_(lock_step), rank_(rank), ranks_(ranks) {}

  std::vector<double> gather(std::span<const double> own) override {
    return lock_step_.is_running() ? lock_step_.gather(rank_, own) : of_likes(own, ranks_);
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

std::span<const float> VirtualRanks::all_reduce(std::span<const std::span<const float>> own,
                                                const AllReduce& how) {
  return mean_ = all_reduce_mean(own, how).values;
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

class OneRank::Gathering final : public ShardGathering {
 public:
  explicit Gathering(Wire& wire) : wire_(wire) {}

  std::vector<double> gather(std::span<const double> own) override {
    return is_running ? wire_.gather(own) : of_likes(own, wire_.ranks());
  }

  bool is_running = false;

 private:
  Wire& wire_;
};

OneRank::OneRank(Wire& wire) : wire_(wire), gathering_(std::make_unique<Gathering>(wire)) {}

OneRank::~OneRank() = default;

std::span<const float> OneRank::all_reduce(std::span<const std::span<const float>> own,
                                           const AllReduce& how) {
  return all_reduce_over(wire_, own.front(), how, space_);
}

void OneRank::in_lock_step(const std::function<void(std::size_t)>& compute) {
  gathering_->is_running = true;
  compute(0);
  gathering_->is_running = false;
}

ShardGathering& OneRank::gathering(std::size_t) {
  return *gathering_;
}

}  // namespace sim
