#pragma once
/// Ranks of a run in tests.

#include <algorithm>
#include <barrier>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "sim/trainer/exchange.h"
#include "tests/sim/training_runs.h"

namespace training_runs {

inline Setup with_ranks(std::size_t ranks,
                        const sim::AllReduce& how = {.precision = sim::AllReducePrecision::fp32},
                        Setup setup = {}) {
  setup.options.batch = 24;
  setup.options.steps = 10;
  setup.options.parallel.ranks = ranks;
  setup.options.parallel.all_reduce = how;
  return setup;
}

/// Numbers that processes, each a thread with one rank, show each other.
class Board {
 public:
  explicit Board(std::size_t ranks) : barrier_(static_cast<std::ptrdiff_t>(ranks)), shown_(ranks) {}

  std::vector<std::vector<double>> exchange(std::size_t rank, std::vector<double> own) {
    shown_[rank] = std::move(own);
    barrier_.arrive_and_wait();
    std::vector<std::vector<double>> all = shown_;
    barrier_.arrive_and_wait();
    return all;
  }
  std::size_t ranks() const { return shown_.size(); }

 private:
  std::barrier<> barrier_;
  std::vector<std::vector<double>> shown_;
};

/// What a process has that computes one rank of several.
class OneRank final : public sim::Exchange, public sim::ShardGathering {
 public:
  OneRank(Board& board, std::size_t rank) : board_(board), rank_(rank) {}

  std::size_t ranks() const override { return board_.ranks(); }
  std::size_t first_own() const override { return rank_; }
  std::size_t own() const override { return 1; }
  std::vector<float> all_reduce(std::span<const std::span<const float>> own,
                                const sim::AllReduce& how) override {
    std::vector<std::vector<float>> workers;
    for (const std::vector<double>& one : board_.exchange(rank_, {own.front().begin(), own.front().end()}))
      workers.emplace_back(one.begin(), one.end());
    const std::vector<std::span<const float>> views(workers.begin(), workers.end());
    return sim::all_reduce_mean(views, how).values;
  }
  std::vector<double> gather(std::span<const double> own) override {
    std::vector<double> all;
    for (const std::vector<double>& one : board_.exchange(rank_, {own.begin(), own.end()}))
      all.insert(all.end(), one.begin(), one.end());
    return all;
  }
  double maximum(std::span<const double> own) override { return std::ranges::max(gather(own)); }
  void in_lock_step(const std::function<void(std::size_t)>& compute) override { compute(0); }
  sim::ShardGathering& gathering(std::size_t) override { return *this; }

 private:
  Board& board_;
  std::size_t rank_;
};

}  // namespace training_runs
