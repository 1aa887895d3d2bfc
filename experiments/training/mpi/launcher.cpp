#include "experiments/training/mpi/launcher.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string>

namespace experiments {
namespace {

/// The variables that a launcher sets.
struct LauncherRow {
  const char* library;
  const char* launcher;
  const char* rank;
  const char* ranks;
};
constexpr std::array rows{
    LauncherRow{"openmpi", "mpirun", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
    LauncherRow{"mpich", "mpirun", "PMI_RANK", "PMI_SIZE"},
    // For any library; a batch script has the number of tasks alone, and not that of a step.
    LauncherRow{"", "srun", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS"},
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
    return Launch{.library = row.library, .launcher = row.launcher, .rank = *rank, .ranks = *ranks};
  }
  return std::nullopt;
}

bool speaks_for_host(int parent) {
  // A socket's abstract name begins with a byte of 0, and is free again where the process ends.
  const std::string name = fmt::format("halflab: children of {}", parent);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::ranges::copy(name, address.sun_path + 1);
  const std::size_t size = offsetof(sockaddr_un, sun_path) + 1 + name.size();
  const int taken = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  return taken < 0 ||
         ::bind(taken, reinterpret_cast<const sockaddr*>(&address), static_cast<socklen_t>(size)) == 0 ||
         errno != EADDRINUSE;
}

void require_ranks(const Launch& launch, std::string_view library, std::size_t known) {
  if (known != static_cast<std::size_t>(launch.ranks))
    throw std::runtime_error(
        fmt::format("--mpi: {} processes were started, of which {} knows {}; must be started by the "
                    "launcher of the same library",
                    launch.ranks, library, known));
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
