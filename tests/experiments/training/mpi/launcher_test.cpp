#include "experiments/training/mpi/launcher.h"

#include <doctest/doctest.h>

#include <cstdlib>
#include <map>
#include <string>

namespace {

/// The launch that the environment tells of which has these variables of launchers, and no others.
std::optional<experiments::Launch> launch_with(const std::map<std::string, std::string>& variables) {
  for (const char* name :
       {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK", "PMI_RANK", "PMI_SIZE",
        "MPI_LOCALRANKID", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID"})
    ::unsetenv(name);
  for (const auto& [name, value] : variables) ::setenv(name.c_str(), value.c_str(), 1);
  const auto launch = experiments::launch_of_this_process();
  for (const auto& [name, value] : variables) ::unsetenv(name.c_str());
  return launch;
}

}  // namespace

TEST_CASE(
    "launcher: the first rank of a host is told by the launcher, else by Slurm, else each counts as one") {
  const std::map<std::string, std::string> pmi{{"PMI_RANK", "5"}, {"PMI_SIZE", "8"}};
  const auto rank_on_host = [&](std::map<std::string, std::string> more) {
    more.insert(pmi.begin(), pmi.end());
    const auto launch = launch_with(more);
    REQUIRE(launch.has_value());
    CHECK(launch->library == "mpich");
    CHECK(launch->rank == 5);
    CHECK(launch->ranks == 8);
    return launch->rank_on_host;
  };
  CHECK(rank_on_host({{"MPI_LOCALRANKID", "2"}, {"SLURM_LOCALID", "0"}}) == 2);
  CHECK(rank_on_host({{"SLURM_LOCALID", "1"}}) == 1);
  CHECK(rank_on_host({}) == 0);
}

TEST_CASE("launcher: without a launcher's variables there is none") {
  CHECK(!launch_with({}).has_value());
  CHECK(!launch_with({{"PMI_RANK", "1"}}).has_value());
  CHECK(!launch_with({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "8"}}).has_value());
}
