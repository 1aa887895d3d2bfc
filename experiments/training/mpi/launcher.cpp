#include "experiments/training/mpi/launcher.h"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <string>

namespace experiments {
namespace {

/// The variables that a launcher sets.
struct LauncherRow {
  const char* library;
  const char* launcher;
  const char* rank;
  const char* ranks;
  const char* rank_on_host;
};
constexpr std::array rows{
    LauncherRow{"openmpi", "mpirun", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE",
                "OMPI_COMM_WORLD_LOCAL_RANK"},
    LauncherRow{"mpich", "mpirun", "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID"},
    // For any library; a batch script has the number of tasks alone, and not that of a step.
    LauncherRow{"", "srun", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID"},
};

std::optional<int> number_in(const char* variable) {
  const char* const text = std::getenv(variable);
  if (text == nullptr) return std::nullopt;
  int number = 0;
  const char* const end = text + std::strlen(text);
  const auto [stop, error] = std::from_chars(text, end, number);
  return error == std::errc() && stop == end ? std::optional(number) : std::nullopt;
}

/// Where the launcher's variable is missing, as that of MPICH's mpirun is where srun stands in for it: Slurm's; without that
/// one too, each counts as the first of its host, so that none is silent.
int rank_on_host(const LauncherRow& row) {
  if (const std::optional<int> number = number_in(row.rank_on_host)) return *number;
  return number_in("SLURM_LOCALID").value_or(0);
}

}  // namespace

std::optional<Launch> launch_of_this_process() {
  for (const LauncherRow& row : rows) {
    const std::optional<int> rank = number_in(row.rank), ranks = number_in(row.ranks);
    if (!rank || !ranks) continue;
    return Launch{.library = row.library,
                  .launcher = row.launcher,
                  .rank = *rank,
                  .ranks = *ranks,
                  .rank_on_host = rank_on_host(row)};
  }
  return std::nullopt;
}

void end_all_before_start(int exit_code) {
  const std::optional<int> connection = number_in("PMI_FD");
  if (!connection) return;
  // Each line is answered, abort by the end of all.
  for (const std::string& line : {std::string("cmd=init pmi_version=1 pmi_subversion=1\n"),
                                  fmt::format("cmd=abort exitcode={}\n", exit_code)}) {
    if (::write(*connection, line.data(), line.size()) < 0) return;
    constexpr int five_seconds = 5000;
    pollfd answer{.fd = *connection, .events = POLLIN};
    std::array<char, 1024> text;
    if (::poll(&answer, 1, five_seconds) <= 0 || ::read(*connection, text.data(), text.size()) <= 0) return;
  }
}

}  // namespace experiments
