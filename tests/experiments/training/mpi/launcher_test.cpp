#include "experiments/training/mpi/launcher.h"

#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <map>
#include <stdexcept>
#include <string>

namespace {

/// The launch that the environment tells of which has these variables of launchers, and no others.
std::optional<experiments::Launch> launch_with(const std::map<std::string, std::string>& variables) {
  for (const char* name : {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "PMI_RANK", "PMI_SIZE",
                           "SLURM_PROCID", "SLURM_STEP_NUM_TASKS"})
    ::unsetenv(name);
  for (const auto& [name, value] : variables) ::setenv(name.c_str(), value.c_str(), 1);
  const auto launch = experiments::launch_of_this_process();
  for (const auto& [name, value] : variables) ::unsetenv(name.c_str());
  return launch;
}

}  // namespace

TEST_CASE("launcher: its variables tell the library, the rank and the number of ranks") {
  const auto launch = launch_with({{"PMI_RANK", "5"}, {"PMI_SIZE", "8"}});
  REQUIRE(launch.has_value());
  CHECK(launch->library == "mpich");
  CHECK(launch->rank == 5);
  CHECK(launch->ranks == 8);
}

TEST_CASE("launcher: one process of a host says what is wrong, and another once that has ended") {
  constexpr int parent = -7;  // of nobody
  const pid_t first = ::fork();
  if (first == 0) {
    const bool speaks = experiments::speaks_for_host(parent);
    ::raise(SIGSTOP);
    ::_exit(speaks ? 0 : 1);
  }
  int status = 0;
  REQUIRE(::waitpid(first, &status, WUNTRACED) == first);
  CHECK(!experiments::speaks_for_host(parent));
  CHECK(experiments::speaks_for_host(parent - 1));
  ::kill(first, SIGCONT);
  REQUIRE(::waitpid(first, &status, 0) == first);
  CHECK(status == 0);
  CHECK(experiments::speaks_for_host(parent));
}

TEST_CASE("launcher: a library that knows of fewer processes than were started is another one") {
  const experiments::Launch launch{.library = "mpich", .launcher = "mpirun", .rank = 0, .ranks = 2};
  CHECK_NOTHROW(experiments::require_ranks(launch, "mpich", 2));
  CHECK_THROWS_WITH_AS(experiments::require_ranks(launch, "mpich", 1),
                       "--mpi: 2 processes were started, of which mpich knows 1; must be started by the "
                       "launcher of the same library",
                       std::runtime_error);
}

TEST_CASE("launcher: without a launcher's variables there is none") {
  CHECK(!launch_with({}).has_value());
  CHECK(!launch_with({{"PMI_RANK", "1"}}).has_value());
  CHECK(!launch_with({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "8"}}).has_value());
}
