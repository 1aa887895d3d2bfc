#pragma once
/// Programs as ranks of the MPI libraries that this machine has.

#include <doctest/doctest.h>
#include <sys/wait.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "tests/experiments/programs.h"
#include "tests/temporary_directory.h"
#include "tests/text.h"

namespace mpi {

namespace fs = std::filesystem;
using programs::Outcome;

/// An MPI library: its name for --mpi-library, and its launcher.
struct Library {
  std::string name;
  std::string launcher;
};

inline bool has_command(const std::string& name) {
  return programs::run_command("command -v " + name).exit_code == 0;
}

/// Those that Halflab was built with and whose launcher is here; where there is none, the test is skipped.
inline std::vector<Library> libraries() {
  std::vector<Library> found;
  if (test::contains(HALFLAB_MPI_LIBRARIES, "openmpi") && has_command("mpirun.openmpi"))
    found.push_back(
        {"openmpi",
         "OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 timeout -k 5 {limit} mpirun.openmpi "
         "--oversubscribe "});
  if (test::contains(HALFLAB_MPI_LIBRARIES, "mpich") && has_command("mpirun.mpich"))
    found.push_back({"mpich", "timeout -k 5 {limit} mpirun.mpich "});
  if (found.empty()) MESSAGE("skipped: neither Open MPI nor MPICH with development files is here");
  return found;
}

/// "mpirun -np 2 PROGRAM ARGUMENTS : -np 1 ..." within `limit` seconds, after which the exit code is 124.
inline Outcome launch(const Library& library, const std::string& what, int limit = 60) {
  std::string launcher = library.launcher;
  const std::string place = "{limit}";
  launcher.replace(launcher.find(place), place.size(), std::to_string(limit));
  return programs::run_command(launcher + what);
}

inline std::string processes(int count, const std::string& program, const std::string& arguments) {
  return "-np " + std::to_string(count) + " " + program + " " + arguments;
}

/// What Halflab itself says, and not the launchers: the lines that begin with "training: ".
inline std::vector<std::string> lines_of_training(const std::string& output) {
  std::vector<std::string> lines;
  std::istringstream stream(output);
  for (std::string line; std::getline(stream, line);) {
    if (line.starts_with("training: ")) lines.push_back(line);
  }
  return lines;
}

/// A program that finds its modules in another folder than that of the build.
class Tree {
 public:
  Tree(const fs::path& program, const fs::path& modules) : program_(directory_ / "bin" / program.filename()) {
    fs::create_directories(directory_ / "bin");
    fs::copy_file(program, program_);
    fs::create_directory_symlink(modules, directory_ / "lib");
  }
  std::string program() const { return program_.string(); }

 private:
  test::TemporaryDirectory directory_;
  fs::path program_;
};

inline const std::string training = HALFLAB_BINARY_DIRECTORY "/training";

}  // namespace mpi
