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
  int rank_on_host = 0;
};

/// Nothing where no launcher of ranks that is known did.
std::optional<Launch> launch_of_this_process();

/// Ends all ranks, from one that cannot call its library. Most launchers do so themselves where a process ends with an error;
/// that of MPICH lets the others wait for this one, and is told by its own protocol (PMI 1).
void end_all_before_start(int exit_code);

}  // namespace experiments
