#include "experiments/training/ranks.h"

#include <doctest/doctest.h>

#include <mutex>
#include <string>
#include <vector>

#include "tests/sim/trainer/ranks.h"

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

TEST_CASE("ranks: odd ones are those that differ from most, or else from rank 0") {
  using Odd = std::vector<std::size_t>;
  CHECK(sim::odd_ranks(std::vector{1.0, 1.0, 1.0}).empty());
  CHECK(sim::odd_ranks(std::vector{1.0, 2.0}) == Odd{1});
  CHECK(sim::odd_ranks(std::vector{2.0, 1.0, 1.0}) == Odd{0});
  CHECK(sim::odd_ranks(std::vector{1.0, 2.0, 1.0, 3.0, 1.0}) == Odd{1, 3});
  CHECK(sim::ranks_text(Odd{1}) == "rank 1");
  CHECK(sim::ranks_text(Odd{1, 3, 4}) == "ranks 1, 3 and 4");
}
