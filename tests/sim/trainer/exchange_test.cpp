#include "sim/trainer/exchange.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
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

std::vector<float> bits(const std::vector<sim::StepRecord>& steps, float sim::StepRecord::*member) {
  std::vector<float> values;
  for (const sim::StepRecord& step : steps) values.push_back(step.*member);
  return values;
}

void check_equal(const sim::StepRecord& found, const sim::StepRecord& expected) {
  CHECK(found.decision == expected.decision);
  REQUIRE(found.skip.has_value() == expected.skip.has_value());
  if (!expected.skip) return;
  CHECK(sim::describe(*found.skip) == sim::describe(*expected.skip));
  CHECK(found.skip->index == expected.skip->index);
  CHECK(found.skip->twin_value == expected.skip->twin_value);
}

void check_equal(const sim::TrainerState& found, const sim::TrainerState& expected, bool has_own_statistics) {
  CHECK(found.steps_applied == expected.steps_applied);
  CHECK(found.loss_scalers == expected.loss_scalers);
  CHECK(found.tensor_scaler == expected.tensor_scaler);
  for (std::size_t i = 0; i < expected.arrays.size(); ++i) {
    const bool is_statistic = expected.arrays[i].name.find("running") != std::string::npos;
    if (is_statistic && has_own_statistics) continue;
    CHECK(found.arrays[i].bytes == expected.arrays[i].bytes);
  }
}

/// The steps of `setup` in as many processes as ranks are those of virtual ranks; returns how many were skipped.
std::size_t check_processes(Setup setup) {
  constexpr int steps = 5;
  setup.options.record_skips = true;
  Run together = training_runs::run(setup, steps);
  const sim::TrainerState expected = together.trainer.save();
  const std::size_t ranks = setup.options.parallel.ranks;
  std::vector<std::optional<Run>> runs(ranks);
  std::vector<std::unique_ptr<sim::OneRank>> exchanges(ranks);
  training_runs::Wires wires(ranks);
  wires.on_all_ranks([&](sim::Wire& wire, std::size_t rank) {
    exchanges[rank] = std::make_unique<sim::OneRank>(wire);
    Setup own = setup;
    own.options.exchange = exchanges[rank].get();
    runs[rank].emplace(training_runs::run(own, steps));
  });
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    CHECK(bits(runs[rank]->steps, &sim::StepRecord::loss) == bits(together.steps, &sim::StepRecord::loss));
    CHECK(bits(runs[rank]->steps, &sim::StepRecord::scale) == bits(together.steps, &sim::StepRecord::scale));
    check_equal(runs[rank]->trainer.save(), expected, rank != 0 && !setup.options.parallel.sync_batch_norm);
  }
  for (std::size_t i = 0; i < together.steps.size(); ++i) check_equal(runs[0]->steps[i], together.steps[i]);
  for (const sim::MemoryRole role : sim::memory_roles)
    CHECK(runs[0]->trainer.memory().peak_bytes(role) == together.trainer.memory().peak_bytes(role));
  return static_cast<std::size_t>(std::ranges::count_if(together.steps, &sim::StepRecord::skipped));
}

}  // namespace

namespace {

/// What each of three ranks finds after an all-reduce, where the last has `other` for one of its gradients.
std::vector<std::string> differences(float other) {
  training_runs::Wires wires(3);
  std::vector<std::string> found(3);
  wires.on_all_ranks([&](sim::Wire& wire, std::size_t rank) {
    sim::OneRank exchange(wire);
    const std::vector<sim::GradientSite> sites{{.name = "w", .kind = sim::GradientSite::Kind::weight},
                                               {.name = "a", .kind = sim::GradientSite::Kind::activation}};
    const float own = static_cast<float>(rank);  // what no rank shares
    const sim::SiteGradients gradients{
        .gradients = {sim::Tensor::from({3}, std::vector{8.0F, rank == 2 ? other : 1.0F, 2.0F}),
                      sim::Tensor::from({1}, std::vector{own})}};
    try {
      sim::require_same_gradients(sites, gradients, std::isinf(gradients.gradients[0].element(1)), 4,
                                  exchange);
    } catch (const sim::RanksDiffer& differ) {
      found[rank] = differ.what();
    }
  });
  return found;
}

}  // namespace

TEST_CASE(
    "exchange: a rank that has another gradient is found in that step, also where it is not the largest") {
  for (const std::string& found : differences(1)) CHECK(found.empty());
  for (const std::string& found : differences(1.0000001F))
    CHECK(found == "rank 2 has other gradients than the others in step 4, after the all-reduce");
  for (const std::string& found : differences(INFINITY))
    CHECK(found.find("rank 2 alone would skip what the others apply in step 4") == 0);
}

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

TEST_CASE("exchange: a skipped step is told of the first rank that was not finite, wherever it is computed") {
  const sim::AllReduce half{.algorithm = sim::AllReduceAlgorithm::ring};
  Setup setup = training_runs::with_ranks(3, half);
  setup.scaler = "dynamic:init_scale=4194304";
  CHECK(check_processes(setup) > 0);
  setup.options.accumulation_steps = 2;
  CHECK(check_processes(setup) > 0);
  setup.options.parallel.all_reduce.division = sim::AllReduceDivision::after;
  setup.scaler = "dynamic:init_scale=65536";
  check_processes(setup);
}

TEST_CASE("exchange: delayed scales of FP8 follow the largest magnitudes of all ranks") {
  const sim::AllReduce half{.algorithm = sim::AllReduceAlgorithm::ring};
  const auto run_with = [&](const std::string& scaler) {
    Setup setup = training_runs::with_ranks(3, half);
    setup.policy = "fp8";
    setup.scaler = scaler;
    check_processes(setup);
  };
  run_with("delayed:amax_history_length=2");
  run_with("current");
}
