#include "experiments/training/ranks.h"

#include <doctest/doctest.h>

#include <mutex>
#include <string>
#include <vector>

#include "tests/sim/trainer/ranks.h"

using experiments::Interruption;
using experiments::Ranks;
using experiments::RunIdentity;
using training_runs::Wires;

namespace {

/// What agreeing on these runs, one of each rank, throws on each; empty where it agrees.
std::vector<std::string> refusals(const std::vector<RunIdentity>& runs) {
  Wires wires(runs.size());
  std::vector<std::string> said(runs.size());
  wires.on_all_ranks([&](sim::Wire& wire, std::size_t rank) {
    Ranks ranks(wire, {"none", "0"});
    CHECK(ranks.stage() == Ranks::Stage::apart);
    try {
      ranks.agree(runs[rank]);
      CHECK(ranks.stage() == Ranks::Stage::training);
    } catch (const std::invalid_argument& error) {
      said[rank] = error.what();
      CHECK(ranks.stage() == Ranks::Stage::refused);
    }
  });
  return said;
}

}  // namespace

TEST_CASE("ranks: those that have another revision, or more options, are named on all") {
  const RunIdentity run{{"halflab", "0.1.0 1f2e"}, {"batch", "8"}};
  const RunIdentity other_revision{{"halflab", "0.1.0 77aa"}, {"batch", "8"}};
  const RunIdentity more{{"halflab", "0.1.0 1f2e"}, {"batch", "8"}, {"record every", "10"}};
  for (const std::string& said : refusals({run, run, run})) CHECK(said.empty());
  for (const std::string& said : refusals({run, run, other_revision})) {
    CHECK(said.find("rank 2 on ") == 0);
    CHECK(said.find("has halflab '0.1.0 77aa', and rank 0 has '0.1.0 1f2e'") != std::string::npos);
  }
  for (const std::string& said : refusals({run, more}))
    CHECK(said.find("has record every '10', and rank 0 has none; allowed: the same on all ranks") !=
          std::string::npos);
  for (const std::string& said : refusals({more, run}))
    CHECK(said.find("has record every none, and rank 0 has '10'") != std::string::npos);
  for (const std::string& said : refusals({run, {}}))
    CHECK(said.find("has nothing to train, and rank 0 has a run; allowed: ") != std::string::npos);
}

TEST_CASE("ranks: what one has more is named, and not what stands in its place") {
  const RunIdentity run{{"batch", "8"}, {"ranks", "2"}};
  const RunIdentity more{{"batch", "8"}, {"record every", "10"}, {"ranks", "2"}};
  for (const std::string& said : refusals({run, more}))
    CHECK(said.find("has record every '10', and rank 0 has none") != std::string::npos);
}

TEST_CASE("ranks: where one cannot begin, the others do not") {
  Wires wires(3);
  std::mutex mutex;
  std::vector<std::string> said;
  wires.on_all_ranks([&](sim::Wire& wire, std::size_t rank) {
    Ranks ranks(wire, {"none", "0"});
    std::string problem;
    if (rank == 1) {
      const Ranks::Outcome outcome = ranks.decline(2, "--data: there is none");
      CHECK(outcome.exit_code == 2);
      problem = outcome.problem;
    } else {
      CHECK_THROWS_AS(
          [&] {
            try {
              ranks.agree({{"batch", "8"}});
            } catch (const std::invalid_argument& error) {
              problem = error.what();
              throw;
            }
          }(),
          std::invalid_argument);
    }
    CHECK(ranks.share_exit_code(rank == 1 ? 2 : 0) == 2);
    const std::scoped_lock lock(mutex);
    said.push_back(problem);
  });
  for (const std::string& problem : said) CHECK(problem.ends_with(": --data: there is none"));
}

TEST_CASE("ranks: what rank 0 says, all know") {
  Wires wires(3);
  wires.on_all_ranks([&](sim::Wire& wire, std::size_t rank) {
    Ranks ranks(wire, {"none", "0"});
    CHECK(ranks.share(rank == 0));
    CHECK(!ranks.share(rank != 0));
    std::optional<sim::TrainerState> own;
    if (rank == 0) own = {.steps_done = 7, .arrays = {{"weight 2 binary32", {1, 2, 3}}}};
    const std::optional<sim::TrainerState> shared = ranks.share(own);
    REQUIRE(shared.has_value());
    CHECK(shared->steps_done == 7);
    CHECK(shared->arrays.front().bytes == std::vector<std::uint8_t>{1, 2, 3});
    CHECK(!ranks.share(std::optional<sim::TrainerState>()).has_value());
    CHECK(ranks.on_this_host() == 3);
    CHECK(ranks.hosts().ends_with(" 3"));
  });
}

TEST_CASE("ranks: what any of them is asked for holds for all, the most of it") {
  Wires wires(3);
  const std::vector<Interruption> most{Interruption::none, Interruption::end, Interruption::checkpoint};
  const sim::Trainer& trained = training_runs::run({}, 1).trainer;
  wires.on_all_ranks([&](sim::Wire& wire, std::size_t rank) {
    for (const Interruption asked : most) {
      Ranks ranks(wire, {"none", "0"});
      ranks.agree({{"batch", "8"}});
      CHECK(ranks.after_step(trained, rank == 1 ? asked : Interruption::none, false) == asked);
      CHECK(ranks.stage() ==
            (asked == Interruption::none ? Ranks::Stage::training : Ranks::Stage::interrupted));
      CHECK(ranks.after_step(trained, most[rank], false) == Interruption::checkpoint);
    }
  });
}

namespace {

/// What each of three ranks finds, of which the last has other weights, after its tenth step.
std::vector<std::string> found_by_ranks(int compare_every, Interruption asked, bool is_kept) {
  std::vector<training_runs::Run> runs;
  for (const unsigned seed : {1, 1, 2}) {
    training_runs::Setup setup;
    setup.options.seed = seed;
    runs.push_back(training_runs::run(setup, 10));
  }
  Wires wires(3);
  std::vector<std::string> found(3);
  wires.on_all_ranks([&](sim::Wire& wire, std::size_t rank) {
    Ranks ranks(wire, {"none", "0"});
    ranks.agree({{"batch", "8"}}, compare_every);
    try {
      ranks.after_step(runs[rank].trainer, rank == 1 ? asked : Interruption::none, is_kept);
    } catch (const sim::RanksDiffer& differ) {
      found[rank] = differ.what();
      CHECK(ranks.stage() == Ranks::Stage::differing);
    }
  });
  return found;
}

}  // namespace

TEST_CASE("ranks: weights are compared every so many steps, and before anything that is kept") {
  for (const std::string& found : found_by_ranks(5, Interruption::none, false)) {
    CHECK(found.find("rank 2 on ") == 0);
    CHECK(found.ends_with(" has other weights than the others after step 9"));
  }
  for (const std::string& found : found_by_ranks(20, Interruption::none, true)) CHECK(!found.empty());
  for (const std::string& found : found_by_ranks(20, Interruption::checkpoint, false)) CHECK(!found.empty());
  for (const std::string& found : found_by_ranks(20, Interruption::none, false)) CHECK(found.empty());
  for (const std::string& found : found_by_ranks(20, Interruption::end, false)) CHECK(found.empty());
}

TEST_CASE("ranks: odd ones are those that differ from most, or else from rank 0") {
  using Odd = std::vector<std::size_t>;
  CHECK(sim::odd_ranks(std::vector{1.0, 1.0, 1.0}).empty());
  CHECK(sim::odd_ranks(std::vector{1.0, 2.0}) == Odd{1});
  CHECK(sim::odd_ranks(std::vector{2.0, 1.0, 1.0}) == Odd{0});
  CHECK(sim::odd_ranks(std::vector{1.0, 2.0, 1.0, 3.0, 1.0}) == Odd{1, 3});
  CHECK(sim::ranks_text(Odd{1}) == "rank 1");
  CHECK(sim::ranks_text(Odd{1, 3, 4}) == "ranks 1, 3 and 4");
}
