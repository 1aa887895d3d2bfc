/// `training --mpi`, interrupted: all ranks end after the same step, and the run goes on from there.

#include <doctest/doctest.h>
#include <signal.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <future>
#include <iterator>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "tests/experiments/training/mpi/exit_codes.h"
#include "tests/experiments/training/mpi/launches.h"
#include "tests/experiments/training_process.h"

namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;
using mpi::Library;
using mpi::Outcome;

constexpr int ranks = 2;

/// Some 20 ms a step.
std::string arguments(int steps) {
  return "--model mlp --batch 192 --twin-every 0 --allreduce ring:precision=fp16 --steps " +
         std::to_string(steps) + " ";
}

/// What a file of /proc has, words and variables apart by zeros.
std::string text_of(const fs::path& file) {
  std::ifstream stream(file);
  return {std::istreambuf_iterator<char>(stream), {}};
}

/// The first process of which this holds, the oldest one of a rank being that which its launcher knows.
template <class Holds>
std::optional<pid_t> find_process(Holds holds) {
  std::optional<pid_t> found;
  for (const fs::directory_entry& entry : fs::directory_iterator("/proc")) {
    const std::string name = entry.path().filename();
    if (name.find_first_not_of("0123456789") != std::string::npos || !holds(entry.path())) continue;
    const pid_t id = std::stoi(name);
    if (!found || id < *found) found = id;
  }
  return found;
}

/// mpirun, or the process of rank 1 that it has started, of the run that writes into `out`.
enum class Target { launcher, rank };
pid_t process_of(const Library& library, Target target, const fs::path& out) {
  const auto found = find_process([&](const fs::path& process) {
    const std::string command = text_of(process / "cmdline");
    if (!test::contains(command, out.string())) return false;
    if (target == Target::launcher) return command.starts_with("mpirun." + library.name);
    return command.starts_with(mpi::training) &&
           test::contains(
               '\0' + text_of(process / "environ"),
               '\0' + std::string(library.name == "mpich" ? "PMI_RANK=1" : "OMPI_COMM_WORLD_RANK=1") + '\0');
  });
  REQUIRE(found.has_value());
  return *found;
}

std::vector<std::string> checkpoints_in(const fs::path& out) {
  std::vector<std::string> names;
  std::error_code none_yet;
  for (const fs::directory_entry& entry : fs::directory_iterator(out / "run", none_yet)) {
    if (entry.path().filename().string().starts_with("checkpoint-")) names.push_back(entry.path().filename());
  }
  return names;
}

/// Whether the run is before its first step or in a later one, or where it writes checkpoints has written one.
bool is_under_way(const fs::path& out, int checkpoint_every) {
  return checkpoint_every == 0 ? fs::exists(out / "run/steps.partial.csv") : !checkpoints_in(out).empty();
}

struct Interruption {
  int signal;
  Target target;

  int checkpoint_every() const { return signal == SIGUSR1 ? 0 : 3; }
  /// The run must not end before the signal reaches it: Open MPI's launcher waits a second before it hands on SIGTERM.
  int steps() const { return signal == SIGTERM && target == Target::launcher ? 200 : 50; }
};

/// Starts the run, and sends the signal once it is under way.
Outcome interrupt(const Library& library, const Interruption& interruption, const fs::path& out,
                  const mpi::ExitCodes& codes) {
  auto run = std::async(std::launch::async, [&] {
    return mpi::launch(
        library,
        mpi::processes(ranks, codes.script(),
                       "--mpi " + arguments(interruption.steps()) + "--checkpoint-every " +
                           std::to_string(interruption.checkpoint_every()) + " --out " + out.string()));
  });
  while (run.wait_for(2ms) != std::future_status::ready) {
    if (!is_under_way(out, interruption.checkpoint_every())) continue;
    ::kill(process_of(library, interruption.target, out), interruption.signal);
    break;
  }
  return run.get();
}

void check_interrupted(const Library& library, const Interruption& interruption,
                       const training::Files& whole) {
  const auto [signal, target] = interruption;
  INFO(library.name, ", signal ", signal, " to ",
       std::string(target == Target::launcher ? "the launcher" : "rank 1"));
  const test::TemporaryDirectory directory;
  const fs::path out = directory / "out";
  const mpi::ExitCodes codes(mpi::training);
  const Outcome outcome = interrupt(library, interruption, out, codes);
  INFO(outcome.output);
  // A launcher that hands the signal on may have an exit code of its own, and kill ranks a second after a SIGTERM.
  CHECK(outcome.exit_code != 124);
  if (target == Target::rank) CHECK(outcome.exit_code == 130);
  if (target == Target::rank || signal != SIGTERM) CHECK(codes.of(ranks) == "130 130");
  CHECK(
      mpi::lines_of_training(outcome.output) ==
      std::vector{"training: interrupted; the same command goes on from what '" + out.string() + "' holds"});
  REQUIRE(!checkpoints_in(out).empty());
  const Outcome again = mpi::launch(
      library, mpi::processes(ranks, mpi::training,
                              "--mpi " + arguments(interruption.steps()) + "--out " + out.string()));
  INFO(again.output);
  REQUIRE(again.exit_code == 0);
  CHECK(training::json_of(out / "run/manifest.json").at("settings").at("resumed_at_step") > 0);
  training::check_equal(training::results_of(out), whole);
}

}  // namespace

TEST_CASE("mpi: an interrupted run ends after the same step on all ranks, and goes on to the same bytes") {
  for (const int signal : {SIGUSR1, SIGTERM}) {
    for (const Target target : {Target::launcher, Target::rank}) {
      const Interruption interruption{signal, target};
      const test::TemporaryDirectory whole;
      REQUIRE(
          training::run(arguments(interruption.steps()) + "--ranks " + std::to_string(ranks), whole / "out")
              .exit_code == 0);
      for (const Library& library : mpi::libraries())
        check_interrupted(library, interruption, training::results_of(whole / "out"));
    }
  }
}
