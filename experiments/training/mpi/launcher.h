#pragma once
/// Who started this process as one of several ranks, as its environment tells before any MPI library is asked.

#include <optional>
#include <string>
#include <string_view>

namespace experiments {

struct Launch {
  std::string library;   ///< "openmpi" or "mpich": whose launcher it was; empty where it may be either's
  std::string launcher;  ///< "mpirun" or "srun"
  int rank = 0;
  int ranks = 1;
};

/// Nothing where no launcher of ranks that is known did.
std::optional<Launch> launch_of_this_process();

/// Whether this process is to say why it cannot begin: of those that the launcher has started on this host, which are the
/// children of `parent`, the one that asks first, for as long as it lives. The others most likely cannot for the same reason.
bool speaks_for_host(int parent);

/// Throws std::runtime_error where the library knows of another number of processes than the launcher has started: they were
/// started by the launcher of another library, and each believes that it is alone.
void require_ranks(const Launch& launch, std::string_view library, std::size_t known);

/// Ends all ranks, from one that cannot call its library. Most launchers do so themselves where a process ends with an error;
/// that of MPICH lets the others wait for this one, and is told by its own protocol (PMI 1).
void end_all_before_start(int exit_code);

}  // namespace experiments
