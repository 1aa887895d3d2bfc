#include "experiments/training/mpi/launcher.h"

#include <array>
#include <charconv>
#include <cstdlib>
#include <cstring>

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

}  // namespace

std::optional<Launch> launch_of_this_process() {
  for (const LauncherRow& row : rows) {
    const std::optional<int> rank = number_in(row.rank), ranks = number_in(row.ranks);
    if (!rank || !ranks) continue;
    return Launch{.library = row.library,
                  .launcher = row.launcher,
                  .rank = *rank,
                  .ranks = *ranks,
                  .rank_on_host = number_in(row.rank_on_host).value_or(*rank)};
  }
  return std::nullopt;
}

}  // namespace experiments
