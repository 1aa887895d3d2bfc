#pragma once
/// How the ranks of a data-parallel step share what each of them has.

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "sim/tensor/shard.h"
#include "sim/trainer/allreduce.h"
#include "sim/trainer/scheduled_allreduce.h"
#include "sim/trainer/wire.h"

namespace sim {

class LockStep;

/// The ranks 0 .. ranks() - 1 as one process sees them, which computes some of them, its own, and exchanges numbers with
/// whoever computes the others. Every process makes the same calls in the same order. What comes out is the same bits
/// for every rank, and the same however the ranks are spread over processes.
class Exchange {
 public:
  virtual ~Exchange() = default;

  virtual std::size_t ranks() const = 0;
  /// Own are the ranks first_own() .. first_own() + own() - 1.
  virtual std::size_t first_own() const = 0;
  virtual std::size_t own() const = 0;

  /// The mean over all ranks as all_reduce_mean forms it; `own` has an array of each own rank. Of values of binary16
  /// unless the precision is fp32: what is sent are their codes. Valid until the next one.
  virtual std::span<const float> all_reduce(std::span<const std::span<const float>> own,
                                            const AllReduce& how) = 0;

  /// The numbers of all ranks in their order; `own` has those of the own ranks, as many of each.
  virtual std::vector<double> gather(std::span<const double> own) = 0;

  /// The largest of the own numbers and of all others'; no NaN is among them.
  virtual double maximum(std::span<const double> own) = 0;

  /// The bytes that whoever computes rank `from` hands over, for everybody.
  virtual std::string broadcast(std::string bytes, std::size_t from) = 0;

  /// Calls compute(i) for each own rank first_own() + i. They go on together: where one gathers, it waits for the others.
  virtual void in_lock_step(const std::function<void(std::size_t)>& compute) = 0;

  /// What own rank first_own() + i gathers with inside of in_lock_step(). Outside of it one shard is alone, such as in a
  /// pass that an observer makes for itself, and all others count as its like.
  virtual ShardGathering& gathering(std::size_t i) = 0;
};

/// All ranks in this process, computed one after the other.
class VirtualRanks final : public Exchange {
 public:
  /// At least one rank.
  explicit VirtualRanks(std::size_t ranks);
  ~VirtualRanks() override;

  std::size_t ranks() const override { return gatherings_.size(); }
  std::size_t first_own() const override { return 0; }
  std::size_t own() const override { return ranks(); }
  std::span<const float> all_reduce(std::span<const std::span<const float>> own,
                                    const AllReduce& how) override;
  std::vector<double> gather(std::span<const double> own) override { return {own.begin(), own.end()}; }
  double maximum(std::span<const double> own) override;
  std::string broadcast(std::string bytes, std::size_t) override { return bytes; }
  void in_lock_step(const std::function<void(std::size_t)>& compute) override;
  ShardGathering& gathering(std::size_t i) override;

 private:
  class Gathering;

  std::unique_ptr<LockStep> lock_step_;
  std::vector<std::unique_ptr<Gathering>> gatherings_;
  std::vector<float> mean_;
};

/// One rank in this process, the others wherever a wire leads to.
class OneRank final : public Exchange {
 public:
  /// The wire must outlive it.
  explicit OneRank(Wire& wire);
  ~OneRank() override;

  std::size_t ranks() const override { return wire_.ranks(); }
  std::size_t first_own() const override { return wire_.rank(); }
  std::size_t own() const override { return 1; }
  std::span<const float> all_reduce(std::span<const std::span<const float>> own,
                                    const AllReduce& how) override;
  std::vector<double> gather(std::span<const double> own) override { return wire_.gather(own); }
  double maximum(std::span<const double> own) override { return wire_.maximum(own.front()); }
  std::string broadcast(std::string bytes, std::size_t from) override {
    return wire_.broadcast(std::move(bytes), from);
  }
  void in_lock_step(const std::function<void(std::size_t)>& compute) override;
  ShardGathering& gathering(std::size_t i) override;

 private:
  class Gathering;

  Wire& wire_;
  std::unique_ptr<Gathering> gathering_;
  AllReduceSpace space_;
};

}  // namespace sim
