#include "sim/trainer/exchange.h"

#include <doctest/doctest.h>

#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "sim/trainer/lock_step.h"
#include "tests/sim/trainer/ranks.h"

using training_runs::Run;
using training_runs::Setup;

TEST_CASE("lock-step: ranks take turns in ascending order from one gathering to the next") {
  for (const std::size_t ranks : {1, 2, 3, 5}) {
    sim::LockStep step(ranks);
    std::string turns;
    std::vector<std::vector<double>> gathered(ranks);
    CHECK(!step.is_running());
    step.run([&](std::size_t rank) {
      CHECK(step.is_running());
      for (int round = 0; round < 3; ++round) {
        turns += static_cast<char>('a' + rank);
        const std::vector<double> own{10.0 * round + static_cast<double>(rank), 0.5};
        gathered[rank] = step.gather(rank, own);
      }
      turns += static_cast<char>('a' + rank);
    });
    CHECK(!step.is_running());
    std::string round, expected_turns;
    std::vector<double> expected;
    for (std::size_t rank = 0; rank < ranks; ++rank) {
      round += static_cast<char>('a' + rank);
      expected.insert(expected.end(), {20.0 + static_cast<double>(rank), 0.5});
    }
    for (int i = 0; i < 4; ++i) expected_turns += round;
    CHECK(turns == expected_turns);
    for (const std::vector<double>& all : gathered) CHECK(all == expected);
  }
}

TEST_CASE("lock-step: what a rank throws ends all of them, and the next run is whole again") {
  sim::LockStep step(4);
  for (std::size_t bad = 0; bad < 4; ++bad) {
    for (int at : {0, 1, 2}) {
      const auto compute = [&](std::size_t rank) {
        for (int round = 0; round < 2; ++round) {
          if (rank == bad && round == at) throw std::runtime_error("rank " + std::to_string(rank));
          step.gather(rank, std::vector{1.0});
        }
        if (rank == bad && at == 2) throw std::runtime_error("rank " + std::to_string(rank));
      };
      CHECK_THROWS_WITH_AS(step.run(compute), ("rank " + std::to_string(bad)).c_str(), std::runtime_error);
    }
  }
  std::size_t sum = 0;
  step.run([&](std::size_t rank) { sum += step.gather(rank, std::vector{1.0}).size(); });
  CHECK(sum == 16);
}

TEST_CASE("virtual ranks: outside of lock-step a shard is alone among its like") {
  sim::VirtualRanks ranks(3);
  CHECK(ranks.gathering(1).gather(std::vector{1.0, 2.0}) == std::vector{1.0, 2.0, 1.0, 2.0, 1.0, 2.0});
  CHECK(ranks.maximum(std::vector{0.0, 3.0, 1.0}) == 3);
}

namespace {

/// The run of `setup` in as many processes as ranks; that of rank 0.
void check_processes(Setup setup) {
  constexpr int steps = 5;
  Run together = training_runs::run(setup, steps);
  const std::size_t ranks = setup.options.parallel.ranks;
  training_runs::Board board(ranks);
  std::vector<sim::TrainerState> states(ranks);
  std::vector<std::vector<float>> losses(ranks), scales(ranks);
  std::vector<std::jthread> processes;
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    processes.emplace_back([&, rank] {
      training_runs::OneRank exchange(board, rank);
      Setup own = setup;
      own.options.exchange = &exchange;
      Run run = training_runs::run(own, steps);
      for (const sim::StepRecord& step : run.steps) {
        losses[rank].push_back(step.loss);
        scales[rank].push_back(step.scale);
      }
      states[rank] = run.trainer.save();
    });
  }
  processes.clear();
  const sim::TrainerState expected = together.trainer.save();
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    for (std::size_t i = 0; i < together.steps.size(); ++i) {
      CHECK(losses[rank][i] == together.steps[i].loss);
      CHECK(scales[rank][i] == together.steps[i].scale);
    }
    CHECK(states[rank].steps_applied == expected.steps_applied);
    CHECK(states[rank].loss_scalers == expected.loss_scalers);
    for (std::size_t i = 0; i < expected.arrays.size(); ++i) {
      const std::string& name = expected.arrays[i].name;
      const bool is_own =
          name.find("running") != std::string::npos && !setup.options.parallel.sync_batch_norm;
      if (rank == 0 || !is_own) CHECK(states[rank].arrays[i].bytes == expected.arrays[i].bytes);
    }
  }
}

}  // namespace

TEST_CASE("exchange: ranks in processes of their own have the bits of virtual ones") {
  const sim::AllReduce half{.algorithm = sim::AllReduceAlgorithm::binary_tree};
  Setup setup = training_runs::with_ranks(3, half);
  check_processes(setup);
  setup.scaler = "adaptive";
  setup.options.accumulation_steps = 2;
  check_processes(setup);
  setup.scaler = "apex_amp:init_scale=1024";
  setup.options.parallel.looks_before_exchange = true;
  check_processes(setup);
  Setup norms = training_runs::with_ranks(4, half, {.model = training_runs::small_spec("cnn")});
  check_processes(norms);
  norms.options.parallel.sync_batch_norm = true;
  check_processes(norms);
  check_processes(
      training_runs::with_ranks(2, half, {.model = training_runs::small_spec("ssd"), .policy = "O2"}));
  check_processes(training_runs::with_ranks(
      2, half, {.model = training_runs::small_spec("transformer") + ":dropout=0.1"}));
}
