#pragma once
/// How each rank of a launch has ended, which a launcher does not tell.

#include <filesystem>
#include <fstream>
#include <string>

#include "tests/temporary_directory.h"

namespace mpi {

/// A script that starts a program as a rank, and writes down its exit code.
class ExitCodes {
 public:
  explicit ExitCodes(const std::string& program) {
    // The script outlives signals, which a launcher sends it and what it has started.
    std::ofstream(script_) << "#!/bin/sh\ntrap : TERM INT HUP USR1\n'" << program
                           << "' \"$@\"\ncode=$?\necho $code > '" << directory_.path().string()
                           << "'/${OMPI_COMM_WORLD_RANK:-$PMI_RANK}\nexit $code\n";
    std::filesystem::permissions(script_, std::filesystem::perms(0755));
  }
  std::string script() const { return script_.string(); }
  /// "2 2 2": those of ranks 0 .. ranks - 1; "none" of one that has written none.
  std::string of(int ranks) const {
    std::string codes;
    for (int rank = 0; rank < ranks; ++rank) {
      std::string code = "none";
      std::ifstream(directory_ / std::to_string(rank)) >> code;
      codes += (rank == 0 ? "" : " ") + code;
    }
    return codes;
  }

 private:
  test::TemporaryDirectory directory_;
  std::filesystem::path script_ = directory_ / "rank";
};

}  // namespace mpi
