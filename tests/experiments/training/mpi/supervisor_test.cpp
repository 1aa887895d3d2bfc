#include "experiments/training/mpi/supervisor.h"

#include <doctest/doctest.h>

#include <optional>

using experiments::CallUnderWay;
using experiments::RankProgress;
using experiments::Silence;

namespace {

/// The seconds after which a rank that does nothing more is told of; none in a minute.
std::optional<int> seconds_to_problem(Silence& silence, const RankProgress& progress, bool is_stopped,
                                      const char* problem) {
  for (int second = 1; second <= 60; ++second) {
    const std::string found = silence.add_second(progress, is_stopped);
    if (found.empty()) continue;
    CHECK(found.find(problem) == 0);
    return second;
  }
  return std::nullopt;
}

}  // namespace

TEST_CASE("ranks: one that computes for too long is told of, and one that waits is not") {
  RankProgress progress;
  Silence of_first(true), of_other(false);
  CHECK(!seconds_to_problem(of_other, progress, false, ""));
  progress.allowed_seconds = 5;
  {
    const CallUnderWay call(progress);
    CHECK(!seconds_to_problem(of_other, progress, false, ""));
    // The second in which the call was begun does not count.
    CHECK(seconds_to_problem(of_first, progress, false, "has waited for the others for 10 seconds") == 11);
    CHECK(seconds_to_problem(of_other, progress, true, "has been stopped for ") == 1);
  }
  CHECK(seconds_to_problem(of_other, progress, false, "has sent and received nothing for 5 seconds") == 6);
  CHECK(seconds_to_problem(of_first, progress, false, "has sent and received nothing for 5 seconds") == 6);
}

TEST_CASE("ranks: one that goes on is never told of") {
  RankProgress progress;
  progress.allowed_seconds = 1;
  Silence silence(true);
  for (int second = 0; second < 20; ++second) {
    const CallUnderWay call(progress);
    CHECK(silence.add_second(progress, false).empty());
  }
}
